r"""What the probe paper's five models know, before and after training: the probe tables of docs/results.md.

    python examples/probed_presets.py multiwoz22_text/ --annotated multiwoz21/ --name multiwoz --seeds 0 1 2 \
        --epochs 12 --device cuda --workers 15
    python examples/probed_presets.py personachat/ --name personachat --seeds 0 1 2 \
        --epochs 12 --device cuda --workers 15
    python examples/probed_presets.py --table            # beside the paper's Tables 5 to 7; --table mlp: 12 to 14
    python examples/probed_presets.py --table scaled     # encodings of one scale
    python examples/probed_presets.py --table controls   # what needs no model's knowledge
    python examples/probed_presets.py --agreement        # on how many tasks we come near the paper
    python examples/probed_presets.py --summary          # the mean over all tasks, by each classifier
    python examples/probed_presets.py corpora/personachat.parquet --name personachat --controls    # on a CPU

MultiWOZ: trained on the text of 2.2, probed with the annotated dialogues of 2.1, whose validation split the classifiers
learn from and whose test split they are scored on. The two versions are written differently, so both go through one
normaliser: marks around slot values away, small letters, punctuation apart. PersonaChat: dialogues are split
into training, validation and test (80, 10 and 10 %, seed 0); models learn from the first, are chosen on the second, and
classifiers learn from the first and are scored on the third.

Every preset is trained with its own recipe, but for 12 epochs where the paper has 25, in mixed precision, contexts cut
to their last 100 tokens, and probed before training, at the best epoch by BLEU-2, and at the last. The paper's
classifier punishes large weights, so encodings whose numbers hardly differ tell it nothing, whatever they know:
`scaled` divides all of a model's by one number first. The paper does not print its batch size: `--batch 256` with
`--name "multiwoz, batch 256"` tries another. How many runs share a card is in side_by_side.py.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import side_by_side

if TYPE_CHECKING:
    from dialoscope.corpus import Corpus, Turn
    from dialoscope.probe import ProbeResult

ROWS = Path(__file__).with_suffix(".json")
CONTROLS = Path(__file__).with_name("probed_presets_controls.json")
PAPER = Path(__file__).with_name("probed_presets_paper.json")
PRESETS = ("lstm", "lstm-attn", "bilstm-attn", "hred", "transformer")
CONTEXT_TOKENS = 100
CHECKPOINTS = ("untrained", "best", "last")
GROUPS = ("easy", "medium", "hard")
KINDS = ("logistic", "scaled", "mlp")  # scaled: logistic regression on encodings that spread by 1
NEAR = 5.0  # points of F1


def normalised(text: str) -> str:
    """The same for both versions of MultiWOZ: no marks around slot values, small letters, punctuation apart."""
    text = re.sub(r"[\[\]]", "", text.lower()).replace(" n't", "n't")
    return " ".join(re.findall(r"\w+|[^\w\s]", text))


def normalise(corpus: Corpus) -> Corpus:
    """A corpus with every turn normalised."""
    from dialoscope.corpus import Corpus

    def turn(one: Turn) -> Turn:
        return one._replace(text=normalised(one.text))

    dialogues = [dialogue._replace(turns=tuple(map(turn, dialogue.turns))) for dialogue in corpus]
    return Corpus.of(dialogues, name=corpus.name)


def corpora_of(arguments: argparse.Namespace) -> tuple[Corpus, Corpus, str]:
    """Load the training corpus, the probed corpus, and the name of the split that classifiers learn from."""
    from dialoscope.corpus import load, resplit

    if arguments.annotated is None:
        whole = load(arguments.corpus)
        corpus = resplit(whole, validation=len(whole) // 10, test=len(whole) // 10, seed=0)
        return corpus, corpus, "train"
    return normalise(load(arguments.corpus)), normalise(load(arguments.annotated)), "validation"


def probed(arguments: argparse.Namespace, name: str, seed: int) -> dict[str, Any]:
    """Train one preset from one seed, and probe three of its checkpoints."""
    from dialoscope.model import load_model, preset, run_training
    from dialoscope.model.loading import choose_device
    from dialoscope.probe import measure

    text, probes, train_split = corpora_of(arguments)
    chosen, device = preset(name), choose_device(arguments.device)
    settings = replace(chosen.settings, context_tokens=CONTEXT_TOKENS).override(arguments.settings)
    recipe = replace(
        chosen.recipe,
        epochs=min(arguments.epochs, chosen.recipe.epochs),
        batch_size=arguments.batch or chosen.recipe.batch_size,
        precision="bf16" if device.startswith("cuda") else "fp32",
    )
    out = side_by_side.folder(arguments, name, seed)
    result = run_training(
        text, settings, recipe, out=out, seed=seed, device=device, preset=name, best_by=chosen.best_by, resume=True
    )
    models = {one: load_model(out / one, device=device, batch_size=256) for one in CHECKPOINTS}
    every: dict[str, dict[str, Any]] = {"logistic": {}, "scaled": {"scaled": True}, "mlp": {"classifier": "mlp"}}
    # The untrained checkpoint is a row of its own, and shuffled labels tell of the classifier: once is enough.
    options: dict[str, Any] = {"split": "test", "train_split": train_split, "controls": False, "device": device}
    results = {kind: measure(probes, models=models, **options, **every[kind]) for kind in arguments.classifiers}
    return {
        "corpus": arguments.name,
        "variant": name,
        "seed": seed,
        "epochs": result.epochs,
        "best_epoch": result.best_epoch,
        "perplexity": side_by_side.logged(out / "log.csv", "perplexity"),
        "bleu_2": side_by_side.logged(out / "log.csv", "bleu_2"),
        "seconds": result.seconds,
        "skipped": dict(results[arguments.classifiers[0]].not_probed),
        "probes": {kind: {model: _short(each, model) for model in each.models} for kind, each in results.items()},
    }


def _short(result: ProbeResult, name: str) -> dict[str, Any]:
    """A model's row: its scores by task and group, beside those of the majority."""
    model, tasks = result.models[name], dict[str, Any]()
    for task, score in model.f1.items():
        bare = {"f1_without_none": model.without_none[task].value} if task in model.without_none else {}
        tasks[task] = {
            "f1": score.value,
            "interval": score.interval,
            **bare,
            "n": score.n,
            "labels": result.tasks[task].counts.labels,
            "majority": result.controls["majority"].f1[task].value,
        }
    return {"tasks": tasks, "groups": {group: model.groups[group].value for group in GROUPS}}


