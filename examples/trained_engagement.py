"""Predictors of remaining depth on the paper's corpora, held against people: the engage tables of docs/results.md.

    python examples/all_studies.py gather data/ corpora/     # a Parquet file for each corpus
    python examples/trained_engagement.py corpora/ --human dailydialog_human/ --device cuda --workers 6
    python examples/trained_engagement.py --table depth      # as the paper's Tables 1 and 2
    python examples/trained_engagement.py --table people     # DailyDialog-Human, beside the paper's Table 3
    python examples/trained_engagement.py --table ablations  # one option changed, beside the paper's Table 5

A variant names a corpus, or `mixture` for all of them, and the predecessors that are averaged: `dailydialog-h2`. More
words change one option of the paper's Table 5: `mixture-h0-sigmoid`, `mixture-h0-shuffled`, `mixture-h0-human`, which
is selected by people; its half of DailyDialog-Human is not reported. Every predictor is reported on the other half.
`dailydialog-h2-frozen` fits the linear layer alone, `dailydialog-h2-frozen-mpnet` on a larger encoder, which computes
in bfloat16: a CPU will do. `mixture-h0-untrained` has learnt nothing, its linear layer is random: a control.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import side_by_side

if TYPE_CHECKING:
    from dialoscope.engage.predictor import Predictor

ROWS = Path(__file__).with_suffix(".json")
MIXTURE = "mixture"
PAPERS = ("dailydialog", "personachat", "empathetic_dialogues", "wizard_of_wikipedia")
CORPORA = (*PAPERS, "chitchat")
HISTORIES = (0, 2, 3)
ABLATIONS = ("shuffled", "sigmoid", "classes2", "classes5", "classes10", "cls", "max", "min", "human", "flat")
# Table 5's Spearman correlations on DailyDialog-Human: all of it, by checkpoints that were selected on it, but for the
# first, which was selected by validation loss.
TABLE_5 = {
    "mixture-h0": 0.34,
    "mixture-h0-human": 0.62,
    "mixture-h0-untrained": None,
    "mixture-h0-shuffled": -0.14,
    "mixture-h0-sigmoid": 0.22,
    "mixture-h0-classes2": 0.06,
    "mixture-h0-classes5": -0.02,
    "mixture-h0-classes10": 0.10,
    "mixture-h0-cls": 0.41,
    "mixture-h0-max": 0.35,
    "mixture-h0-min": 0.26,
    "mixture-h2": 0.53,
    "mixture-h2-flat": 0.53,
    "mixture-h3": 0.52,  # -H4: the paper counts the turn itself
}
GROUPS = {
    "depth": tuple(f"{name}-h0" for name in CORPORA),
    "histories": tuple(f"{MIXTURE}-h{history}" for history in HISTORIES),
    "frozen": tuple(
        f"{name}-h{history}-frozen{more}"
        for more in ("", "-mpnet")
        for name in ("dailydialog", "empathetic_dialogues")
        for history in HISTORIES
    ),
    "ablations": tuple(f"{MIXTURE}-h{2 if more == 'flat' else 0}-{more}" for more in ABLATIONS),
    "controls": (f"{MIXTURE}-h0-untrained",),
}


def options_of(words: Sequence[str]) -> dict[str, Any]:
    """Shape that the words of a variant change."""
    found: dict[str, Any] = {}
    for word in words:
        if word.startswith("classes"):
            found["classes"] = int(word.removeprefix("classes"))
        elif word in ("cls", "max", "min"):
            found["pooling"] = word
        elif word == "sigmoid":
            found["activation"] = word
        elif word == "flat":
            found["is_flat"] = True
        elif word not in ("shuffled", "human", "paper", "frozen", "mpnet", "untrained"):
            raise SystemExit(f"'{word}' is no part of a variant; one is called mixture-h0-sigmoid")
    return found


def trained(arguments: argparse.Namespace, name: str, seed: int) -> dict[str, Any]:
    """Train one variant from one seed; predict depth on every test split, and rate what people rated."""
    from dialoscope.corpus import load
    from dialoscope.engage import PredictorSettings, read_human
    from dialoscope.engage.encoder import Encoder
    from dialoscope.engage.fitting import fit_all, fit_head, material_for
    from dialoscope.engage.human_sets import halves
    from dialoscope.engage.predictor import Predictor
    from dialoscope.engage.shape import RECIPES, Recipe, Shape
    from dialoscope.model.loading import choose_device

    corpus, history, *words = name.split("-")
    settings = Shape(history=int(history.removeprefix("h")), **options_of(words))
    found = {one: load(arguments.corpus / f"{one}.parquet") for one in CORPORA}
    learnt = [found[one] for one in (CORPORA if corpus == MIXTURE else (corpus,))]
    everything = read_human(arguments.human)
    rated = halves(everything)
    recipe: Recipe = RECIPES["paper" if "paper" in words else "default"]
    if arguments.steps:
        recipe = replace(
            recipe,
            steps=arguments.steps,
            warmup=arguments.steps // 10,
            evaluate_every=max(1, arguments.steps // 20),
            batch_turns=arguments.batch,
        )
    name_of_encoder = "mpnet" if "mpnet" in words else arguments.encoder
    dtype = "bfloat16" if "mpnet" in words else "float32"  # 109 million weights: half the time on a CPU
    encoder = Encoder.load(name_of_encoder, device=choose_device(arguments.device)).using(dtype=dtype)
    tests = {one: data for one, data in found.items() if corpus in (MIXTURE, one)}
    row = {"corpus": arguments.name, "variant": name, "seed": seed}
    begin, out = time.monotonic(), side_by_side.folder(arguments, name, seed)
    out.mkdir(parents=True, exist_ok=True)
    if "untrained" in words:
        predictor = Predictor.untrained(encoder, settings, seed=seed)
        return {**row, "seconds": 0.0, **measured(predictor, tests, rated, everything)}
    if "frozen" in words:
        predictor = fit_head(
            material_for(learnt, PredictorSettings(shuffled="shuffled" in words, seed=seed)),
            start=Predictor.untrained(encoder, settings, seed=seed),
            seed=seed,
            cache=arguments.work / "vectors",  # one encoding serves all histories
        )
        seconds = time.monotonic() - begin
        return {**row, "seconds": seconds, **measured(predictor.using(dtype=dtype), tests, rated, everything)}
    result = fit_all(
        material_for(learnt, PredictorSettings(shuffled="shuffled" in words, seed=seed)),
        start=Predictor.untrained(encoder, settings, seed=seed),
        out=out,
        recipe=recipe,
        seed=seed,
        select="human" if "human" in words else "valloss",
        human=rated.selection,
        resume=True,
    )
    began = side_by_side.begin_measuring(arguments, name, seed)
    measures = measured(result.predictor, tests, rated, None if "human" in words else everything)
    return {
        **row,
        "recipe": recipe.to_dict(),
        "best_step": result.best_step,
        "seconds": result.seconds,
        "log": [
            {"step": one.step, "validation": one.validation, "pearson": one.pearson, "human": one.human}
            for one in result.history
        ],
        **measures,
        "measuring_seconds": time.monotonic() - began,
    }


def measured(predictor: Predictor, tests: Mapping[str, Any], rated: Any, everything: Any | None) -> dict[str, Any]:
    """Depth on every test split, and what people rated: all of it only where nothing was selected on a half."""
    depth = {name: depth_on(predictor, data) for name, data in tests.items()}
    found = {"depth": depth, "people": people_on(predictor, rated.reported)}
    if everything is None:
        return found
    return {**found, "selection": people_on(predictor, rated.selection), "all": people_on(predictor, everything)}


def depth_on(predictor: Predictor, corpus: Any) -> dict[str, Any]:
    """Tables 1 and 2 on one corpus's test split."""
    from dialoscope.engage import depth

    found = depth(corpus, models={"model": predictor})
    numbers = ("mse", "pearson", "spearman")
    return {name: {key: found.score(name, key).to_dict() for key in numbers} for name in ("model", *found.baselines)}


