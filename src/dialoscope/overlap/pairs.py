"""All pairs of units over a threshold, within one corpus or between two: of dialogues, turns or samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from dialoscope.corpus.split import named_splits
from dialoscope.errors import UsageError
from dialoscope.files import whole_file
from dialoscope.overlap.engine import Engine, Here
from dialoscope.overlap.measure import check_data
from dialoscope.overlap.settings import CleanSettings, PairsSettings
from dialoscope.overlap.sides import left_out
from dialoscope.record import Origin
from dialoscope.report.result import skipped
from dialoscope.report.run import record_of
from dialoscope.settings import with_options

if TYPE_CHECKING:
    from dialoscope.overlap.measure import Data

TABLE_WRITERS = {".parquet": pq.write_table, ".csv": pa_csv.write_csv}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class OverlapPairs:
    """Pairs of units, by id, with their overlap ratio; sorted by the first, then the second.

    With `distinct`, `first` and `second` are the first units that have the same words, and `first_copies` and
    `second_copies` count the units that have them.
    """

    settings: PairsSettings
    table: pa.Table  # first, second, ratio
    parts: Mapping[str, int]  # dialogues by corpus
    used: str
    counts: Mapping[str, Any]
    origin: Origin

    def __len__(self) -> int:
        return int(self.counts["pairs"])

    @property
    def is_whole(self) -> bool:
        """Whether the table holds all pairs; those that Spark wrote to a folder are there, and not here."""
        return int(self.table.num_rows) == len(self)

    def closest(self, most: int) -> list[dict[str, Any]]:
        """The pairs with the highest ratios; equal ones in the order of the corpus."""
        ratios = self.table["ratio"].to_numpy() if len(self) else np.zeros(0)
        if len(ratios) > most:
            cut = np.partition(ratios, -most)[-most]
            places = np.concatenate([np.flatnonzero(ratios > cut), np.flatnonzero(ratios == cut)])[:most]
        else:
            places = np.arange(len(ratios))
        order = places[np.argsort(-ratios[places], kind="stable")]
        return list(self.table.take(pa.array(order)).to_pylist())

    def to_dict(self) -> dict[str, Any]:
        """The number of pairs as `--json` has it; the pairs themselves go to a file."""
        return record_of(self, "overlap-pairs", {})

    def save(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write the pairs as Parquet or CSV, by the ending of the file's name."""
        out = Path(out)
        check_ending(out)
        with whole_file(out, overwrite=overwrite) as unfinished:
            TABLE_WRITERS[out.suffix](self.table, unfinished)
        return out

    def __repr__(self) -> str:
        return f"<OverlapPairs {self.origin.corpus.partition('@')[0]}: {len(self):,} pairs>"


def check_ending(path: Path) -> None:
    """A table is Parquet or CSV."""
    if path.suffix not in TABLE_WRITERS:
        raise UsageError(f"Give a file that ends in {' or '.join(TABLE_WRITERS)}, not {path}.")


def pairs(
    corpus: Data,
    *,
    against: Data | None = None,
    settings: PairsSettings | None = None,
    engine: Engine | None = None,
    folder: Path | None = None,
    overwrite: bool = False,
    **options: Any,
) -> OverlapPairs:
    """Find all pairs of units whose overlap ratio is at least the threshold: exact, with no approximate hashing.

    A sample (context, response) overlaps by the smaller ratio of its two parts. Units with the same words make a pair
    each, which in a large corpus of short turns is too many; `distinct` lists them once. With a `folder`, an engine
    such as Spark writes the pairs there itself.

    >>> from dialoscope.corpus import Corpus
    >>> pairs(Corpus.of_texts(["a b c", "x", "a b d"]), threshold=0.6).table["ratio"].to_pylist()
    [0.6666666666666666]
    """
    settings = with_options(settings, PairsSettings, options)
    corpora = [corpus] if against is None else [corpus, against]
    for data in corpora:
        check_data(data, None, engine=engine)
    if folder is not None and engine is None:
        raise UsageError("Only Spark writes pairs to a folder: give an engine, or save the pairs that are returned.")
    if settings.distinct and settings.unit == "sample":
        raise UsageError("Distinct pairs are of whole texts: choose the unit dialogue or turn, or leave distinct out.")
    engine = engine or Here()
    chosen = [chosen_dialogues(corpus, settings)]
    if against is not None:  # the limit cuts what is compared, not what it is compared with
        chosen.append(chosen_dialogues(against, replace(settings, limit=None)))
    sides = [engine.side(data, unit=settings.unit, context_turns=settings.context_turns) for data in chosen]
    second = None if against is None else sides[1]
    listed_pairs = engine.pairs(sides[0], second, settings, folder=folder, overwrite=overwrite)
    numbers = {
        "pairs": listed_pairs.total,
        "units": listed_pairs.units,
        "other_units": listed_pairs.other_units,
        "distinct": listed_pairs.distinct,
    }
    names = [each.name if each.name != chosen[0].name else f"{each.name}, other" for each in chosen[1:]]
    parts = {name: len(data) for name, data in zip([chosen[0].name, *names], chosen, strict=True)}
    listed = " and ".join(f"{name} ({count:,} dialogues)" for name, count in parts.items())
    choices = {"threshold": settings.threshold, **settings.changed()}
    return OverlapPairs(
        settings=settings,
        table=listed_pairs.table,
        parts=parts,
        used=f"Compared: {listed}{' with itself' if against is None else ''}.",
        counts={
            **skipped(left_out(*corpora)),
            **{name: number for name, number in numbers.items() if number is not None},
        },
        origin=Origin(" and ".join(side.name for side in sides), choices),
    )


def chosen_dialogues(data: Any, settings: PairsSettings | CleanSettings) -> Any:
    """The splits that the settings name, or all, and of them at most `limit` dialogues."""
    if settings.split is not None:
        data = named_splits(data, settings.split.replace(" ", "").split(","))
    return data if settings.limit is None else data[: settings.limit]