def keep_controls(arguments: argparse.Namespace) -> None:
    """What needs no model's knowledge: the answers that never change, the words, and labels that were shuffled.

    Labels are shuffled for the encodings of an LSTM that has seen a few dialogues once: how a model is trained does not
    matter to labels that it cannot know.
    """
    from dialoscope.model import load_model, preset, run_training
    from dialoscope.probe import measure

    text, probes, train_split = corpora_of(arguments)
    chosen = preset("lstm")
    recipe = replace(chosen.recipe, epochs=1)
    few = text.select([*range(100), *(place for place, one in enumerate(text) if one.split == "validation")][:120])
    out = arguments.work / f"controls-{arguments.name}"
    run_training(
        few, replace(chosen.settings, context_tokens=CONTEXT_TOKENS), recipe, out=out, resume=True, device="cpu"
    )
    model = load_model(out / "last", device="cpu", batch_size=256)
    result = measure(probes, models={"lstm": model}, split="test", train_split=train_split, device="cpu")
    controls = {**result.controls, **result.models["lstm"].controls}
    names = [name for name in ("majority", "constant", "bag_of_words", "untrained", "shuffled") if name in controls]
    found = {task: {name: controls[name].f1[task].value for name in names} for task in result.tasks}
    known = json.loads(CONTROLS.read_text()) if CONTROLS.exists() else {}
    side_by_side.keep({**known, arguments.name: found}, CONTROLS)


# --- Tables -----------------------------------------------------------------------------------------------------------


