"""`turnwise engage`: how much of the conversation remains, and whether people agree that it engages."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from turnwise.atomic import check_free
from turnwise.cli.console import (
    Format,
    Json,
    Limit,
    OnErrorOption,
    Quiet,
    complain,
    load_corpus,
    print_json,
    print_table,
    progress_bar,
)
from turnwise.cli.model import named_paths
from turnwise.cli.train import Device
from turnwise.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from turnwise.engage.evaluate import EngageEvaluation
    from turnwise.engage.examples import Target
    from turnwise.engage.human_sets import HumanSet
    from turnwise.engage.live import Reading, Rule
    from turnwise.engage.predictor import Predictor
    from turnwise.engage.settings import Recipe
    from turnwise.engage.tuning import Moment
    from turnwise.record import Score

TRAIN_EPILOG = (
    "Try: turnwise engage train chitchat --frozen --out engaged  ·  "
    "… train dailydialog/ empathetic_dialogues/ --history 3 --out engaged"
)
SCORE_EPILOG = (
    "Try: turnwise engage score engaged chats.jsonl --out scores.parquet  ·  … score engaged - --json < chats"
)
EVALUATE_EPILOG = "Try: turnwise engage evaluate engaged --human dailydialog_human/ --json"
DEPTH_EPILOG = "Try: turnwise engage depth engaged --corpus dailydialog/"
RANK_EPILOG = (
    """Try: echo '{"context": ["Hi!"], "candidates": ["Bye.", "How are you?"]}' | turnwise engage rank engaged -"""
)
WATCH_EPILOG = "Try: turnwise engage watch engaged    (then type one line for each turn)"
INPUT = "-"  # standard input
BAR = 20  # characters that a score of 1 is wide

app = typer.Typer(name="engage", help="Is the user engaged, turn by turn?", no_args_is_help=True)

Model = Annotated[str, typer.Argument(help="A folder written by turnwise engage train.", metavar="MODEL")]
Models = Annotated[list[str], typer.Argument(help="Folders of turnwise engage train; NAME=PATH names one.")]
HumanPaths = Annotated[
    list[str], typer.Option("--human", help="FED json, DailyDialog-Human, or a table of context, response, annotators.")
]
Aspect = Annotated[str | None, typer.Option("--aspect", help="What was rated. Usual: engagement.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for the report and the numbers.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]


@app.command(epilog=TRAIN_EPILOG)
def train(
    corpora: Annotated[
        list[str], typer.Argument(help="Files, folders or names; several are mixed.", metavar="CORPUS…")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the predictor and its log.")],
    history: Annotated[
        int | None, typer.Option("--history", min=0, help="Predecessors that a turn is averaged with. Usual: 0.")
    ] = None,
    is_flat: Annotated[bool | None, typer.Option("--flat", help="Read them with the turn as one text.")] = None,
    pooling: Annotated[str | None, typer.Option("--pooling", help="mean, cls, max or min. Usual: mean.")] = None,
    activation: Annotated[str | None, typer.Option("--activation", help="clamp or sigmoid. Usual: clamp.")] = None,
    classes: Annotated[
        int | None, typer.Option("--classes", min=2, help="Classes instead of a number: 2, 5, 10.")
    ] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=3, help="Of a text, at most. Usual: 128.")] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="minilm (the usual), mpnet, a folder or a hub name.")
    ] = None,
    is_frozen: Annotated[bool, typer.Option("--frozen", help="Fit the linear layer alone, in seconds.")] = False,
    recipe: Annotated[str | None, typer.Option("--recipe", help="default, or paper (appendix A.3).")] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="Steps of training.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="Learning rate of the encoder.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Turns in a step, in whole dialogues.")] = None,
    mixing: Annotated[
        str | None, typer.Option("--mixing", help="Of several corpora: proportional, or by-corpus.")
    ] = None,
    select: Annotated[str, typer.Option("--select", help="Choose the best by valloss, or human.")] = "valloss",
    human: Annotated[
        str | None,
        typer.Option("--human", help="Rated turns; half of them may be selected on, and are then not reported."),
    ] = None,
    is_whole: Annotated[
        bool, typer.Option("--reproduce-paper", help="With --select human: select on the whole set, as the paper did.")
    ] = False,
    is_shuffled: Annotated[bool, typer.Option("--shuffled", help="With other turns' labels: a control.")] = False,
    start: Annotated[str | None, typer.Option("--from", help="Go on from this predictor, say with --scores.")] = None,
    scores: Annotated[
        str | None, typer.Option("--scores", help="Learn a dialogue's own score, in this label, as in eval=1:5.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Same seed, same weights.")] = 0,
    device: Device = "auto",
    cache: Annotated[Path | None, typer.Option("--cache", help="With --frozen: where vectors are kept.")] = None,
    limit: Limit = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn from dialogues how much of a conversation remains after a turn; no ratings are needed."""
    from turnwise.engage import fit_all, fit_head, material
    from turnwise.model.loading import require_torch

    require_torch("Training")
    quiet = quiet or json
    shape = {"history": history, "is_flat": is_flat, "pooling": pooling, "activation": activation, "classes": classes,
             "tokens": tokens}  # fmt: skip
    chosen = {key: value for key, value in shape.items() if value is not None}
    changes = {"steps": steps, "rate": rate, "batch_turns": batch, "mixing": mixing}
    _check_frozen(is_frozen, {"recipe": recipe, **changes, "human": human, "resume": resume or None}, cache)
    how = _recipe(recipe or "default", changes, select=select)
    options = {"format": format, "on_error": on_error, "limit": limit, "quiet": quiet}
    read = [load_corpus([one], **options) for one in corpora]  # type: ignore[arg-type]
    given = material(read, target=_target(scores), is_shuffled=is_shuffled, seed=seed)
    begin = _begin(start, encoder, chosen, seed=seed, device=device)
    if is_frozen:
        with progress_bar("encoding", quiet=quiet) as progress:
            found = fit_head(given, start=begin, out=out, seed=seed, cache=cache, progress=progress)
        _show_fitted(found, {}, json=json)
        return
    with _tuning_bar(how.steps, quiet=quiet) as watch:
        tuned = fit_all(
            given,
            start=begin,
            out=out,
            recipe=how,
            seed=seed,
            select=select,
            human=_selection(human, is_whole=is_whole),
            resume=resume,
            progress=watch,
        )
    best = next(one for one in tuned.history if one.step == tuned.best_step)
    _show_fitted(tuned.predictor, {"steps": tuned.steps, "best_step": tuned.best_step, "seconds": tuned.seconds,
                                   "validation": best.validation, "pearson": best.pearson}, json=json)  # fmt: skip


