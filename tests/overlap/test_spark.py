"""Spark gives what one process gives, bit for bit, whichever way the bags meet."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoscope import overlap
from dialoscope.corpus import Corpus, Dialogue, Turn, load, write
from dialoscope.errors import CorpusError, MissingExtraError, OutputError, UsageError
from dialoscope.overlap.join import join
from dialoscope.overlap.spark.buckets import Plan, joined, prefix_lengths, sent
from dialoscope.overlap.spark.engine import Spark
from dialoscope.overlap.spark.frames import Frames, Limits
from dialoscope.overlap.spark.parquet import parquet_at, sides_at
from dialoscope.overlap.spark.session import session_at
from dialoscope.overlap.spark.shards import Terms, held_of, probed, share_of
from dialoscope.overlap.tables import read_texts
from dialoscope.overlap.tokens import Bags

pytestmark = pytest.mark.xdist_group("spark")  # one Java at a time, even where tests run on several cores
REASON = (
    "pyspark is not installed (extra: spark)"
    if importlib.util.find_spec("pyspark") is None
    else "no Java here: apt-get install default-jre-headless"
    if shutil.which("java") is None
    else ""
)
needs_spark = pytest.mark.skipif(bool(REASON), reason=REASON)

# Next to nothing is held: bags go to buckets, common tokens are cut, and probes go in slices. Where everything is held,
# as by default, tests that read and write Parquet look at the result as well.
SPLIT = Limits(held_bytes=6_000, bags_per_bucket=200, bags_per_cell=8)

# Java and Spark that do not compile for hours to come.
SHORT_RUN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.sql.codegen.wholeStage=false"


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """As in an executor: for a few bags, waking threads costs more than the work."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", SHORT_RUN)
        with session_at("local[2]") as started:
            for key, value in {"shuffle.partitions": "4", "codegen.wholeStage": "false"}.items():
                started.conf.set(f"spark.sql.{key}", value)
            yield started


def texts(count: int, seed: int) -> list[str]:
    """Few words, so that many overlap; copies, empty texts, single words and one text that all words are in."""
    rng = np.random.default_rng(seed)
    words = np.array(["yes", "no", "I", "you", "see", "why", "not", "Zürich", "x", "y", "z", "late"])
    random = [" ".join(rng.choice(words, size=rng.integers(0, 8))) for _ in range(count)]
    return ["", "yes", "yes", "yes", "...", " ".join(words), "a b c d", "a b c e", "a b c d", *random, ""]


def corpus_of(count: int, seed: int) -> Corpus:
    turns = iter(texts(3 * count, seed))
    return Corpus.of(
        [
            Dialogue((Turn("A", next(turns)), Turn("B", next(turns)), Turn("A", next(turns))), f"d{i}", "all")
            for i in range(count)
        ]
    )


# --- Without Spark: what a task does ----------------------------------------------------------------------------------

Sets = list[set[int]]
SETS = st.lists(st.sets(st.integers(0, 12), max_size=10), max_size=20)
THRESHOLDS = st.sampled_from(["0.5", "0.75", "0.8", "0.99", "1", "1/3", "0.01"]).map(Fraction)


def bags(sets: Sets) -> Bags:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    return Bags(offsets, np.array([token for one in sets for token in sorted(one)], dtype=np.int32))


def rows(sets: Sets) -> pa.Table:
    parts = pa.array([sorted(one) for one in sets], pa.list_(pa.int32()))
    return pa.table({"key": pa.array(range(len(sets)), pa.int64()), "id": [""] * len(sets), "part_0": parts})


def through_buckets(left: Sets, right: Sets | None, plan: Plan) -> list[tuple[int, int, float]]:
    """Send, group and join as Spark does, in this process."""
    sides = [rows(left)] if right is None else [rows(left), rows(right)]
    table = pa.concat_tables(sent(side, plan=plan, is_right=place == 1) for place, side in enumerate(sides))
    groups = [table.filter(pa.compute.equal(table["bucket"], bucket)) for bucket in set(table["bucket"].to_pylist())]
    found = [row for group in groups for row in joined(group, plan=plan).to_pylist()]
    return sorted((row["first"], row["second"], row["ratio"]) for row in found)