def tables(rows: list[dict[str, Any]], kind: str) -> Iterator[str]:
    """For each corpus and preset: micro-F1 in percent, means over seeds ± standard deviation, beside the paper's.

    Groups are of the tasks that the paper has on that corpus; its Table 8 is of MultiWOZ at the best BLEU.
    """
    paper = _paper()
    rows = [row for row in rows if kind in row["probes"]]
    for corpus, preset in dict.fromkeys((row["corpus"], row["variant"]) for row in rows):
        mine = [row["probes"][kind] for row in rows if (row["corpus"], row["variant"]) == (corpus, preset)]
        theirs = paper["tables"].get(kind, {}).get(_data(corpus), {}).get(preset, {})
        heads = [word for one in CHECKPOINTS for word in ((one, "paper") if theirs else (one,))]
        lines = [
            f"| {preset} on {corpus}, {len(mine)} seeds | majority | {' | '.join(heads)} |",
            "|---|--:|" + "--:|" * len(heads),
        ]
        for task, one in mine[0]["untrained"]["tasks"].items():
            lines.append(f"| {task} | {100 * one['majority']:.1f} | {' | '.join(_cells(mine, theirs, task))} |")
        aggregates = paper["groups"][preset] if (kind, _data(corpus)) == ("logistic", "multiwoz") else {}
        for group in GROUPS:
            lines.append(f"| {group} | {' | '.join(_group(mine, group, _data(corpus), bool(theirs), aggregates))} |")
        yield "\n".join(lines)


def _group(
    mine: list[dict[str, Any]], group: str, data: str, has_paper: bool, aggregates: dict[str, float]
) -> Iterator[str]:
    tasks = [task for task in _asked(mine[0]["untrained"]["tasks"], data) if _difficulty(task) == group]
    if not tasks:
        yield from ["–"] * (1 + (2 if has_paper else 1) * len(CHECKPOINTS))
        return
    known = mine[0]["untrained"]["tasks"]
    yield f"{statistics.mean(100 * known[task]['majority'] for task in tasks):.1f}"
    for checkpoint in CHECKPOINTS:
        yield _spread([statistics.mean(one[checkpoint]["tasks"][task]["f1"] for task in tasks) for one in mine])
        if has_paper:
            yield f"{aggregates[group]:.1f}" if aggregates and checkpoint == "best" else "–"


def _asked(tasks: Iterable[str], data: str) -> list[str]:
    """Those that the paper has on this data: it asks for words in PersonaChat alone."""
    known = _paper()["tables"]["logistic"][data]["lstm"]["untrained"]
    return [task for task in tasks if task in known]


def _difficulty(task: str) -> str:
    from dialoscope.probe import TASKS

    return TASKS[task].difficulty


@cache
def _paper() -> dict[str, Any]:
    """The paper's numbers."""
    found: dict[str, Any] = json.loads(PAPER.read_text())
    return found


def _data(corpus: str) -> str:
    """The data of a row whose corpus also says how it was trained."""
    return corpus.partition(",")[0]


def _cells(mine: list[dict[str, Any]], theirs: dict[str, dict[str, float]], task: str) -> Iterator[str]:
    for checkpoint in CHECKPOINTS:
        yield _spread([one[checkpoint]["tasks"][task]["f1"] for one in mine])
        if theirs:
            value = theirs[checkpoint].get(task)
            yield "–" if value is None else f"{value:.1f}"


def _spread(values: list[float | None]) -> str:
    known = [100 * value for value in values if value is not None]
    if not known:
        return "–"
    more = f" ± {statistics.stdev(known):.1f}" if len(known) > 1 else ""
    return f"{statistics.mean(known):.1f}{more}"


def controls_tables() -> Iterator[str]:
    """For each corpus: what needs no model's knowledge, micro-F1 in percent."""
    kinds = ("majority", "constant", "bag_of_words", "shuffled")
    for corpus, tasks in json.loads(CONTROLS.read_text()).items():
        lines = [
            f"| {corpus} | {' | '.join(kind.replace('_', ' ') for kind in kinds)} |",
            "|---|" + "--:|" * len(kinds),
        ]
        lines += [
            f"| {task} | {' | '.join(f'{100 * one[kind]:.1f}' for kind in kinds)} |" for task, one in tasks.items()
        ]
        yield "\n".join(lines)


