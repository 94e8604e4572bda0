r"""What a leak does to BLEU: Figure 2 and Tables 2 and 4 of the overlap paper, for docs/results.md.

    dialoscope overlap clean dailydialog/ --threshold 0.75 --test-size 1000 --validation-size 1000 --seed 0 --out clean
    python examples/leak_study.py dailydialog/ --cleaned clean/ --epochs 60 --device cuda --workers 6
    python examples/leak_study.py --table curves        # BLEU-2 by epoch, whole test set and its clean part
    python examples/leak_study.py --page leak.html      # the same as a picture, Figure 2
    python examples/leak_study.py --table memorised     # responses that are references, word for word
    python examples/leak_study.py --table cleaned       # beside Table 4

All models are trained without early stopping or halving of the rate, so that they can learn their training set by
heart. `overlap-lstm-original-1` learns from the original DailyDialog with one turn of context; after each epoch it
answers the whole test set, and BLEU-2 is scored on all samples and on those whose overlap with training is at most
0.80. `overlap-lstm-cleaned-3` learns from the cleaned splits with three turns of context, and answers the cleaned test
samples, those without duplicates (`clean/pairs-3`). Answers are greedy, of the best checkpoint by validation perplexity
and of the last: the paper does not say which it took. Metrics are its BLEU and Dist, but without case: the models write
small letters. Marks stand apart on both sides, as DailyDialog has them: where a small letter follows, NLTK's sentences
would not end, and a full stop would be part of its word.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import side_by_side

if TYPE_CHECKING:
    from dialoscope.corpus import Corpus
    from dialoscope.model import DialogueModel

ROWS = Path(__file__).with_suffix(".json")
PRESETS = ("overlap-lstm", "overlap-transformer")
VARIANTS = tuple(f"{preset}-{kind}" for kind in ("original-1", "cleaned-1", "cleaned-3") for preset in PRESETS)
LEAK = 0.8
METRICS = ("bleu-2-overlap", "bleu-4-overlap", "distinct-1-overlap", "distinct-2-overlap")
LONG = 8  # words, from which on a response is no commonplace
MARK = re.compile(r"(?<=\w)([.,!?;:])(?=\s|$)")
CHECKPOINTS = ("best", "last")
JOINED = " __eou__ "  # between the turns of a cleaned pair's context
SHOWN = 10  # memorised responses of a run
# Table 4, DailyDialog: BLEU-2, BLEU-4, Dist-1, Dist-2.
TABLE_4 = {
    "overlap-lstm-cleaned-1": (6.56, 2.11, 3.40, 23.50),
    "overlap-transformer-cleaned-1": (7.33, 2.56, 4.16, 25.44),
    "overlap-lstm-cleaned-3": (7.06, 2.34, 3.18, 22.76),
    "overlap-transformer-cleaned-3": (7.35, 2.65, 4.06, 25.91),
}
ANSWERED = 1024  # contexts at once: answering takes longer than learning where they are few
MARKS = (1, 2, 3, 5, 10, 15, 20, 30, 40, 50, 60)  # epochs that the table of curves shows


def trained(arguments: argparse.Namespace, name: str, seed: int) -> dict[str, Any]:
    """Train one variant from one seed and let it answer."""
    from dialoscope.corpus import load
    from dialoscope.model import load_model, preset, run_training

    which, kind, turns = name.rsplit("-", 2)
    data = load(arguments.corpus if kind == "original" else arguments.cleaned / "corpus")
    chosen = preset(which)
    recipe = replace(chosen.recipe, precision="bf16" if arguments.device.startswith("cuda") else "fp32")
    recipe = replace(recipe, epochs=arguments.epochs, halve_when_stalled=False, patience=None)
    is_clean = _is_clean(data, int(turns)) if kind == "original" else None
    out = side_by_side.folder(arguments, name, seed)
    result = run_training(
        data,
        chosen.settings.override(arguments.settings),
        recipe,
        out=out,
        seed=seed,
        device=arguments.device,
        preset=which,
        best_by="perplexity",
        context_turns=int(turns),
        bleu_samples=0,
        validate=None if is_clean is None else _curve(data.split("test"), int(turns), is_clean),
        resume=True,
    )
    began = side_by_side.begin_measuring(arguments, name, seed)
    models = {one: load_model(out / one, device=arguments.device) for one in CHECKPOINTS}
    answers = {one: _answers(model, data.split("test"), int(turns)) for one, model in models.items()}
    if is_clean is None:
        pairs = arguments.cleaned / f"pairs-{turns}" / "test.parquet"
        parts = {"all": _without_duplicates(pairs, data.split("test"), int(turns))}
    else:
        parts = {"all": [True] * len(is_clean), "clean": is_clean, "leaked": [not one for one in is_clean]}
    row = {
        "corpus": arguments.name,
        "variant": name,
        "seed": seed,
        "epochs": result.epochs,
        "best_epoch": result.best_epoch,
        "perplexity": side_by_side.logged(out / "log.csv", "perplexity"),
        "seconds": result.seconds,
        "samples": {part: sum(kept) for part, kept in parts.items()},
        "scores": {one: {part: _scored(*some, kept) for part, kept in parts.items()} for one, some in answers.items()},
    }
    if is_clean is None:
        return {**row, "measuring_seconds": time.monotonic() - began}
    curves = {part: side_by_side.logged(out / "log.csv", f"bleu_2_{part}") for part in ("all", "clean")}
    learnt_by_heart = memorised(data, int(turns), answers["last"], is_clean)
    return {**row, "curves": curves, "memorised": learnt_by_heart, "measuring_seconds": time.monotonic() - began}


def _is_clean(data: Corpus, turns: int) -> list[bool]:
    """Whether each test sample overlaps with training by at most 0.80."""
    from dialoscope.overlap import measure

    found = measure(data, context_turns=turns)
    return [bool(ratio <= LEAK) for ratio in found.ratio]


def _without_duplicates(pairs: Path, test: Corpus, turns: int) -> list[bool]:
    """Which samples of the test split are among the cleaned pairs."""
    import pyarrow.parquet as pq

    from dialoscope.corpus import samples

    rows = pq.read_table(pairs).to_pylist()
    known = {(row["dialogue"], row["context"], row["response"]) for row in rows}
    said = ((one.dialogue, JOINED.join(one.context), one.response) for one in samples(test, context_turns=turns))
    return [one in known for one in said]


def _answers(model: Any, test: Corpus, turns: int) -> tuple[list[str], list[str], list[str]]:
    """What a model says and what was said, both in its words, and the dialogues."""
    from dialoscope.model import respond

    model.batch_size = ANSWERED
    written = list(respond(model, test, context_turns=turns))
    meant = [_apart(model.vocabulary.normalise(str(one["reference"]))) for one in written]
    return [_apart(str(one["hypothesis"])) for one in written], meant, [str(one["dialogue"]) for one in written]


def _apart(text: str) -> str:
    """Marks apart from words: "so, shall we?" becomes "so , shall we ?"."""
    return MARK.sub(r" \1", text)


def _scored(hypotheses: list[str], references: list[str], dialogues: list[str], kept: list[bool]) -> dict[str, Any]:
    from dialoscope.metrics import Pairs, score_pairs

    said, meant, whose = (list(compress(column, kept)) for column in (hypotheses, references, dialogues))
    scores = score_pairs(Pairs(said, meant, whose), metrics=METRICS).scores
    return {name: {key: one[key] for key in ("value", "n", "interval")} for name, one in
            ((name, score.to_dict()) for name, score in scores.items())}  # fmt: skip


def _curve(test: Corpus, turns: int, is_clean: list[bool]) -> Callable[[DialogueModel], Mapping[str, float]]:
    """BLEU-2 after an epoch, on all test samples and on the clean ones; words are counted once for both."""
    import numpy as np

    from dialoscope.metrics import Options, Pairs
    from dialoscope.metrics.bleu import nltk_corpus_bleu, overlap_matches
    from dialoscope.metrics.statistic import Clusters

    def curve(model: DialogueModel) -> dict[str, float]:
        said, meant, _ = _answers(model, test, turns)
        matches = overlap_matches(Pairs(said, meant), Options())
        parts = {"all": matches, "clean": matches[np.asarray(is_clean)]}
        return {
            f"bleu_2_{part}": nltk_corpus_bleu(some, Clusters.of(None, n=len(some)), order=2).value()
            for part, some in parts.items()
        }

    return curve


def memorised(
    data: Corpus, turns: int, answers: tuple[list[str], list[str], list[str]], is_clean: list[bool]
) -> dict[str, Any]:
    """Responses of some length that are their references, word for word, beside what training has that is nearest."""
    from dialoscope.overlap import measure
    from dialoscope.overlap.sides import side_of

    said, meant, _ = answers
    found = [
        place
        for place in range(len(said))
        if said[place] == meant[place] and sum(word[0].isalnum() for word in meant[place].split()) >= LONG
    ]
    measured = measure(data, context_turns=turns)
    train, test = (side_of(data.split(split), unit="sample", context_turns=turns) for split in ("train", "test"))
    shown = [
        {
            "context": test.texts[0][place].as_py(),
            "response": said[place],
            "training_context": train.texts[0][int(measured.match[place])].as_py(),
            "training_response": train.texts[1][int(measured.match[place])].as_py(),
            "overlap": round(float(measured.ratio[place]), 3),
        }
        for place in found[:SHOWN]
    ]
    leaked = sum(not is_clean[place] for place in found)
    return {"count": len(found), "leaked": leaked, "examples": shown}


# --- Tables -----------------------------------------------------------------------------------------------------------


def curve_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """BLEU-2 by epoch: means over seeds."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if "curves" in row:
            runs.setdefault(row["variant"], []).append(row)
    ends = {len(one["curves"]["all"]) for some in runs.values() for one in some}
    marks = sorted({mark for mark in MARKS if mark <= max(ends, default=0)} | ends)
    yield f"| BLEU-2 after epoch | {' | '.join(map(str, marks))} |"
    yield "|---|" + "--:|" * len(marks)
    for name, some in runs.items():
        for part, said in (("all", "whole test set"), ("clean", f"overlap ≤ {LEAK:.2f}")):
            # A mean over those seeds alone that went so far would not be the row's.
            cells = [_mean([one["curves"][part][mark - 1] for one in some])
                     if all(len(one["curves"][part]) >= mark for one in some) else "–" for mark in marks]  # fmt: skip
            seeds = f"{len(some)} seed{'s' * (len(some) > 1)}"
            yield f"| {name.removesuffix('-original-1')}, {said}, {seeds} | {' | '.join(cells)} |"


