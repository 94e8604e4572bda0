"""Clean a corpus of near-copies and split it again, so that no test dialogue stands in the training set.

Near-copies are dropped in passes (see `passes`). Then the dialogues are shuffled and split, flattened into samples, and
exact duplicates among the samples removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dialoscope.corpus import Corpus, resplit
from dialoscope.corpus.dialogue import SPLIT_ORDER
from dialoscope.corpus.shared_ids import named_apart
from dialoscope.corpus.write import write_messages
from dialoscope.errors import UsageError
from dialoscope.overlap.duplicates import without_duplicates
from dialoscope.overlap.engine import Engine, Here, Match
from dialoscope.overlap.made import Made
from dialoscope.overlap.measure import check_data
from dialoscope.overlap.pairs import chosen_dialogues
from dialoscope.overlap.passes import Drop
from dialoscope.overlap.section import cleaned_section
from dialoscope.overlap.settings import CleanSettings
from dialoscope.overlap.sides import left_out
from dialoscope.record import Origin
from dialoscope.report.result import skipped
from dialoscope.report.section import Section
from dialoscope.settings import with_options

SAME = "the same text"  # the reason why a sample is dropped
SHOWN = 5  # examples of drops


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Cleaned(Made):
    """The corpus split again, what was dropped and why, and the samples of each split.

    Saved as a folder::

        DIR/corpus/SPLIT.jsonl           the dialogues that were kept
        DIR/dropped.jsonl                those that were not
        DIR/pairs-K/SPLIT.parquet        samples with K turns of context, without exact duplicates
        DIR/ledger.jsonl                 each dropped dialogue and sample: its reason, partner, ratio and pass
        DIR/result.json, report.html, …  the counts and a page
    """

    instrument: ClassVar[str] = "overlap-clean"

    settings: CleanSettings
    corpus: Corpus
    dropped: Corpus
    drops: tuple[Drop, ...]
    pairs: Mapping[str, Mapping[str, pa.Table]]  # context turns -> split -> samples
    repeats: Mapping[str, pa.Table]  # context turns -> duplicates: id, split, partner
    examples: tuple[Match, ...] = ()

    def ledger(self) -> Iterator[dict[str, Any]]:
        """Everything that was dropped: dialogues in the order of the passes, then samples that repeat another."""
        row: dict[str, Any]
        for drop in self.drops:
            row = {"unit": "dialogue", "id": drop.id, "split": drop.split, "reason": drop.reason}
            yield {**row, "partner": drop.partner, "ratio": drop.ratio, "pass": drop.pass_number}
        for turns, table in self.repeats.items():
            for repeat in table.to_pylist():
                row = {"unit": "sample", "context_turns": int(turns), "id": repeat["id"], "split": repeat["split"]}
                yield {**row, "reason": SAME, "partner": repeat["partner"], "ratio": 1.0, "pass": None}

    def section(self) -> Section:
        """What was kept and dropped, as a section of a page."""
        return cleaned_section(self)

    def fill(self, folder: Path) -> None:
        """Write the splits, what was dropped and the samples."""
        (folder / "corpus").mkdir()
        for split in self.corpus.splits:
            write_messages(self.corpus.split(split), folder / "corpus" / f"{split}.jsonl")
        write_messages(self.dropped, folder / "dropped.jsonl")
        for turns, tables in self.pairs.items():
            (folder / f"pairs-{turns}").mkdir()
            for split, table in tables.items():
                pq.write_table(table, folder / f"pairs-{turns}" / f"{split}.parquet")


def clean(
    corpus: Corpus, *, settings: CleanSettings | None = None, engine: Engine | None = None, **options: Any
) -> Cleaned:
    """Drop near-copies until none is left, split by whole dialogue, flatten, and remove exact duplicates of samples.

    >>> clean(load("dailydialog"), threshold=0.75, validation_size=1000, test_size=1000)      # doctest: +SKIP
    """
    settings = with_options(settings, CleanSettings, options)
    check_data(corpus, None)
    whole = named_apart(chosen_dialogues(corpus, settings))
    drops, kept, passes = (engine or Here()).drop_copies(whole, threshold=settings.threshold, words=settings.words)
    test_size, validation_size = settings.test_size, settings.validation_size
    if validation_size + test_size > len(kept):
        sizes = f"{test_size} test and {validation_size} validation dialogues"
        raise UsageError(
            f"Cannot take {sizes} from the {len(kept)} of {len(whole)} that were kept. "
            "Ask for fewer with --test-size and --validation-size."
        )
    again = resplit(whole.select(kept), validation=validation_size, test=test_size, seed=settings.seed)
    flat = {str(turns): without_duplicates(again, context_turns=turns) for turns in settings.context_turns}
    parts = {split: again.splits.get(split, 0) for split in SPLIT_ORDER}
    return Cleaned(
        settings=settings,
        parts=parts,
        used=f"The kept dialogues were split with seed {settings.seed}: {_listed(parts)}.",
        counts={
            **skipped(left_out(corpus)),
            "dialogues": len(whole),
            "kept": len(kept),
            "dropped": len(drops),
            "passes": passes,
            "samples": {turns: _sizes(tables) for turns, (tables, _) in flat.items()},
            "duplicates": {turns: _counts(repeats["split"]) for turns, (_, repeats) in flat.items()},
        },
        origin=Origin(f"{corpus.name}@{corpus.fingerprint}", _choices(settings), settings.seed),
        corpus=again,
        dropped=whole.select(np.setdiff1d(np.arange(len(whole)), kept)),
        drops=drops,
        pairs={turns: tables for turns, (tables, _) in flat.items()},
        repeats={turns: repeats for turns, (_, repeats) in flat.items()},
        examples=tuple(_match_of(whole, drop) for drop in _worth_showing(drops)),
    )


def _choices(settings: CleanSettings) -> dict[str, Any]:
    """What a signature names; the threshold and the sizes always."""
    fixed = {name: getattr(settings, name) for name in ("threshold", "test_size", "validation_size")}
    return {**fixed, **{name: value for name, value in settings.changed().items() if name != "seed"}}


def _listed(parts: Mapping[str, int]) -> str:
    return ", ".join(f"{split} {count:,}" for split, count in parts.items())


def _sizes(tables: Mapping[str, pa.Table]) -> dict[str, int]:
    return {split: len(tables.get(split, ())) for split in SPLIT_ORDER}


def _counts(splits: pa.ChunkedArray) -> dict[str, int]:
    counts = {row["values"]: row["counts"] for row in pc.value_counts(splits).to_pylist()}
    return {split: counts.get(split, 0) for split in SPLIT_ORDER}


def _worth_showing(drops: tuple[Drop, ...]) -> list[Drop]:
    """The closest drops that are not identical to their partner, and the first that is."""
    near = sorted((drop for drop in drops if drop.ratio < 1), key=lambda drop: -drop.ratio)[: SHOWN - 1]
    return [*near, *[drop for drop in drops if drop.ratio == 1][:1]]


def _match_of(corpus: Corpus, drop: Drop) -> Match:
    texts, others = ("\n".join(corpus[place].texts) for place in (drop.place, drop.partner_place))
    return Match(drop.id, drop.partner, drop.ratio, (texts,), (others,))
