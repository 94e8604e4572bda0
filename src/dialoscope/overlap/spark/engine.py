"""The same overlap on Apache Spark: the same pairs, ratios and matches as in one process, bit for bit.

Tokenising, joining and matching run in the executors, on Arrow tables and compiled loops. `frames` says what is sent
where, `shards` and `buckets` what a task does with its share, `parquet` how Spark reads files itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import dataset

from dialoscope.corpus import Corpus
from dialoscope.errors import OutputError
from dialoscope.files import contents, whole_folder
from dialoscope.overlap.clean import Cleaned, Dropped, clean, drop_in_passes
from dialoscope.overlap.join import exact_threshold
from dialoscope.overlap.measure import Match, Measured, Settings, origin_of
from dialoscope.overlap.pairs import OverlapPairs
from dialoscope.overlap.result import OverlapResult
from dialoscope.overlap.sides import Data, Side, check_same_form, side_of
from dialoscope.overlap.spark.frames import Frames, Limits, rarest_part
from dialoscope.overlap.spark.parquet import Parquet, Units, units_in
from dialoscope.overlap.spark.session import session_at
from dialoscope.overlap.spark.shards import Terms, unit_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Given: TypeAlias = "Data | Parquet"
SHOWN = 20  # pairs that are read back from a folder


@dataclass(frozen=True, eq=False)
class WrittenPairs(OverlapPairs):
    """Pairs that Spark wrote to a folder: the table holds the first of them."""

    total: int = 0

    def __len__(self) -> int:
        return self.total


@contextmanager
def spark(master: str = "local[*]", *, limits: Limits | None = None) -> Iterator[Spark]:
    """Start Spark on this machine, or join a cluster, for the length of a block.

    >>> with spark("local[2]") as engine:                                          # doctest: +SKIP
    ...     engine.pairs(load("dailydialog"), unit="turn", threshold=0.9)
    """
    with session_at(master) as session:
        yield Spark(session, limits or Limits())


@dataclass(frozen=True)
class Spark:
    """Measure, pair and clean on Spark; data is read by Spark itself (`Parquet`), or handed to it by this process."""

    session: SparkSession
    limits: Limits = field(default_factory=Limits)

    def measure(
        self,
        train: Given,
        test: Given | None = None,
        *,
        unit: str | None = None,
        column: str | None = None,
        settings: Settings | None = None,
    ) -> OverlapResult:
        """As `overlap.measure`: the best match of every test unit, or of each unit in the rest of its corpus."""
        options: dict[str, Any] = {"unit": unit, "column": column, "settings": settings}
        return self.measure_with_examples(train, test, choose=lambda result: [], **options).result

    def measure_with_examples(
        self,
        train: Given,
        test: Given | None = None,
        *,
        choose: Callable[[OverlapResult], list[int]],
        unit: str | None = None,
        column: str | None = None,
        settings: Settings | None = None,
    ) -> Measured:
        """The same, with the matches at chosen places spelt out."""
        settings = settings or Settings()
        chosen = unit or ("dialogue" if test is None else "sample")
        sides = self._sides(train, test, chosen, column, settings.context_turns)
        with Frames(self.session, self.limits) as frames:
            bags = frames.bags(sides, tokeniser=settings.tokeniser)
            table = frames.matches(bags[0], bags[-1], is_self=test is None)
            match, n_train = frames.places(bags[0], table["match"])
        result = OverlapResult(
            table["ratio"].fill_null(0.0).to_numpy(),
            match,
            n_train=n_train,
            origin=origin_of(_shape(sides[0]), None if test is None else _shape(sides[1]), settings),
            unit=sides[-1].unit,
            is_within=test is None,
            ids=table["id"],
            partners=table["match_id"],
        )
        return Measured(result, _spelt(sides, table.take(pa.array(choose(result), pa.int64()))), settings.tokeniser)

    def pairs(
        self,
        data: Given,
        against: Given | None = None,
        *,
        unit: str = "dialogue",
        threshold: float | str = 0.75,
        column: str | None = None,
        context_turns: int = 1,
        tokeniser: str = "reference",
        folder: Path | None = None,
        overwrite: bool = False,
    ) -> OverlapPairs:
        """As `overlap.pairs`; with a `folder` Spark writes the pairs there, and this process never holds them."""
        limit = exact_threshold(threshold)
        sides = self._sides(data, against, unit, column, context_turns)
        with Frames(self.session, self.limits) as frames:
            bags = frames.bags(sides, tokeniser=tokeniser)
            terms = Terms(limit, is_self=against is None, part=rarest_part(bags, sides[0].parts))
            found = _named(frames.pairs(bags, terms), bags)
            told: dict[str, Any] = {"unit": sides[0].unit, "threshold": str(threshold), "units": bags[0].count()}
            if folder is None:
                return OverlapPairs(found.toArrow(), **told)
            return WrittenPairs(**_written(found, folder, overwrite=overwrite), **told)

    def clean(
        self,
        data: Data,
        *,
        threshold: float | str,
        validation: int,
        test: int,
        seed: int = 0,
        column: str | None = None,
        context_turns: Sequence[int] = (1, 3),
        tokeniser: str = "reference",
    ) -> Cleaned:
        """As `overlap.clean`: Spark finds the copies in every pass, this process holds the corpus and splits it."""
        return clean(
            data,
            threshold=threshold,
            validation=validation,
            test=test,
            seed=seed,
            column=column,
            context_turns=context_turns,
            tokeniser=tokeniser,
            drop=partial(self._dropped, threshold=threshold, tokeniser=tokeniser),
        )

    def _dropped(self, corpus: Corpus, *, threshold: float | str, tokeniser: str) -> Dropped:
        with Frames(self.session, self.limits) as frames:
            (bags,) = frames.bags([self._units(corpus, "dialogue", None, 1)], tokeniser=tokeniser)
            limit = exact_threshold(threshold)
            distinct, firsts = frames.distinct(bags, len(corpus))
            pairs = frames.keep(frames.pairs([distinct], Terms(limit, is_strict=True)))
            # Copies overlap by 1, which is not over 1.
            return drop_in_passes(
                corpus, partial(frames.partners, pairs), firsts if limit < 1 else np.arange(len(corpus))
            )

    def _sides(self, one: Given, other: Given | None, unit: str, column: str | None, context_turns: int) -> list[Units]:
        given = [one] if other is None else [one, other]
        sides = [self._units(data, unit, column, context_turns) for data in given]
        check_same_form(sides[0].unit, sides[0].parts, sides[-1].unit, sides[-1].parts)
        return sides

    def _units(self, data: Given, unit: str, column: str | None, context_turns: int) -> Units:
        if isinstance(data, Parquet):
            return units_in(self.session, data, unit=unit, context_turns=context_turns)
        side = side_of(data, unit=unit, column=column, context_turns=context_turns)
        table = unit_table(np.arange(len(side)), side.ids, side.texts)
        return Units(self.session.createDataFrame(table), side.name, side.unit, len(side.texts))


def _named(found: DataFrame, bags: list[DataFrame]) -> DataFrame:
    """Pairs by id, in order."""
    firsts = bags[0].selectExpr("key AS first", "id AS first_id")
    seconds = bags[-1].selectExpr("key AS second", "id AS second_id")
    named = found.join(firsts, "first").join(seconds, "second").orderBy("first", "second")
    return named.selectExpr("first_id AS first", "second_id AS second", "ratio")


def _written(found: DataFrame, folder: Path, *, overwrite: bool) -> dict[str, Any]:
    """Pairs as a folder of Parquet files, whole or not at all; and the first of them with their number."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    with whole_folder(folder, overwrite=overwrite, check=_check_pairs) as unfinished:
        counted = found.observe(seen, F.count(F.lit(1)).alias("pairs"))
        counted.write.mode("append").parquet(f"file://{unfinished.absolute()}")
        for extra in [*unfinished.glob(".*.crc"), *unfinished.glob("_SUCCESS")]:
            extra.unlink()
        told = _read_back(sorted(unfinished.glob("*.parquet")))
        if told["total"] != seen.get["pairs"]:
            raise OutputError(
                f"{folder}: Spark wrote {seen.get['pairs']:,} pairs, and {told['total']:,} are found here. Give a "
                "folder on a disk that all its machines share."
            )
    return told


