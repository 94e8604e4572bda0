"""The same overlap on Apache Spark: the same pairs, ratios and matches as in one process, bit for bit.

Tokenising, joining and matching run in the executors, on Arrow tables and compiled loops. `frames` says what is sent
where, `shards` and `buckets` what a task does with its share, `parquet` how Spark reads files itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import dataset

from dialoscope.corpus import Corpus
from dialoscope.errors import OutputError, UsageError
from dialoscope.files import contents, whole_folder
from dialoscope.overlap.engine import Choose, Match, Matches, PairsFound
from dialoscope.overlap.join import exact_threshold
from dialoscope.overlap.passes import Dropped, drop_in_passes
from dialoscope.overlap.settings import PairsSettings
from dialoscope.overlap.sides import side_of
from dialoscope.overlap.spark.frames import Frames, Limits, rarest_part
from dialoscope.overlap.spark.parquet import Parquet, ParquetSides, Units, has_single_turns, units_in
from dialoscope.overlap.spark.session import session_at
from dialoscope.overlap.spark.shards import Terms, unit_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHOWN = 20  # pairs that are read back from a folder


@contextmanager
def spark(master: str = "local[*]", *, limits: Limits | None = None) -> Iterator[Spark]:
    """Start Spark on this machine, or join a cluster, for the length of a block.

    >>> with spark("local[2]") as engine:                                          # doctest: +SKIP
    ...     overlap.pairs(load("dailydialog"), unit="turn", threshold=0.9, engine=engine)
    """
    with session_at(master) as session:
        yield Spark(session, limits or Limits())


@dataclass(frozen=True)
class Spark:
    """Compares units on Spark; data is read by Spark itself (`Parquet`), or handed to it by this process."""

    session: SparkSession
    limits: Limits = field(default_factory=Limits)

    def is_of_single_turns(self, data: Corpus | Parquet) -> bool:
        """Whether every dialogue has one turn, as plain texts have."""
        if isinstance(data, Parquet):
            return has_single_turns(self.session, data)
        return bool((data.turns_per_dialogue == 1).all())

    def side(self, data: Corpus | Parquet, *, unit: str, context_turns: int) -> Units:
        """The units of data as a Spark frame."""
        if isinstance(data, ParquetSides):
            raise UsageError("Training and test data are two corpora: give one of them, or the other with against.")
        if isinstance(data, Parquet):
            return units_in(self.session, data, unit=unit, context_turns=context_turns)
        side = side_of(data, unit=unit, context_turns=context_turns)
        table = unit_table(np.arange(len(side)), side.ids, side.texts)
        return Units(self.session.createDataFrame(table), side.name, side.unit, len(side.texts), len(side))

    def best_matches(self, measured: Units, reference: Units, *, words: str, is_same: bool, choose: Choose) -> Matches:
        """Find the best match of every measured unit; a unit never matches itself."""
        sides = [reference] if is_same else [reference, measured]
        with Frames(self.session, self.limits) as frames:
            bags = frames.bags(sides, tokeniser=words)
            table = frames.matches(bags[0], bags[-1], is_self=is_same)
            if is_same and measured.count is not None:
                table = table.slice(0, measured.count)
            match, n_reference = frames.places(bags[0], table["match"])
            keys = table["key"].to_numpy()
            lacking = [np.sort(frames.keys_without_words(each)) for each in bags]
        ratio = table["ratio"].fill_null(0.0).to_numpy()
        chosen = table.take(pa.array(choose(ratio), pa.int64()))
        without_words = int(np.isin(keys, lacking[-1]).sum())
        return Matches(
            table["id"],
            ratio,
            match,
            table["match_id"],
            without_words,
            n_reference,
            len(lacking[0]),
            _matches_of(measured, reference, chosen),
        )

    def pairs(
        self, first: Units, second: Units | None, settings: PairsSettings, *, folder: Path | None, overwrite: bool
    ) -> PairsFound:
        """Find all pairs; with a `folder` Spark writes them there, and this process never holds them."""
        if settings.distinct:
            raise UsageError("Distinct pairs are listed in this process only: leave --engine spark out.")
        limit = exact_threshold(settings.threshold)
        with Frames(self.session, self.limits) as frames:
            bags = frames.bags([first] if second is None else [first, second], tokeniser=settings.words)
            terms = Terms(limit, is_self=second is None, part=rarest_part(bags, first.parts))
            pairs = _named(frames.pairs(bags, terms), bags)
            units, other_units = bags[0].count(), None if second is None else bags[-1].count()
            if folder is not None:
                table, total = _written(pairs, folder, overwrite=overwrite)
            else:
                table = pairs.toArrow()
                total = len(table)
        return PairsFound(table, total, units, other_units)

    def drop_copies(self, corpus: Corpus, *, threshold: float, words: str) -> Dropped:
        """Spark finds the partners in every pass; this process holds the corpus."""
        with Frames(self.session, self.limits) as frames:
            (bags,) = frames.bags([self.side(corpus, unit="dialogue", context_turns=1)], tokeniser=words)
            limit = exact_threshold(threshold)
            distinct, firsts = frames.distinct(bags, len(corpus))
            pairs = frames.keep(frames.pairs([distinct], Terms(limit, is_strict=True)))
            # Copies overlap by 1, which is not over 1.
            return drop_in_passes(
                corpus, partial(frames.partners, pairs), firsts if limit < 1 else np.arange(len(corpus))
            )


def _named(pairs: DataFrame, bags: list[DataFrame]) -> DataFrame:
    """Pairs by id, in order."""
    firsts = bags[0].selectExpr("key AS first", "id AS first_id")
    seconds = bags[-1].selectExpr("key AS second", "id AS second_id")
    named = pairs.join(firsts, "first").join(seconds, "second").orderBy("first", "second")
    return named.selectExpr("first_id AS first", "second_id AS second", "ratio")


def _written(pairs: DataFrame, folder: Path, *, overwrite: bool) -> tuple[pa.Table, int]:
    """Pairs as a folder of Parquet files, whole or not at all; and the first of them with their number."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    with whole_folder(folder, overwrite=overwrite, check=_check_pairs) as unfinished:
        counted = pairs.observe(seen, F.count(F.lit(1)).alias("pairs"))
        counted.write.mode("append").parquet(f"file://{unfinished.absolute()}")
        for extra in [*unfinished.glob(".*.crc"), *unfinished.glob("_SUCCESS")]:
            extra.unlink()
        files = [str(file) for file in sorted(unfinished.glob("*.parquet"))]
        written = dataset.dataset(files) if files else None
        table, total = (pa.table({}), 0) if written is None else (written.head(SHOWN), written.count_rows())
        if total != seen.get["pairs"]:
            raise OutputError(
                f"{folder}: Spark wrote {seen.get['pairs']:,} pairs, and {total:,} are found here. Give a "
                "folder on a disk that all its machines share."
            )
    return table, total


def _check_pairs(folder: Path) -> None:
    """Only a folder of pairs is replaced."""
    others = sorted(name for name in contents(folder) if not name.endswith(".parquet"))
    if others:
        raise OutputError(f"{folder}: expected a folder of pairs to replace, found {others[0]} in it. Give a new one.")


def _matches_of(measured: Units, reference: Units, chosen: pa.Table) -> tuple[Match, ...]:
    """A few matches with their texts, looked up by key."""
    if not len(chosen):
        return ()
    texts = _texts_of(measured, chosen["key"].to_pylist())
    others = _texts_of(reference, chosen["match"].to_pylist())
    return tuple(
        Match(row["id"], row["match_id"], row["ratio"], texts[row["key"]], others[row["match"]])
        for row in chosen.to_pylist()
    )


def _texts_of(units: Units, keys: list[int]) -> dict[int, tuple[str, ...]]:
    from pyspark.sql import functions as F

    rows = units.frame.where(F.col("key").isin(keys)).drop("id").toArrow().to_pylist()
    return {row.pop("key"): tuple(row.values()) for row in rows}