@app.command(epilog=SCORE_EPILOG)
def score(
    model: Model,
    path: Annotated[str, typer.Argument(help="A corpus, or - for messages from standard input.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Parquet file for the scores; a killed run goes on.")
    ] = None,
    device: Device = "auto",
    limit: Limit = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A score for every turn of every dialogue."""
    from turnwise.engage.scoring import score_corpus, write_scores

    quiet = quiet or json
    check_free(out, overwrite=overwrite)
    predictor = _loaded(model, device)
    with _file(path) as place:
        corpus = load_corpus([place], format=format, on_error=on_error, limit=limit, quiet=quiet)
    with progress_bar("scoring", quiet=quiet) as progress:
        if out is not None:
            write_scores(predictor, corpus, out, overwrite=overwrite, progress=progress)
            found = {"model": predictor.name, "dialogues": len(corpus), "out": str(out)}
            print_json(found) if json else typer.echo(f"Scores of {len(corpus):,} dialogues are in {out}")
            return
        rows = [row for table in score_corpus(predictor, corpus, progress=progress) for row in table.to_pylist()]
    if json:
        print_json({"model": predictor.name, "dialogues": list(_by_dialogue(rows))})
        return
    print_table(
        ["dialogue", "turn", "speaker", "score", "", "text"],
        [[one["dialogue"], one["turn"], one["speaker"], one["score"], _bar(one["score"]), one["text"]] for one in rows],
    )


@app.command(epilog=EVALUATE_EPILOG)
def evaluate(
    models: Models,
    human: HumanPaths,
    aspect: Aspect = None,
    metrics: Annotated[str | None, typer.Option("--metrics", help="Columns of a table that are other metrics.")] = None,
    annotators: Annotated[
        str | None, typer.Option("--annotators", help="Columns of a table that are people. Usual: all numbers.")
    ] = None,
    is_reported_half: Annotated[
        bool, typer.Option("--reported-half", help="Only the half of each set that is never selected on.")
    ] = False,
    is_single: Annotated[
        bool, typer.Option("--single-turn", help="Read the rated turn alone, as the paper's Table 4.")
    ] = False,
    reproduce_paper: Annotated[
        bool, typer.Option("--reproduce-paper", help="Report items that were selected on, marked.")
    ] = False,
    out: Out = None,
    device: Device = "auto",
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """How far scores agree with people, beside what needs no training and the people's own agreement."""
    from turnwise.engage import BASELINES, halves, read_human
    from turnwise.engage import evaluate as held_against
    from turnwise.engage.baselines import SingleTurn
    from turnwise.engage.output import write_evaluation

    check_free(out, overwrite=overwrite)
    columns, people = (
        tuple(name.strip() for name in given.split(",")) if given else () for given in (metrics, annotators)
    )
    sets: list[HumanSet] = [read_human(one, aspect=aspect, metrics=columns, annotators=people) for one in human]
    if is_reported_half:
        sets = [halves(one).reported for one in sets]
    predictors = {name: _loaded(path, device) for name, path in named_paths(models).items()}
    raters, controls = (
        {name: SingleTurn(one) if is_single else one for name, one in some.items()}
        for some in (predictors, _untrained(predictors))
    )
    found = held_against(raters, sets, baselines={**BASELINES, **controls}, reproduce_paper=reproduce_paper)
    if out is not None:
        write_evaluation(found, out, overwrite=overwrite)
    print_json(found.to_dict()) if json else _show_evaluation(found)


@app.command(epilog=DEPTH_EPILOG)
def depth(
    models: Models,
    corpus: Annotated[str, typer.Option("--corpus", help="A file, a folder or a name.")],
    split: Annotated[str, typer.Option("--split", help="The split that is predicted.")] = "test",
    train_split: Annotated[str, typer.Option("--train-split", help="Whose average length a baseline knows.")] = "train",
    out: Out = None,
    device: Device = "auto",
    limit: Limit = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How well remaining depth is predicted: squared error and correlations, beside baselines."""
    from turnwise.engage import examples
    from turnwise.engage.depth import measure_depth
    from turnwise.engage.fitting import dealt
    from turnwise.engage.output import write_depth

    quiet = quiet or json
    check_free(out, overwrite=overwrite)
    predictors = {name: _loaded(path, device) for name, path in named_paths(models).items()}
    data = load_corpus([corpus], format=format, on_error=on_error, limit=limit, quiet=quiet)
    if len(data.splits) == 1 and split not in data.splits:  # dealt as in training, so that what was learnt is left out
        data = dealt(data, seed=int(next(iter(predictors.values())).origin.get("seed", 0)))
    held_out, training = (examples(data.split(name)) for name in (split, train_split))
    with progress_bar("predicting", quiet=quiet) as progress:
        found = measure_depth({**predictors, **_untrained(predictors)}, held_out, training=training, progress=progress)
    if out is not None:
        write_depth(found, out, overwrite=overwrite)
    if json:
        print_json(found.to_dict())
        return
    both = {**found.models, **found.baselines}
    rows = [[name, *map(_with_ends, (one.mse, one.pearson, one.spearman))] for name, one in both.items()]
    print_table(["", "MSE × 100", "Pearson", "Spearman"], rows)


@app.command(name="rank", epilog=RANK_EPILOG)
def rank_candidates(
    model: Model,
    file: Annotated[str, typer.Argument(help="JSON lines of context (or messages) and candidates; - for input.")],
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Order candidate responses by how engaging they are for their context."""
    from turnwise.engage.live import rank

    predictor = _loaded(model, device)
    ranked = [(asked, rank(predictor, *asked)) for asked in _questions(file)]
    if json:
        shown = [[{"score": score, "candidate": text} for score, text in found] for _, found in ranked]
        print_json({"model": predictor.name, "ranked": shown})
        return
    for (context, _), found in ranked:
        title = context[-1] if context else ""
        print_table(["score", "", "candidate"], [[score, _bar(score), text] for score, text in found], title=title)


@app.command(epilog=WATCH_EPILOG)
def watch(
    model: Model,
    alert: Annotated[str, typer.Option("--alert", help="So many falling turns, all under a score: 3<0.3.")] = "3<0.3",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Read a conversation line by line, each a turn or 'Speaker: turn', and show the score as it goes."""
    from turnwise.engage.live import Monitor

    monitor = Monitor(_loaded(model, device), _rule(alert))
    for line in sys.stdin:
        speaker, text = _spoken(line.strip())
        if text:
            found = monitor.hear(text, speaker=speaker)
            typer.echo(orjson.dumps(found.to_dict()).decode() if json else _shown(found))


# --- What was given ---------------------------------------------------------------------------------------------------


def _loaded(path: str, device: str) -> Predictor:
    from turnwise.engage import load
    from turnwise.model.loading import require_torch

    require_torch("A predictor of engagement")
    return load(path, device=device)


def _untrained(predictors: Mapping[str, Predictor]) -> dict[str, Predictor]:
    """The first predictor's encoder as it was, where a package has it, under a random layer: the control RDEP-U."""
    from turnwise.engage.encoder import Encoder
    from turnwise.engage.packaged import PACKAGED
    from turnwise.engage.predictor import Predictor

    one = next(iter(predictors.values()))
    encoder, is_packaged = one.encoder, one.encoder.name in PACKAGED
    if is_packaged:
        encoder = Encoder.load(encoder.name, device=str(encoder.device))
    return {"untrained" if is_packaged else "untrained layer": Predictor.untrained(encoder, one.settings)}


def _check_frozen(is_frozen: bool, others: Mapping[str, Any], cache: Path | None) -> None:
    """Refuse options that would do nothing."""
    given = [f"--{name.removesuffix('_turns')}" for name, value in others.items() if value is not None]
    if is_frozen and given:
        raise UsageError(f"--frozen finds its optimum at once: leave out {', '.join(given)}.")
    if cache is not None and not is_frozen:
        raise UsageError("--cache keeps the vectors of a frozen encoder: give --frozen, or leave it out.")


def _recipe(name: str, changes: Mapping[str, Any], *, select: str) -> Recipe:
    from turnwise.engage.settings import PAPER_HUMAN_RATE, RECIPES

    if name not in RECIPES:
        raise unknown_name("recipe", name, RECIPES)
    # The paper's rate for selection by people is another one.
    given: dict[str, Any] = {"rate": PAPER_HUMAN_RATE} if (name, select) == ("paper", "human") else {}
    given |= {key: value for key, value in changes.items() if value is not None}
    steps = given.get("steps")
    if steps is not None:  # a short run warms up and looks at itself in proportion
        usual = RECIPES[name]
        given["warmup"] = usual.warmup * steps // usual.steps
        given["evaluate_every"] = max(1, usual.evaluate_every * steps // usual.steps)
    return replace(RECIPES[name], **given)


def _begin(start: str | None, encoder: str | None, chosen: Mapping[str, Any], *, seed: int, device: str) -> Predictor:
    from turnwise.engage import Settings
    from turnwise.engage.encoder import DEFAULT, Encoder
    from turnwise.engage.predictor import Predictor
    from turnwise.model.loading import choose_device

    if start is not None and (chosen or encoder is not None):
        raise UsageError("--from goes on with a predictor as it is: leave out --encoder, --history and other settings.")
    if start is not None:
        return replace(_loaded(start, device), calibration=None)
    settings = Settings(**chosen)
    return Predictor.untrained(Encoder.load(encoder or DEFAULT, device=choose_device(device)), settings, seed=seed)


def _target(scores: str | None) -> Target | None:
    from turnwise.engage.examples import dialogue_scores

    if scores is None:
        return None
    label, _, scale = scores.partition("=")
    low, _, high = scale.partition(":")
    try:
        return dialogue_scores(label, lowest=float(low), highest=float(high))
    except ValueError as error:
        raise UsageError(f"--scores expects LABEL=LOWEST:HIGHEST, such as eval=1:5, found '{scores}'.") from error


def _selection(path: str | None, *, is_whole: bool) -> HumanSet | None:
    from turnwise.engage import halves, read_human

    if path is None:
        return None
    rated = read_human(path)
    return rated if is_whole else halves(rated).selection


def _rule(written: str) -> Rule:
    from turnwise.engage.live import Rule

    turns, _, below = written.partition("<")
    try:
        return Rule(int(turns), float(below))
    except ValueError as error:
        raise UsageError(f"--alert expects TURNS<SCORE, such as 3<0.3, found '{written}'.") from error


@contextmanager
def _file(path: str) -> Iterator[str]:
    """The path, or a file of what standard input holds."""
    if path != INPUT:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "input.jsonl"
        file.write_bytes(sys.stdin.buffer.read())
        yield os.fspath(file)


def _questions(file: str) -> list[tuple[list[str], list[str]]]:
    """Contexts and candidates, a line each."""
    data = sys.stdin.buffer.read() if file == INPUT else _bytes(Path(file))
    found = [_question(line, number) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    if not found:
        raise UsageError(f"{file}: expected lines of JSON with context and candidates, found none.")
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}.") from error


def _question(line: bytes, number: int) -> tuple[list[str], list[str]]:
    wanted = 'expected {"context": ["…"], "candidates": ["…"]}'
    try:
        read = orjson.loads(line)
        said = _said(read["messages"]) if "messages" in read else list(read["context"])
        candidates = list(read["candidates"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"Line {number}: {wanted}, found {line[:80].decode(errors='replace')}.") from error
    if not candidates or not all(isinstance(one, str) for one in (*said, *candidates)):
        raise UsageError(f"Line {number}: {wanted}, all of them text.")
    return said, candidates


def _said(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Turns of a chat as training has them: without instructions, consecutive messages of one role as one."""
    from turnwise.corpus import Dialogue, Turn
    from turnwise.corpus.turns import merged

    turns = [Turn(one["role"], _content(one["content"])) for one in messages if one["role"] != "system"]
    return merged(Dialogue(tuple(turns))).texts


def _content(given: Any) -> str:
    """The text of a message, which may come in parts."""
    parts = [given] if isinstance(given, str) else [part["text"] for part in given if part.get("type") == "text"]
    return " ".join(parts)


def _spoken(line: str) -> tuple[str | None, str]:
    """`A: Hello` as speaker and text; a line without a short name before a colon is a turn of its own."""
    speaker, colon, text = line.partition(": ")
    is_named = bool(colon) and len(speaker) <= 20 and " " not in speaker
    return (speaker, text.strip()) if is_named else (None, line)


# --- What is shown ----------------------------------------------------------------------------------------------------


@contextmanager
def _tuning_bar(steps: int, *, quiet: bool) -> Iterator[Any]:
    with progress_bar("training", quiet=quiet) as progress:

        def watch(moment: Moment, _: int) -> None:
            if progress is not None:
                progress(moment.step, steps)
            if moment.validation is not None and not quiet:
                human = "" if moment.human is None else f", with people {moment.human:.3f}"
                complain(
                    f"step {moment.step}: MSE × 100 {moment.validation:.2f}, Pearson {moment.pearson or 0:.3f}{human}"
                )

        yield watch


def _show_fitted(predictor: Predictor, more: Mapping[str, Any], *, json: bool) -> None:
    found = {"model": predictor.name, **predictor.settings.to_dict(), **more}
    if json:
        print_json(found)
        return
    print_table(["", ""], [[key, value if isinstance(value, float) else str(value)] for key, value in found.items()])


def _by_dialogue(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    from itertools import groupby

    for (name, split), turns in groupby(rows, key=lambda one: (one["dialogue"], one["split"])):
        kept = [{key: one[key] for key in ("turn", "speaker", "score")} for one in turns]
        yield {"dialogue": name, "split": split, "turns": kept}


def _show_evaluation(found: EngageEvaluation) -> None:
    """A table for each set; the report and --json hold the other correlations and all intervals."""
    from turnwise.engage.evaluate import PARTIAL, SHARE

    for name, one in found.sets.items():
        rows = [
            [
                "one annotator against the others",
                _with_ends(one.ceiling),
                *map(_short, (one.pearson_ceiling, None, None)),
            ]
        ]
        for kind, some in one.raters.items():
            rows += [
                [f"{rater} ({kind.removesuffix('s')})", _with_ends(each["spearman"]),
                 *(_short(each[key]) for key in ("pearson", PARTIAL, SHARE))]
                for rater, each in some.items()
            ]  # fmt: skip
        columns = ["rater", "Spearman", "Pearson", "given length", "share of ceiling"]
        print_table(columns, rows, title=f"{name}: {len(one.rated):,} rated turns")
        if one.rated.note:
            typer.echo(one.rated.note)


def _with_ends(score: Score) -> str:
    if score.value is None or score.interval is None:
        return _short(score)
    low, high = score.interval
    return f"{score.value:.3f} [{low:.3f}, {high:.3f}]"


def _short(score: Score | None) -> str:
    return "–" if score is None or score.value is None else f"{score.value:.3f}"


def _bar(score: float) -> str:
    return "█" * round(BAR * score)


def _shown(found: Reading) -> str:
    interval = "" if found.interval is None else f"  [{found.interval[0]:.2f}, {found.interval[1]:.2f}]"
    trend = "" if found.trend is None else f"  {found.trend:+.2f} a turn"
    return f"{found.turn:>4}  {found.score:.2f} {_bar(found.score):<{BAR}}{interval}{trend}{'  ALERT' * found.is_alert}"