def through_held(left: Sets, right: Sets | None, terms: Terms, tasks: int) -> list[tuple[int, int, float]]:
    """Hold one side and probe with the other, a share of it in each task, as Spark does."""
    held = SimpleNamespace(value=held_of(share_of(rows(left if right is None else right)), terms))
    shares = [rows(left).take(pa.array(np.arange(len(left))[task::tasks])) for task in range(tasks)]
    found = [row for share in shares for row in probed(share, held=held, terms=terms).to_pylist()]
    return sorted((row["first"], row["second"], row["ratio"]) for row in found)


@settings(max_examples=60)
@given(SETS, SETS | st.none(), THRESHOLDS, st.booleans(), st.integers(1, 3))
def test_every_pair_is_found_once_where_one_side_is_held(
    left: Sets, right: Sets | None, threshold: Fraction, is_strict: bool, tasks: int
) -> None:
    terms = Terms(threshold, is_strict=is_strict, is_self=right is None)
    assert through_held(left, right, terms, tasks) == expected(left, right, threshold, is_strict)


def test_copies_are_held_and_probed_once() -> None:
    terms, copies = Terms(Fraction(3, 4)), rows([{1, 2}] * 500 + [{3}])
    held = held_of(share_of(copies), terms)
    assert len(held.index.bags) == 2
    assert len(probed(copies, held=SimpleNamespace(value=held), terms=terms)) == 500 * 499 // 2


def expected(left: Sets, right: Sets | None, threshold: Fraction, is_strict: bool) -> list[tuple[int, int, float]]:
    pairs = join(bags(left), None if right is None else bags(right), threshold=threshold, is_strict=is_strict)
    other = left if right is None else right
    return [
        (i, j, 2 * shared / (len(left[i]) + len(other[j])))
        for i, j, shared in zip(pairs.first.tolist(), pairs.second.tolist(), pairs.shared.tolist(), strict=True)
    ]


@settings(max_examples=60)
@given(
    SETS,
    SETS | st.none(),
    THRESHOLDS,
    st.booleans(),
    st.integers(1, 4),
    st.dictionaries(st.integers(0, 12), st.integers(2, 4)),
)
def test_every_pair_is_found_in_one_bucket_and_no_other(
    left: Sets, right: Sets | None, threshold: Fraction, is_strict: bool, buckets: int, cut: dict[int, int]
) -> None:
    heavy, groups = np.array(sorted(cut), np.int32), np.array([cut[token] for token in sorted(cut)], np.int64)
    plan = Plan(Terms(threshold, is_strict=is_strict, is_self=right is None), buckets, heavy, groups)
    assert through_buckets(left, right, plan) == expected(left, right, threshold, is_strict)


@pytest.mark.parametrize(
    ("size", "threshold", "length"),
    [(0, "3/4", 0), (1, "3/4", 1), (4, "3/4", 2), (10, "3/4", 5), (10, "1", 1)],
    # Of 10 tokens at 3/4 the smallest partner has 6 and shares 6: the first shared token is among the first 5.
)
def test_a_prefix_is_one_longer_than_what_a_partner_may_lack(size: int, threshold: str, length: int) -> None:
    assert prefix_lengths(np.array([size]), Fraction(threshold)).tolist() == [length]


# --- On Spark ---------------------------------------------------------------------------------------------------------


@needs_spark
def test_pairs_within_one_set_are_those_of_one_process(session: Any) -> None:
    data = Corpus.of_texts(texts(150, seed=1))
    here, there = overlap.pairs(data), overlap.pairs(data, engine=Spark(session, SPLIT))
    assert len(here) > 0
    assert there.table.to_pydict() == here.table.to_pydict()
    assert there.to_dict() == here.to_dict()


