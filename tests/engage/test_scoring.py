"""Scores of a whole corpus: every turn once, the same whatever the portions, and a killed run goes on."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from turnwise.corpus import Corpus, Dialogue, Turn, write
from turnwise.engage import scoring, storage
from turnwise.engage.predictor import Predictor
from turnwise.engage.scoring import scored, write_scores

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
    write_scores(one, corpus, tmp_path / "unbroken.parquet")
    assert pq.read_table(out).equals(pq.read_table(tmp_path / "unbroken.parquet"))


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(bool(NO_SPARK), reason=NO_SPARK)
def test_spark_gives_what_one_process_gives(predictor: Callable[..., Predictor], tmp_path: Path) -> None:
    from turnwise.engage.spark import score_frame
    from turnwise.overlap.spark.session import session_at

    one, corpus = predictor(history=2), corpus_of(25)
    storage.save(tmp_path / "model", one)
    write(corpus, tmp_path / "corpus.parquet", to="parquet")
    with session_at("local[2]") as session:
        dialogues = session.read.parquet(str(tmp_path / "corpus.parquet")).repartition(3)
        found = score_frame(dialogues, tmp_path / "model").collect()
    expected = {(row["dialogue"], row["turn"]): row["score"] for row in scored(one, corpus).to_pylist()}
    assert {(row["dialogue"], row["turn"]): row["score"] for row in found} == pytest.approx(expected, abs=1e-5)
