"""Runs on disk: the numbers, the report, and a row for every rated turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dialoscope.engage.depth import Case, DepthResult, cases
from dialoscope.engage.evaluate import EngageEvaluation
from dialoscope.engage.report import Conversation, depth_section, people_section
from dialoscope.report import write_run

TURNS, ITEMS = "turns.parquet", "items.parquet"


def write_depth(found: DepthResult, out: str | Path, *, overwrite: bool = False) -> Path:
    """The run's folder of a prediction of remaining depth (see `dialoscope.report.run`), whole or not at all."""
    return write_run(
        out,
        instrument="engage",
        data=found.to_dict(),
        section=depth_section(found, conversation=chosen_conversation(found), cases=chosen_cases(found)),
        origin=found.origin,
        overwrite=overwrite,
        fill=lambda folder: pq.write_table(_turns(found), folder / TURNS),
    )


def write_evaluation(found: EngageEvaluation, out: str | Path, *, overwrite: bool = False) -> Path:
    """The run's folder of an evaluation by people."""
    return write_run(
        out,
        instrument="engage",
        data=found.to_dict(),
        section=people_section(found),
        origin=found.origin,
        overwrite=overwrite,
        fill=lambda folder: pq.write_table(_items(found), folder / ITEMS),
    )


def chosen_cases(found: DepthResult) -> Mapping[str, Sequence[Case]]:
    """Turns to look at, of the first model."""
    return cases(next(iter(found.models.values())), found.examples) if found.models else {}


def chosen_conversation(found: DepthResult) -> Conversation | None:
    """The first conversation of usual length, with the first model's scores."""
    if not found.models:
        return None
    examples, scores = found.examples, next(iter(found.models.values())).scores
    usual = float(examples.lengths.mean())
    place = min(range(len(examples)), key=lambda one: (abs(examples.lengths[one] - usual), one))
    first, stop = examples.starts[place], examples.starts[place + 1]
    name = examples.ids[place] if examples.ids else str(place)
    return Conversation(name, examples.texts[first:stop], scores[first:stop], examples.targets[first:stop])


def _turns(found: DepthResult) -> pa.Table:
    """A row for each turn; models and baselines have columns of their own, for a model may be called `random`."""
    examples = found.examples
    ids = [name for name, count in zip(examples.ids, examples.lengths, strict=True) for _ in range(count)]
    kinds = {"score": found.models, "baseline": found.baselines}
    scores = {f"{kind} {name}": one.scores for kind, some in kinds.items() for name, one in some.items()}
    return pa.table({"dialogue": ids, "turn": examples.positions, "remaining_depth": examples.targets, **scores})


def _items(found: EngageEvaluation) -> pa.Table:
    """A row for each set, rater and item, so that correlations can be computed again."""
    rows = [
        (name, kind, rater, key, cluster, float(mean), float(score))
        for name, one in found.sets.items()
        for kind, some in one.scores.items()
        for rater, scores in some.items()
        for key, cluster, mean, score in zip(one.rated.keys, one.rated.clusters, one.rated.mean, scores, strict=True)
    ]
    names = ("set", "kind", "rater", "item", "dialogue", "people", "score")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {})
