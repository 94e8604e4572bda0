"""Scores of a whole corpus: every turn once, the same whatever the portions, and an interrupted run resumes."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialoscope.corpus import Corpus, Dialogue, Turn, load, write
from dialoscope.engage import scoring, storage
from dialoscope.engage.encoder import Encoder
from dialoscope.engage.predictor import Predictor
from dialoscope.engage.scoring import portions, score, score_corpus, scored, write_scores
from dialoscope.errors import UsageError

NO_SPARK = (
    "pyspark is not installed (extra: spark)"
    if importlib.util.find_spec("pyspark") is None
    else "no Java here: apt-get install default-jre-headless"
    if shutil.which("java") is None
    else ""
)


def corpus_of(count: int) -> Corpus:
    """Dialogues of one to four messages, the last two of one speaker."""
    said = list(zip("ABAA", ["a b", "c d", "e f", "b c d"], strict=True))

    def dialogue(number: int) -> Dialogue:
        more = " a" * (number % 7)
        turns = tuple(Turn(speaker, text + more) for speaker, text in said[: 1 + number % 4])
        return Dialogue(turns, id=f"d{number}", split="test")

    return Corpus.of([dialogue(number) for number in range(count)])


def test_a_row_for_every_merged_turn(predictor: Callable[..., Predictor]) -> None:
    one = predictor(history=1)
    rows = scored(one, corpus_of(4)).to_pylist()
    last = [row for row in rows if row["dialogue"] == "d3"]
    assert [row["turn"] for row in last] == [1, 2, 3]
    assert last[2]["text"] == "e f a a a b c d a a a"  # two messages of one speaker
    assert last[2]["speaker"] == "A"
    alone = one.predict([[row["text"] for row in last]])[0]
    assert [row["score"] for row in last] == pytest.approx(alone.tolist(), abs=1e-5)


def test_a_killed_run_goes_on_and_ends_the_same(
    predictor: Callable[..., Predictor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "AT_ONCE", 3)
    one, corpus, out = predictor(), corpus_of(10), tmp_path / "scores.parquet"
    made = []

    def counted(*given: Any) -> Any:
        made.append(given)
        return scored(*given)

    def stop(done: int, _: int) -> None:
        if done == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(scoring, "scored", counted)
    with pytest.raises(KeyboardInterrupt):
        write_scores(one, corpus, out, progress=stop)
    assert not out.exists()
    assert len(made) == 2
    write_scores(one, corpus, out)
    assert len(made) == 4  # four portions in all, two were kept
    assert list(tmp_path.iterdir()) == [out]
    assert pq.ParquetFile(out).num_row_groups == 4  # appended one by one
    write_scores(one, corpus, tmp_path / "unbroken.parquet")
    assert pq.read_table(out).equals(pq.read_table(tmp_path / "unbroken.parquet"))


@pytest.mark.parametrize(("dialogues", "turns"), [(1, 100), (3, 100), (100, 4), (100, 1)])
def test_scores_do_not_depend_on_the_portions(
    predictor: Callable[..., Predictor], monkeypatch: pytest.MonkeyPatch, dialogues: int, turns: int
) -> None:
    one, corpus = predictor(history=2), corpus_of(20)
    expected = scored(one, corpus)
    monkeypatch.setattr(scoring, "AT_ONCE", dialogues)
    monkeypatch.setattr(scoring, "TURNS_AT_ONCE", turns)
    found = pa.concat_tables(score_corpus(one, corpus))
    assert found.drop_columns("score").equals(expected.drop_columns("score"))
    assert found["score"].to_pylist() == pytest.approx(expected["score"].to_pylist(), abs=1e-5)


def test_portions_are_bounded_and_share_the_memory_of_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of dialogues with 1, 2, 3, 4, 1, 2, … messages: at most 3 dialogues and 5 messages, or one dialogue alone."""
    monkeypatch.setattr(scoring, "AT_ONCE", 3)
    monkeypatch.setattr(scoring, "TURNS_AT_ONCE", 5)
    corpus = corpus_of(8)
    parts = list(portions(corpus))
    assert [one.turns_per_dialogue.tolist() for one in parts] == [[1, 2], [3], [4, 1], [2, 3], [4]]
    monkeypatch.setattr(scoring, "TURNS_AT_ONCE", 1)
    assert [len(one) for one in portions(corpus)] == [1] * 8
    of_corpus, of_part = (one.turn_column("text").chunk(0).buffers()[2] for one in (corpus, parts[1]))
    assert of_corpus.address == of_part.address