@needs_spark
def test_pairs_of_samples_between_two_corpora_are_those_of_one_process(session: Any) -> None:
    one, other = corpus_of(60, seed=2), corpus_of(50, seed=3)
    options: dict[str, Any] = {"unit": "sample", "threshold": 0.5, "context_turns": 2, "against": other}
    here, there = overlap.pairs(one, **options), overlap.pairs(one, **options, engine=Spark(session, SPLIT))
    assert len(here) > 0
    assert there.table.to_pydict() == here.table.to_pydict()
    assert there.to_dict() == here.to_dict()


def sides(train: Corpus, test: Corpus) -> Corpus:
    """Two corpora as the splits of one."""
    named = (("train", train), ("test", test))
    return Corpus.of([one._replace(split=split, id=f"{split}-{one.id}") for split, data in named for one in data])


def check_same(there: overlap.OverlapResult, here: overlap.OverlapResult) -> None:
    assert there.table.to_pydict() == here.table.to_pydict()
    assert there.examples == here.examples
    assert there.to_dict() == here.to_dict()


@needs_spark
def test_the_best_match_is_that_of_one_process(session: Any) -> None:
    data = sides(corpus_of(80, seed=4), corpus_of(60, seed=5))
    check_same(overlap.measure(data, engine=Spark(session, SPLIT)), overlap.measure(data))


@needs_spark
@pytest.mark.parametrize("limit", [None, 40])
def test_the_best_match_in_the_rest_of_a_corpus_is_that_of_one_process(session: Any, limit: int | None) -> None:
    data = Corpus.of_texts(texts(150, seed=6))
    check_same(overlap.measure(data, limit=limit, engine=Spark(session, SPLIT)), overlap.measure(data, limit=limit))


@needs_spark
@pytest.mark.parametrize("unit", [None, "turn"])
def test_benchmarks_are_measured_as_in_one_process(session: Any, unit: str | None) -> None:
    data, benchmark = corpus_of(40, seed=4), corpus_of(20, seed=5)
    here = overlap.measure(data, against={"own": benchmark}, unit=unit)
    check_same(overlap.measure(data, against={"own": benchmark}, unit=unit, engine=Spark(session)), here)


@needs_spark
@pytest.mark.parametrize(
    ("train", "test", "unit"),
    [(["a b", "c"], ["d", "e"], "sample"), (["a b", "c"], [".", ""], None), ([".", "!"], ["a", "b"], None)],
)
def test_what_is_not_measurable_here_is_not_measurable_there(
    session: Any, train: list[str], test: list[str], unit: str | None
) -> None:
    data = Corpus.of_texts(train, test)
    here = overlap.measure(data, unit=unit)
    assert here.verdict.level == "not_measurable"
    check_same(overlap.measure(data, unit=unit, engine=Spark(session)), here)


@needs_spark
def test_every_pass_of_a_cleaning_is_that_of_one_process(session: Any) -> None:
    corpus = corpus_of(100, seed=7)
    options: dict[str, Any] = {"threshold": 0.6, "validation_size": 3, "test_size": 3}
    here, there = overlap.clean(corpus, **options), overlap.clean(corpus, **options, engine=Spark(session, SPLIT))
    assert here.counts["passes"] > 1
    assert list(there.ledger()) == list(here.ledger())
    assert there.to_dict() == here.to_dict()
    assert there.corpus.table.equals(here.corpus.table)


@needs_spark
def test_real_dialogues_give_the_same_pairs(session: Any, data: Path) -> None:
    corpus = load(data / "dailydialog", on_error="skip").split("validation")
    options: dict[str, Any] = {"unit": "turn", "threshold": 0.75}
    limits = Limits(held_bytes=0, bags_per_bucket=5_000, bags_per_cell=100)
    here, there = overlap.pairs(corpus, **options), overlap.pairs(corpus, **options, engine=Spark(session, limits))
    assert there.table.to_pydict() == here.table.to_pydict()


# --- Parquet in and out -----------------------------------------------------------------------------------------------


