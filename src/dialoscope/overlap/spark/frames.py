"""Bags, pairs and best matches as Spark frames: what is sent to every task, and what meets where.

One vocabulary holds for all: words are counted by Spark and sent to every task, the rarest first. One side of a join,
or the training set, is sent to every task while it fits. Beyond that, bags meet in the buckets of their prefix tokens
(see `buckets`), and each part of the training set names its best matches, of which the best are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.overlap.best import NONE, Ratios
from dialoscope.overlap.index import signature_words
from dialoscope.overlap.scan import Ints
from dialoscope.overlap.spark import buckets, shards
from dialoscope.overlap.spark.parquet import Units
from dialoscope.overlap.spark.session import no_word_of_pandas
from dialoscope.overlap.spark.shards import Share, Terms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAIRS = "first long, second long, ratio double"
BEST = "key long, ratio double, match long"


@dataclass(frozen=True)
class Limits:
    """How much one task holds; results do not depend on it."""

    held_bytes: int = 1 << 29  # of one side of a join, or of a training set; every Python worker has a copy
    bags_per_bucket: int = 100_000
    bags_per_cell: int = 4_096  # a token that more bags have in their prefix is cut


@dataclass(frozen=True)
class Frames:
    """Work in Spark for the length of a block: what it keeps in the executors' memory is released at the end."""

    session: SparkSession
    limits: Limits
    _kept: list[Any] = field(default_factory=list)

    def __enter__(self) -> Frames:
        return self

    def __exit__(self, *error: object) -> None:
        while self._kept:
            self._kept.pop().unpersist()

    def bags(self, sides: Sequence[Units], *, tokeniser: str) -> list[DataFrame]:
        """Bags `key, id, part_0 …` of each side over one vocabulary; equally rare words are in order of their bytes."""
        texts = _union([side.frame for side in sides])
        counted = mapped(texts, partial(shards.words_of, tokeniser=tokeniser), "word string, texts long")
        words = _summed(counted, "word", "texts").sort_by([("texts", "ascending"), ("word", "ascending")])["word"]
        held = self._send(words.cast(pa.large_string()).combine_chunks())
        parts = ", ".join(f"part_{part} array<int>" for part in range(sides[0].parts))
        rank = partial(shards.ranked, tokeniser=tokeniser, words=held)
        return [self.keep(mapped(side.frame, rank, f"key long, id string, {parts}")) for side in sides]

    def keep(self, frame: DataFrame) -> DataFrame:
        """A frame that is computed once, though several questions are asked of it."""
        self._kept.append(frame.persist())
        return frame

    def _send(self, value: Any) -> Any:
        """A broadcast: every task finds the value there."""
        self._kept.append(self.session.sparkContext.broadcast(value))
        return self._kept[-1]

    def _bytes(self, frame: DataFrame) -> int:
        """What these bags take in memory with an index: at most their tokens twice, and a posting for each."""
        tokens = " + ".join(f"size({name})" for name in frame.columns if name.startswith("part_"))
        row = frame.selectExpr("count(*) AS units", f"coalesce(sum({tokens}), 0) AS tokens").collect()[0]
        words = signature_words(row["tokens"], row["units"])
        return int((2 * 4 + 8 * (1 + words)) * row["tokens"] + 48 * row["units"])

    def _fits(self, frame: DataFrame) -> bool:
        return self._bytes(frame) <= self.limits.held_bytes

    # --- Pairs --------------------------------------------------------------------------------------------------------

    def pairs(self, bags: list[DataFrame], terms: Terms) -> DataFrame:
        """All pairs `first, second, ratio` by key: one side goes to every task where it fits, else both to buckets."""
        left, right = bags[0], bags[-1]
        if self._fits(right):
            return self._probed(left, right, terms)
        if not terms.is_self and self._fits(left):
            return self._probed(right, left, terms).selectExpr("second AS first", "first AS second", "ratio")
        return self._bucketed(bags, terms)

    def _probed(self, probes: DataFrame, held: DataFrame, terms: Terms) -> DataFrame:
        index = self._send(shards.held_of(_share(held), terms))
        return mapped(probes, partial(shards.probed, held=index, terms=terms), PAIRS)

    def _bucketed(self, bags: list[DataFrame], terms: Terms) -> DataFrame:
        plan = self._plan(bags, terms)
        columns = [f"{name} {kind}" for name, kind in bags[0].dtypes if name != "id"]
        schema = ", ".join([*columns, "bucket long", "is_right boolean"])
        sent = [
            mapped(frame, partial(buckets.sent, plan=plan, is_right=place == 1), schema)
            for place, frame in enumerate(bags)
        ]
        with no_word_of_pandas():
            return _union(sent).groupBy("bucket").applyInArrow(lambda table: buckets.joined(table, plan=plan), PAIRS)

    def _plan(self, bags: list[DataFrame], terms: Terms) -> buckets.Plan:
        """As many buckets as keep each small; tokens that too many bags have in their prefix are cut."""
        counted = mapped(_union(bags), partial(buckets.prefix_counts, terms=terms), "token int, bags long")
        counts = _summed(counted, "token", "bags").sort_by("token")
        tokens, loads = (counts[name].to_numpy() for name in ("token", "bags"))
        is_heavy = loads > self.limits.bags_per_cell
        groups = -(-loads[is_heavy] // self.limits.bags_per_cell)
        least = 2 * self.session.sparkContext.defaultParallelism  # nobody shall wait for one large bucket
        count = max(least, int(loads.sum()) // self.limits.bags_per_bucket)
        return buckets.Plan(terms, count, tokens[is_heavy], groups)

    # --- The best match, and the best partner -------------------------------------------------------------------------

    def matches(self, known: DataFrame, probes: DataFrame, *, is_self: bool) -> pa.Table:
        """Every probe in order with its best match: `key, id, ratio, match, match_id`, null where it has none."""
        names = known.selectExpr("key AS match", "id AS match_id")
        found = self._best(known, probes, is_self=is_self)
        whole = probes.select("key", "id").join(found, "key", "left").join(names, "match", "left")
        return whole.orderBy("key").select("key", "id", "ratio", "match", "match_id").toArrow()

    def _best(self, known: DataFrame, probes: DataFrame, *, is_self: bool) -> DataFrame:
        """Send the training set to every task where it fits; else the probes, some at a time, to each part of it."""
        if not is_self and self._fits(known):
            return mapped(probes, partial(shards.best_in_held, known=self._send(_share(known))), BEST)
        share, slices = _share(probes), 1 + self._bytes(probes) // max(1, self.limits.held_bytes)
        some = (self._send(share.take(places)) for places in np.array_split(np.arange(len(share.keys)), slices))
        work = (partial(shards.best_in_share, probes=sent, is_self=is_self) for sent in some)
        return _best_of(_union([mapped(known, one, BEST) for one in work]))

    def places(self, known: DataFrame, matches: pa.ChunkedArray) -> tuple[Ints, int]:
        """Keys of matches as places in the training set, and its size: each task counts what stands before which."""
        keys = matches.fill_null(NONE).to_numpy()
        wanted = np.unique(keys[keys != NONE])
        counted = mapped(known, partial(shards.tallied, matches=self._send(wanted)), "at long, units long")
        tally = _summed(counted, "at", "units")
        counts = np.zeros(len(wanted) + 1, dtype=np.int64)
        counts[tally["at"].to_numpy()] = tally["units"].to_numpy()
        places = np.cumsum(counts)[np.searchsorted(wanted, keys)]
        return np.where(keys == NONE, NONE, places), int(counts.sum())

    def keys_without_words(self, bags: DataFrame) -> Ints:
        """Keys of the units that have a part without words; they overlap with nothing."""
        empty = " OR ".join(f"size({name}) = 0" for name in bags.columns if name.startswith("part_"))
        return np.asarray(bags.where(empty).select("key").toArrow()["key"].to_numpy())

    def distinct(self, bags: DataFrame, count: int) -> tuple[DataFrame, Ints]:
        """Each bag that is not empty once, under the key of its first unit; and for each unit the first with its bag.

        Keys are the places of the units here, up to `count`.
        """
        from pyspark.sql import functions as F

        groups = bags.where("size(part_0) > 0").groupBy("part_0")
        found = self.keep(groups.agg(F.min("key").alias("key"), F.collect_list("key").alias("copies")))
        several = found.where("size(copies) > 1").select("key", "copies").toArrow()
        firsts, sizes = np.arange(count), pc.list_value_length(several["copies"]).to_numpy()
        firsts[pc.list_flatten(several["copies"]).to_numpy()] = np.repeat(several["key"].to_numpy(), sizes)
        return found.selectExpr("key", "'' AS id", "part_0"), firsts

    def partners(self, pairs: DataFrame, left: Ints) -> tuple[Ints, Ratios]:
        """The best partner of the first unit left of each bag, the first of equals, or -1; and their ratio."""
        offers = mapped(pairs, partial(shards.partners_in_share, left=self._send(left)), BEST)
        table = _best_of(offers).toArrow()
        units = table["key"].to_numpy()
        partner, best = np.full(len(left), NONE, dtype=np.int64), np.zeros(len(left))
        partner[units], best[units] = table["match"].to_numpy(), table["ratio"].to_numpy()
        return partner, best


def mapped(frame: DataFrame, work: shards.Work, schema: str) -> DataFrame:
    """Work on each partition as one Arrow table."""
    with no_word_of_pandas():
        return frame.mapInArrow(partial(shards.on_partition, work), schema)


def rarest_part(bags: list[DataFrame], parts: int) -> int:
    """The part with the fewest pairs of identical bags, as `sample_join.rarest_part` counts them."""
    if parts == 1:
        return 0
    sides = _union([frame.selectExpr("*", f"{number} AS side") for number, frame in enumerate(bags)])
    pairs = "count(*) * (count(*) - 1) DIV 2" if len(bags) == 1 else "sum(1 - side) * sum(side)"
    found = []
    for part in range(parts):
        by_bag = sides.where(f"size(part_{part}) > 0").groupBy(f"part_{part}").agg(_expression(pairs, "pairs"))
        found.append(by_bag.agg(_expression("coalesce(sum(pairs), 0)", "pairs")).collect()[0]["pairs"])
    return int(np.argmin(found))


def _expression(text: str, name: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(text).alias(name)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.union(other), frames)


def _summed(frame: DataFrame, by: str, column: str) -> pa.Table:
    from pyspark.sql import functions as F

    return frame.groupBy(by).agg(F.sum(column).alias(column)).toArrow()


def _share(frame: DataFrame) -> Share:
    return shards.share_of(frame.drop("id").toArrow())


def _best_of(offers: DataFrame) -> DataFrame:
    """The highest ratio for each key, and the lowest match of equals."""
    from pyspark.sql import functions as F

    best = F.max(F.struct("ratio", (-F.col("match")).alias("back"))).alias("best")
    return offers.groupBy("key").agg(best).selectExpr("key", "best.ratio AS ratio", "-best.back AS match")