def agreement(rows: list[dict[str, Any]], kind: str = "logistic") -> Iterator[str]:
    """On how many of the paper's tasks the mean over seeds lies within five points of the paper's number."""
    paper = _paper()["tables"][kind]
    yield f"| tasks within {NEAR:.0f} points of the paper | {' | '.join(CHECKPOINTS)} |"
    yield "|---|" + "--:|" * len(CHECKPOINTS)
    rows = [row for row in rows if kind in row["probes"]]
    for corpus, preset in dict.fromkeys((row["corpus"], row["variant"]) for row in rows):
        if (theirs := paper.get(_data(corpus), {}).get(preset)) is None:
            continue
        mine = [row["probes"][kind] for row in rows if (row["corpus"], row["variant"]) == (corpus, preset)]
        cells = []
        for checkpoint in CHECKPOINTS:
            both = {
                task: (statistics.mean(100 * one[checkpoint]["tasks"][task]["f1"] for one in mine), value)
                for task, value in theirs[checkpoint].items()
            }
            cells.append(f"{sum(abs(own - other) <= NEAR for own, other in both.values())} of {len(both)}")
        yield f"| {preset} on {corpus} | {' | '.join(cells)} |"


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Micro-F1 averaged over the paper's tasks, by classifier and checkpoint: means over seeds ± standard deviation."""
    yield f"| mean over tasks | majority | {' | '.join(f'{kind}, {one}' for kind in KINDS for one in CHECKPOINTS)} |"
    yield "|---|--:|" + "--:|" * (len(KINDS) * len(CHECKPOINTS))
    for corpus, preset in dict.fromkeys((row["corpus"], row["variant"]) for row in rows):
        mine = [row["probes"] for row in rows if (row["corpus"], row["variant"]) == (corpus, preset)]
        shown = [f"{100 * _mean_over_tasks(mine[0]['logistic']['untrained'], _data(corpus), 'majority'):.1f}"]
        for kind in KINDS:
            of_kind = [one[kind] for one in mine if kind in one]
            few = f" ({len(of_kind)} seeds)" if 0 < len(of_kind) < len(mine) else ""
            shown += [
                _spread([_mean_over_tasks(one[checkpoint], _data(corpus)) for one in of_kind]) + few
                for checkpoint in CHECKPOINTS
            ]
        yield f"| {preset} on {corpus} | {' | '.join(shown)} |"


def _mean_over_tasks(probes: dict[str, Any], data: str, key: str = "f1") -> float:
    return statistics.mean(float(probes["tasks"][task][key]) for task in _asked(probes["tasks"], data))


def main() -> None:
    """Train and probe, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    side_by_side.add_options(parser, ROWS)
    parser.add_argument("--annotated", type=Path, help="a corpus with states, whose validation and test are probed")
    parser.add_argument("--name", default="multiwoz", help="of the corpus, in rows and tables")
    parser.add_argument("--batch", type=int, help="samples of a batch, if not the preset's own number")
    parser.add_argument("--presets", nargs="+", default=PRESETS)
    parser.add_argument("--classifiers", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--table", nargs="?", const="logistic", choices=(*KINDS, "controls"))
    parser.add_argument("--agreement", action="store_true", help="how often we come near the paper")
    parser.add_argument("--controls", action="store_true", help="only what needs no model's knowledge")
    parser.add_argument("--summary", action="store_true", help="means over all tasks")
    arguments = parser.parse_args()
    if arguments.agreement or arguments.summary:
        print("\n".join((agreement if arguments.agreement else summary)(side_by_side.read(ROWS))))
        return
    if arguments.table:
        print(
            "\n\n".join(
                controls_tables() if arguments.table == "controls" else tables(side_by_side.read(ROWS), arguments.table)
            )
        )
        return
    if arguments.controls:
        keep_controls(arguments)
        return
    side_by_side.run(arguments, arguments.presets, rows=ROWS, make=probed, told=lambda row: f"{row['epochs']} epochs")


if __name__ == "__main__":
    main()