def mixed(count: int) -> Corpus:
    """Splits that do not stand in corpus order."""
    names = ["test", "extra", "train", "validation"]
    dialogues = [dialogue._replace(split=names[i % 4]) for i, dialogue in enumerate(corpus_of(count, seed=8))]
    return Corpus.of(dialogues)


def shared_ids() -> Corpus:
    """Dialogues of several splits and files that go by the same names."""
    return Corpus.of([one._replace(id=f"d{place % 5}") for place, one in enumerate(mixed(20))])


@needs_spark
def test_dialogues_that_share_an_id_are_named_as_in_one_process(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    pq.write_table(shared_ids().table, "../chats.parquet", row_group_size=3)  # Hadoop knows no ..
    given_one = parquet_at(["../chats.parquet"])
    assert given_one is not None
    here, there = overlap.pairs(load("../chats.parquet")), overlap.pairs(given_one, engine=Spark(session))
    assert any("/d" in name for name in here.table["first"].to_pylist())
    assert there.table.to_pydict() == here.table.to_pydict()


@needs_spark
@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"turns": []}, "2: expected at least one turn, found none"),
        ({"id": None}, "2: expected an id, speakers and texts, found null"),
        ({"id": "a\0"}, "2: expected UTF-8 text, found a NUL character"),
    ],
)
def test_a_bad_dialogue_is_the_same_line_as_in_one_process(
    session: Any, tmp_path: Path, row: dict[str, Any], problem: str
) -> None:
    table = corpus_of(2, seed=1).table
    good = table.to_pylist()
    pq.write_table(pa.Table.from_pylist([good[0], {**good[1], **row}], schema=table.schema), tmp_path / "a.parquet")
    given_one = parquet_at([str(tmp_path / "a.parquet")])
    assert given_one is not None
    told = []
    for read in (lambda: load(tmp_path / "a.parquet"), lambda: overlap.pairs(given_one, engine=Spark(session))):
        with pytest.raises(CorpusError) as error:
            read()
        told.append(str(error.value))
    assert told == [f"{tmp_path / 'a.parquet'}:{problem}"] * 2