def _read_back(files: list[Path]) -> dict[str, Any]:
    if not files:
        return {"table": pa.table({}), "total": 0}
    found = dataset.dataset([str(file) for file in files])
    return {"table": found.head(SHOWN), "total": found.count_rows()}


def _check_pairs(folder: Path) -> None:
    """Only a folder of pairs is replaced."""
    others = sorted(name for name in contents(folder) if not name.endswith(".parquet"))
    if others:
        raise OutputError(f"{folder}: expected a folder of pairs to replace, found {others[0]} in it. Give a new one.")


def _shape(units: Units) -> Side:
    """What an origin is told of units: everything but the units."""
    nothing = pa.chunked_array([], pa.string())
    return Side(units.name, units.unit, nothing, (nothing,) * units.parts, np.arange(0), pa.table({}))


def _spelt(sides: list[Units], chosen: pa.Table) -> tuple[Match, ...]:
    """A few matches with their texts, looked up by key."""
    if not len(chosen):
        return ()
    texts = _texts_of(sides[-1], chosen["key"].to_pylist())
    others = _texts_of(sides[0], chosen["match"].to_pylist())
    return tuple(
        Match(row["id"], row["match_id"], row["ratio"], texts[row["key"]], others[row["match"]])
        for row in chosen.to_pylist()
    )


def _texts_of(units: Units, keys: list[int]) -> dict[int, tuple[str, ...]]:
    from pyspark.sql import functions as F

    rows = units.frame.where(F.col("key").isin(keys)).drop("id").toArrow().to_pylist()
    return {row.pop("key"): tuple(row.values()) for row in rows}