def curve_page(rows: list[dict[str, Any]]) -> str:
    """BLEU-2 by epoch as Figure 2 has it, the first seed of each model."""
    from dialoscope.report import Section, render
    from dialoscope.report.charts import Axis, lines

    runs = {row["variant"].removesuffix("-original-1"): row for row in rows if "curves" in row and row["seed"] == 0}
    most = max(len(row["curves"]["all"]) for row in runs.values())
    series = {
        f"{name}, {said}": [*row["curves"][part], *[None] * (most - len(row["curves"][part]))]
        for name, row in runs.items()
        for part, said in (("all", "whole test set"), ("clean", f"overlap ≤ {LEAK:.2f}"))
    }
    chart = lines(
        range(1, most + 1),
        series,
        title="What a leak does to BLEU-2",
        description="BLEU-2 on the test set of DailyDialog and on its part that hardly overlaps training, by epoch.",
        x=Axis("epoch", "d"),
        y=Axis("BLEU-2", ".1f"),
    )
    return render("Leak study", [Section("Leak study", "leak", "What does a leak do to BLEU?", [chart])])


def cleaned_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The cleaned splits beside Table 4: means over seeds ± their standard deviation."""
    heads = " | ".join(f"{one} | paper" for one in ("BLEU-2", "BLEU-4", "Dist-1", "Dist-2"))
    yield f"| model, turns of context | seeds | checkpoint | epoch | {heads} |"
    yield "|---|--:|---|--:|" + "--:|" * 8
    for name, paper in TABLE_4.items():
        some = [row for row in rows if row["variant"] == name]
        which, _, turns = name.rsplit("-", 2)
        for checkpoint in CHECKPOINTS if some else ():
            epochs = "/".join(str(row["best_epoch" if checkpoint == "best" else "epochs"]) for row in some)
            cells = [checkpoint, epochs]
            for metric, theirs in zip(METRICS, paper, strict=True):
                values = [row["scores"][checkpoint]["all"][metric]["value"] for row in some]
                cells += [_mean(values, digits=2), f"{theirs:.2f}"]
            yield f"| {which}, {turns} | {len(some)} | {' | '.join(cells)} |"


def memorised_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Some long responses that are their references."""
    for row in rows:
        if "memorised" in row and row["seed"] == 0:
            found = row["memorised"]
            told = (
                f"{found['count']} responses of {LONG} or more words are their references, {found['leaked']} had leaked"
            )
            yield f"{row['variant']}: {told}."
            yield ""
            yield "| input | response, which is the reference | nearest in training: input | and response |"
            yield "|---|---|---|---|"
            keys = ("context", "response", "training_context", "training_response")
            yield from (f"| {' | '.join(_cell(one[key]) for key in keys)} |" for one in found["examples"][:5])
            yield ""


def _mean(values: list[float], digits: int = 1) -> str:
    if not values:
        return "–"
    more = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{more}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


TABLES = {"curves": curve_table, "cleaned": cleaned_table, "memorised": memorised_table}


def main() -> None:
    """Train and answer, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    side_by_side.add_options(parser, ROWS)
    parser.add_argument("--cleaned", type=Path, help="the cleaned corpus")
    parser.add_argument("--name", default="dailydialog", help="of the corpus, in rows")
    parser.add_argument("--variants", nargs="+", default=VARIANTS)
    parser.add_argument("--table", choices=TABLES)
    parser.add_argument("--page", type=Path, help="write the curves there as a page")
    arguments = parser.parse_args()
    if arguments.page:
        arguments.page.write_text(curve_page(side_by_side.read(ROWS)), encoding="utf-8")
        return
    if arguments.table:
        print("\n".join(TABLES[arguments.table](side_by_side.read(ROWS))))
        return
    side_by_side.run(arguments, arguments.variants, rows=ROWS, make=trained, told=lambda row: f"{row['epochs']} epochs")


if __name__ == "__main__":
    main()