def test_only_a_portion_is_tokens_at_any_time_and_equal_texts_are_read_once(
    predictor: Callable[..., Predictor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "AT_ONCE", 4)
    seen: list[list[str]] = []
    read = Encoder.read

    def noted(self: Encoder, texts: Sequence[str], *others: Any) -> Any:
        seen.append(list(texts))
        return read(self, texts, *others)

    monkeypatch.setattr(Encoder, "read", noted)
    rows = sum(len(table) for table in score_corpus(predictor(), corpus_of(40)))
    assert rows == 90  # 1, 2, 3 and 3 merged turns, ten times
    assert len(seen) == 10
    assert all(len(texts) == len(set(texts)) <= 9 for texts in seen)


def test_what_bfloat16_scored_is_not_taken_for_float32(predictor: Callable[..., Predictor], tmp_path: Path) -> None:
    exact, corpus = predictor(), corpus_of(4)
    rough = exact.using(dtype="bfloat16")
    assert rough.name != exact.name
    for one in (rough, exact):
        (tmp_path / "work").mkdir(exist_ok=True)
        (table,) = score_corpus(one, corpus, work=tmp_path / "work")
        assert table["score"].to_pylist() == scored(one, corpus)["score"].to_pylist()
    assert len(list((tmp_path / "work").iterdir())) == 2


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(bool(NO_SPARK), reason=NO_SPARK)
def test_spark_gives_what_one_process_gives_and_the_documented_lines_run(
    predictor: Callable[..., Predictor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dialoscope.engage.spark import score_frame
    from dialoscope.overlap.spark.session import session_at

    monkeypatch.chdir(tmp_path)
    one, corpus = predictor(history=2), corpus_of(25)
    storage.save("engaged", one)
    write(corpus, tmp_path / "talks.parquet", to="parquet")
    with session_at("local[2]") as session:
        dialogues = session.read.parquet(str(tmp_path / "talks.parquet")).repartition(3)
        found = score_frame(dialogues, "engaged").collect()
        names: dict[str, Any] = {"session": session}
        exec(documented().replace("talks.parquet", str(tmp_path / "talks.parquet")), names)
        shown = names["scores"].count()
    expected = {(row["dialogue"], row["turn"]): row["score"] for row in scored(one, corpus).to_pylist()}
    assert {(row["dialogue"], row["turn"]): row["score"] for row in found} == pytest.approx(expected, abs=1e-5)
    assert shown == len(expected)


def documented() -> str:
    """The lines on Spark in docs/engage.md."""
    text = (Path(__file__).parents[2] / "docs" / "engage.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"```python\n# needs Spark\n(.*?)```", text, re.DOTALL)
    return str(found)


def test_one_call_scores_the_chosen_dialogues(model: Path, corpus: Path) -> None:
    data = load(corpus)
    table = score(data, model=model, split=["test", "dev"], limit=15)
    assert set(table["split"].to_pylist()) == {"validation", "test"}
    assert len(set(table["dialogue"].to_pylist())) == 15
    assert table.equals(score(data.split("test", "validation")[:15], model=storage.load(model)))
    with pytest.raises(UsageError, match="score takes a Corpus, found PosixPath"):
        score(corpus, model=model)  # type: ignore[arg-type]