def people_on(predictor: Predictor, rated: Any) -> dict[str, Any]:
    """How a predictor and the baselines agree with people."""
    from dialoscope.engage import ratings
    from dialoscope.engage.baselines import BASELINES

    found = ratings(rated, models={"model": predictor}).sets[rated.name]
    raters = {name: one for kind in ("models", "baselines") for name, one in found.raters[kind].items()}
    kept = ("pearson", "spearman", "partial_given_length", "share_of_ceiling")
    short = {
        name: {**{key: raters[name][key].value for key in kept}, "interval": raters[name]["spearman"].interval}
        for name in ("model", *BASELINES)
    }
    return {"n": found.n, "ceiling": found.ceiling.value, "raters": short}


# --- Tables -----------------------------------------------------------------------------------------------------------


def depth_table(rows: list[dict[str, Any]]) -> str:
    """One line for each test split and variant: means over seeds."""
    lines = [
        "| test split | predictor | seeds | MSE × 100 | Pearson | Spearman | of seeds |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for corpus in CORPORA:
        mine = [row for row in rows if corpus in row["depth"] and _is_plain(row["variant"])]
        for variant in _variants(mine):
            some = [row["depth"][corpus]["model"] for row in mine if row["variant"] == variant]
            means = [statistics.mean(one[key]["value"] for one in some) for key in ("mse", "pearson", "spearman")]
            spread = [one["spearman"]["value"] for one in some]
            numbers = f"{means[0]:.2f} | {means[1]:.3f} | {means[2]:.3f} | {_of_seeds(spread)}"
            lines.append(f"| {corpus} | {variant} | {len(some)} | {numbers} |")
        for baseline in ("average", "random") if mine else ():
            one = mine[0]["depth"][corpus][baseline]
            numbers = f"{one['mse']['value']:.2f} | {one['pearson']['value']:.3f} | {one['spearman']['value']:.3f}"
            lines.append(f"| {corpus} | {baseline} | | {numbers} | |")
    return "\n".join(lines)


def _variants(rows: list[dict[str, Any]]) -> list[str]:
    """Every variant once: frozen ones first, and a larger encoder after a smaller one."""

    def place(variant: str) -> tuple[bool, bool, int, str]:
        corpus, _, *words = variant.split("-")
        return "frozen" not in words, "mpnet" in words, (*CORPORA, MIXTURE).index(corpus), variant

    return sorted({row["variant"] for row in rows}, key=place)


def _is_plain(variant: str) -> bool:
    """Tuned or frozen or a control, with nothing else of Table 5 changed."""
    return not set(variant.split("-")[2:]) - {"frozen", "mpnet", "untrained", "shuffled"}


def people_table(rows: list[dict[str, Any]]) -> str:
    """DailyDialog-Human's reported half, the other half and both: means over seeds, and the first seed's intervals."""
    return "\n".join(_people_lines([row for row in rows if _is_plain(row["variant"])]))


def ablations_table(rows: list[dict[str, Any]]) -> str:
    """The paper's Table 5: one option changed. Depth is the mean of Pearson's correlations over the test splits."""
    lines = [
        "| predictor | seeds | depth | Spearman | 95 %, first seed | other half | both | 95 %, first seed | paper |",
        "|---|" + "--:|" * 8,
    ]
    for variant, paper in TABLE_5.items():
        mine = [row for row in rows if row["variant"] == variant]
        if mine:
            depth = statistics.mean(one["model"]["pearson"]["value"] for row in mine for one in row["depth"].values())
            some = [row["people"]["raters"]["model"] for row in mine]
            low, high = some[0]["interval"]
            numbers = f"{depth:.3f} | {_mean_of(some)} | {low:.2f} to {high:.2f} | {_wider(mine, 'model')}"
            lines.append(f"| {variant} | {len(mine)} | {numbers} | {'–' if paper is None else f'{paper:.2f}'} |")
    return "\n".join(lines)


def _people_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield (
        "| predictor | seeds | Spearman | of seeds | 95 %, first seed | Pearson | given length | share of ceiling "
        "| other half | both | 95 %, first seed |"
    )
    yield "|---|" + "--:|" * 10
    for variant in _variants(rows):
        mine = [row for row in rows if row["variant"] == variant]
        some = [row["people"]["raters"]["model"] for row in mine]
        values = [one["spearman"] for one in some]
        low, high = some[0]["interval"]
        means = [
            statistics.mean(one[key] for one in some) for key in ("pearson", "partial_given_length", "share_of_ceiling")
        ]
        numbers = f"{statistics.mean(values):.3f} | {_of_seeds(values)} | {low:.2f} to {high:.2f}"
        shown = " | ".join(f"{one:.3f}" for one in means)
        yield f"| {variant} | {len(some)} | {numbers} | {shown} | {_wider(mine, 'model')} |"
    full = [row for row in rows if "all" in row][:1] or rows[:1]  # baselines are the same in every row
    for name, one in rows[0]["people"]["raters"].items() if rows else ():
        if name != "model" and one["spearman"] is not None:
            low, high = one["interval"]
            more = [one[key] for key in ("pearson", "partial_given_length", "share_of_ceiling")]
            shown = " | ".join("–" if value is None else f"{value:.3f}" for value in more)
            interval = f"{low:.2f} to {high:.2f}"
            yield f"| {name} | | {one['spearman']:.3f} | | {interval} | {shown} | {_wider(full, name)} |"
    for row in full:  # the first, if there is any
        reported, *wider = (row[key]["ceiling"] for key in ("people", "selection", "all") if key in row)
        others = " | ".join(f"{one:.3f}" for one in wider) or "– | –"
        yield f"| ceiling: one annotator against the others | | {reported:.3f} | | | | | 1.000 | {others} | |"


def _wider(rows: list[dict[str, Any]], rater: str) -> str:
    """The other half and both, where every seed was free to be held against them."""
    if not all("all" in row for row in rows):
        return "– | – | –"
    other, both = ([row[key]["raters"][rater] for row in rows] for key in ("selection", "all"))
    low, high = both[0]["interval"]
    return f"{_mean_of(other)} | {_mean_of(both)} | {low:.2f} to {high:.2f}"


def _mean_of(raters: list[dict[str, Any]]) -> str:
    return f"{statistics.mean(one['spearman'] for one in raters):.3f}"


def _of_seeds(values: list[float]) -> str:
    """From the lowest to the highest; one seed has no range."""
    return f"{min(values):.3f}–{max(values):.3f}" if len(values) > 1 else "–"


TABLES = {"depth": depth_table, "people": people_table, "ablations": ablations_table}


def main() -> None:
    """Train, or print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    side_by_side.add_options(parser, ROWS)
    parser.add_argument("--name", default="engage", help="of the study, in rows")
    parser.add_argument("--human", type=Path, help="DailyDialog-Human")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--steps", type=int, help="instead of the recipe's")
    parser.add_argument("--batch", type=int, default=256, help="with --steps: turns of a step")
    parser.add_argument("--variants", nargs="+", default=["depth", "histories"], help=f"names, or {', '.join(GROUPS)}")
    parser.add_argument("--table", choices=TABLES)
    arguments = parser.parse_args()
    if arguments.table:
        print(TABLES[arguments.table](sorted(side_by_side.read(ROWS), key=lambda row: row["seed"])))
        return
    names = [name for given in arguments.variants for name in GROUPS.get(given, (given,))]
    side_by_side.run(arguments, names, rows=ROWS, make=trained, told=_told)


def _told(row: dict[str, Any]) -> str:
    return f"with people {row['people']['raters']['model']['spearman']:.3f}"


if __name__ == "__main__":
    main()