@needs_spark
def test_a_dialogue_with_more_turns_than_a_key_can_number_is_refused(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialoscope.overlap.spark.shards.TURN_BITS", 1)
    pq.write_table(corpus_of(2, seed=1).table, tmp_path / "a.parquet")  # of three turns each
    given_one = parquet_at([str(tmp_path / "a.parquet")])
    assert given_one is not None
    with pytest.raises(UsageError, match="Spark takes dialogues of at most 2 turns, found one of 3"):
        overlap.pairs(given_one, engine=Spark(session))


def test_ids_that_are_numbers_are_left_to_this_process(tmp_path: Path) -> None:
    table = corpus_of(2, seed=1).table
    pq.write_table(table.set_column(0, "id", pa.array([1, 2])), tmp_path / "a.parquet")
    assert parquet_at([str(tmp_path / "a.parquet")]) is None


@needs_spark
def test_parquet_is_read_by_spark_in_corpus_order(session: Any, tmp_path: Path) -> None:
    corpus = mixed(40)
    folder = tmp_path / "odd [name] é"
    folder.mkdir()
    shuffled = corpus.table.take(pa.array(np.argsort(np.arange(40) % 7, kind="stable")))
    pq.write_table(shuffled.slice(0, 25), folder / "part-2.parquet", row_group_size=4)
    pq.write_table(shuffled.slice(25), folder / "part-10.parquet")
    given_one = parquet_at([str(folder)])
    assert given_one is not None
    here = overlap.pairs(load(folder), unit="turn", threshold=0.6)
    there = overlap.pairs(given_one, unit="turn", threshold=0.6, engine=Spark(session))
    assert there.table.to_pydict() == here.table.to_pydict()
    expected_one, measured = overlap.measure(load(folder)), overlap.measure(given_one, engine=Spark(session))
    assert measured.table.to_pydict() == expected_one.table.to_pydict()
    for key in ("settings", "parts", "used", "counts", "scores", "verdicts"):
        assert measured.to_dict()[key] == expected_one.to_dict()[key]
    with pytest.raises(UsageError, match=r"has no tset split. Found: train, validation, test, extra. Name another"):
        overlap.measure(given_one, split="tset", engine=Spark(session))
    with pytest.raises(UsageError, match="Spark reads these files whole: leave limit out"):
        overlap.measure(given_one, limit=2, engine=Spark(session))


@needs_spark
@pytest.mark.parametrize("prefix", ["", "other-"])
def test_training_and_test_files_are_read_by_spark_as_in_one_process(session: Any, tmp_path: Path, prefix: str) -> None:
    train, test = str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")
    pq.write_table(shared_ids().table, train)  # of several splits, train among them
    pq.write_table(Corpus.of(one._replace(id=prefix + one.id) for one in corpus_of(12, seed=3)).table, test)
    files = sides_at([train], [test])
    assert files is not None
    there = overlap.measure(files, engine=Spark(session), unit="turn")
    here = overlap.measure(load(train=train, test=test), unit="turn")
    assert there.table.to_pydict() == here.table.to_pydict()
    assert (there.parts, there.used, there.counts) == (here.parts, here.used, here.counts)


def test_sides_that_spark_cannot_both_read_are_left_to_this_process(tmp_path: Path) -> None:
    pq.write_table(corpus_of(3, seed=1).table, tmp_path / "a.parquet")
    write(corpus_of(3, seed=1), tmp_path / "b.jsonl")
    assert sides_at([str(tmp_path / "a.parquet")], [str(tmp_path / "b.jsonl")]) is None


@needs_spark
def test_single_turns_are_compared_as_dialogues_there_too(session: Any, tmp_path: Path) -> None:
    corpus = Corpus.of_texts(texts(20, seed=1), texts(10, seed=2))
    pq.write_table(corpus.table, tmp_path / "a.parquet")
    files = parquet_at([str(tmp_path / "a.parquet")])
    assert files is not None
    there = overlap.measure(files, engine=Spark(session))
    assert there.unit == "dialogue"
    assert there.table.to_pydict() == overlap.measure(corpus).table.to_pydict()


@needs_spark
def test_a_column_of_texts_is_read_by_spark(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"said": texts(60, seed=9)}), path)
    given_one = parquet_at([str(path)], column="said")
    assert given_one is not None
    here = overlap.pairs(read_texts([path], column="said").corpus)
    there = overlap.pairs(given_one, engine=Spark(session))
    assert there.table.to_pydict() == here.table.to_pydict()


@needs_spark
@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (["a", None], ", row 2: expected a text, found none."),
        (["a", "b", "c\0"], ", row 3: expected a text, found a NUL character."),
        ([1, 2], ": expected texts, found int64. Name another column."),
    ],
)
def test_a_bad_text_is_the_same_line_as_in_one_process(
    session: Any, tmp_path: Path, said: list[Any], problem: str
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"said": said}), path)
    given_one = parquet_at([str(path)], column="said")
    assert given_one is not None
    told = []
    for read in (lambda: read_texts([path], column="said"), lambda: overlap.pairs(given_one, engine=Spark(session))):
        with pytest.raises(CorpusError) as error:
            read()
        told.append(str(error.value))
    assert told == [f"{path}: column 'said'{problem}"] * 2


@needs_spark
def test_pairs_are_written_to_a_folder_that_is_whole_and_sorted(session: Any, tmp_path: Path) -> None:
    data, copies, out = Corpus.of_texts(texts(100, seed=10)), Corpus.of_texts(["a", "a"]), tmp_path / "pairs"
    written, here = overlap.pairs(data, engine=Spark(session), folder=out), overlap.pairs(data)
    assert {path.suffix for path in out.iterdir()} == {".parquet"}
    assert pq.read_table(out).to_pydict() == here.table.to_pydict()
    assert len(written) == len(here)
    assert written.table.to_pydict() == here.table.slice(0, 20).to_pydict()
    with pytest.raises(OutputError, match="is not empty"):
        overlap.pairs(copies, engine=Spark(session), folder=out)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"expected a folder of pairs to replace, found notes\.txt in it"):
        overlap.pairs(copies, engine=Spark(session), folder=out, overwrite=True)


@needs_spark
def test_a_folder_that_lacks_what_executors_wrote_is_not_published(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import DataFrameWriter

    def on_their_own_disk(self: Any, path: str) -> None:
        write_parquet(self, f"file://{tmp_path / 'elsewhere'}")

    write_parquet = DataFrameWriter.parquet
    monkeypatch.setattr(DataFrameWriter, "parquet", on_their_own_disk)
    with pytest.raises(OutputError, match="Spark wrote 1 pairs, and 0 are found here"):
        overlap.pairs(Corpus.of_texts(["a", "a"]), engine=Spark(session), folder=tmp_path / "pairs")
    assert not (tmp_path / "pairs").exists()


@needs_spark
def test_what_is_held_is_not_larger_than_its_estimate(session: Any) -> None:
    sets = [set(range(place, place + 120)) for place in range(300)]  # six words to a signature
    table, terms = rows(sets), Terms(Fraction(1, 10))
    held = held_of(share_of(table), terms)
    arrays: list[Any] = [held.share.parts[0].tokens, held.copies.bags.tokens, held.index.postings, held.share.keys]
    with Frames(session, Limits()) as frames:
        assert sum(array.nbytes for array in arrays) <= frames._bytes(session.createDataFrame(table))


def test_what_is_no_parquet_of_ours_is_left_to_this_process(tmp_path: Path) -> None:
    pq.write_table(pa.table({"context": ["a"], "response": ["b"]}), tmp_path / "pairs.parquet")
    assert parquet_at([str(tmp_path / "pairs.parquet")]) is None
    assert parquet_at(["concierge"]) is None


def test_a_file_that_is_given_twice_is_left_to_this_process(tmp_path: Path) -> None:
    pq.write_table(pa.table({"said": ["a"]}), tmp_path / "a.parquet")
    twice = [str(tmp_path / "a.parquet"), str(tmp_path / "b" / ".." / "a.parquet")]
    (tmp_path / "b").mkdir()
    assert parquet_at(twice[:1], column="said") is not None
    assert parquet_at(twice, column="said") is None


# --- The command line -------------------------------------------------------------------------------------------------


def dialoscope(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dialoscope", "overlap", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})


@needs_spark
def test_the_command_line_gives_the_same_answer_and_no_noise(tmp_path: Path) -> None:
    write(mixed(30), tmp_path / "chats", to="parquet")
    arguments = ("pairs", tmp_path / "chats", "--unit", "turn", "--json", "--out")
    done = dialoscope(
        *arguments, tmp_path / "there", "--engine", "spark", "--master", "local[1]", JAVA_TOOL_OPTIONS=SHORT_RUN
    )
    assert (done.returncode, done.stderr) == (0, "")
    here = overlap.pairs(load(tmp_path / "chats"), unit="turn")
    shown = json.loads(done.stdout)
    assert {key: shown[key] for key in ("settings", "parts", "used", "counts")} == {
        key: here.to_dict()[key] for key in ("settings", "parts", "used", "counts")
    }
    assert pq.read_table(tmp_path / "there").to_pydict() == here.table.to_pydict()


def test_without_pyspark_the_message_is_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dialoscope\[spark\]'"), session_at("local[1]"):
        pass


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (("--engine", "sprak"), {}, "engine is one of here, spark; found 'sprak'."),
        (("--engine", "spark"), {"JAVA_HOME": "/nowhere"}, "Spark needs Java 17 or newer, found none in JAVA_HOME"),
    ],
)
def test_what_spark_lacks_is_one_line(
    arguments: tuple[str, ...], environment: dict[str, str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("Hi. __eou__ Hello. __eou__\n")
    done = dialoscope("pairs", tmp_path / "a.txt", *arguments, **environment)
    assert done.returncode == 2
    assert done.stderr.startswith(f"dialoscope: {message}")
    assert done.stderr.count("\n") == 1
