from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from dialoscope.overlap.output import write_table

from dialoscope.corpus import load
from dialoscope.errors import OutputError, UsageError
from dialoscope.metrics import Resampling
from dialoscope.overlap import (
    OverlapResult,
    clean,
    contamination,
    filter,
    hypothesis_pairs,
    measure,
    read_result,
    write_cleaned,
    write_filtered,
    write_result,
)

TRAIN = ["a b c d", "x y"]
TEST = ["a b c e", "x", "z", "a b c d"]  # 6/8, 2/3, nothing, identical


@pytest.fixture
def result() -> OverlapResult:
    return measure(TRAIN, TEST)


def test_a_saved_result_comes_back_and_can_be_thresholded_again(result: OverlapResult, tmp_path: Path) -> None:
    again = read_result(write_result(result, tmp_path / "run"))
    assert again.to_dict() == result.to_dict()
    assert again.table().equals(result.table())
    assert [again.count_over(threshold) for threshold in (0.6, 0.7, 0.75, 0.99)] == [3, 2, 1, 1]


def test_the_matches_are_a_table_with_a_row_for_each_item(result: OverlapResult, tmp_path: Path) -> None:
    rows = pq.read_table(write_result(result, tmp_path / "run") / "matches.parquet").to_pylist()
    found = [(row["id"], row["ratio"], row["match_id"]) for row in rows]
    assert found == [("1", 0.75, "1"), ("2", 2 / 3, "2"), ("3", 0.0, None), ("4", 1.0, "1")]


def test_an_earlier_run_is_replaced_only_where_asked(result: OverlapResult, tmp_path: Path) -> None:
    write_result(result, tmp_path / "run")
    with pytest.raises(OutputError, match="--overwrite"):
        write_result(result, tmp_path / "run")
    write_result(measure(TRAIN, ["a"]), tmp_path / "run", overwrite=True)
    assert read_result(tmp_path / "run").n_test == 1


def test_what_somebody_put_into_a_run_is_never_replaced(result: OverlapResult, tmp_path: Path) -> None:
    out = write_result(result, tmp_path / "run")
    (out / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"notes\.txt"):
        write_result(result, out, overwrite=True)


def test_another_run_is_no_overlap_result(tmp_path: Path) -> None:
    filtered = filter(TRAIN, TEST)
    with pytest.raises(UsageError, match="expected what 'dialoscope overlap measure … --out' wrote"):
        read_result(write_filtered(filtered, tmp_path / "run"))


def test_a_broken_run_is_one_line(result: OverlapResult, tmp_path: Path) -> None:
    out = write_result(result, tmp_path / "run")
    (out / "matches.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(UsageError, match="expected a whole overlap run"):
        read_result(out)


def test_scores_on_the_parts_are_in_the_record_and_on_the_page(tmp_path: Path) -> None:
    train, test = [("how are you", "fine thanks")], [("how are you", "fine thanks"), ("who", "me")]
    found = measure(train, test)
    pairs = hypothesis_pairs(test, ["fine thanks", "you"])
    scores = contamination(found, pairs, metrics=["bleu-1"], resampling=Resampling(resamples=100))
    out = write_result(found, tmp_path / "run", contamination=scores)
    data = json.loads((out / "result.json").read_text())["data"]
    assert data["contamination"]["metrics"]["bleu-1"]["leaked"]["value"] == pytest.approx(100)
    assert "Scores with and without the leak" in (out / "report.html").read_text()
    assert (out / "tables" / "parts.tex").is_file()


def test_a_cleaned_corpus_is_written_whole_and_reads_again(tmp_path: Path) -> None:
    pairs = [(f"question {n} is w{n} v{n}", f"answer {n} is x{n} y{n}") for n in range(8)]
    cleaned = clean([*pairs, pairs[0]], threshold="0.75", validation=2, test=2)
    out = write_cleaned(cleaned, tmp_path / "clean")
    assert load(out / "corpus").splits == {"train": 4, "validation": 2, "test": 2}
    assert [dialogue.texts for dialogue in load(out / "dropped.jsonl")] == [list(pairs[0])]
    assert {path.name for path in (out / "pairs-3").iterdir()} == {
        "train.parquet",
        "validation.parquet",
        "test.parquet",
    }
    assert json.loads((out / "ledger.jsonl").read_text())["reason"] == "over the threshold"
    assert json.loads((out / "result.json").read_text())["data"] == cleaned.to_dict()
    assert (out / "report.html").read_text().startswith("<!doctype html>")


def test_a_filtered_test_set_is_written_with_what_went(tmp_path: Path) -> None:
    out = write_filtered(filter(TRAIN, TEST), tmp_path / "kept")
    assert pq.read_table(out / "kept.parquet")["text"].to_pylist() == TEST[:3]
    assert pq.read_table(out / "dropped.parquet")["text"].to_pylist() == TEST[3:]
    ledger = json.loads((out / "ledger.jsonl").read_text())
    assert ledger == {"unit": "text", "id": "4", "reason": "over the threshold", "partner": "1", "ratio": 1.0}


def test_a_table_is_parquet_or_csv(result: OverlapResult, tmp_path: Path) -> None:
    write_table(result.table(), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().startswith('"id","ratio","match_id","match"\n"1",0.75,"1",0\n')
    with pytest.raises(UsageError, match=r"\.parquet or \.csv"):
        write_table(result.table(), tmp_path / "a.xlsx")


def test_the_closest_come_first_and_equals_in_order() -> None:
    found = measure(["a b"], ["a", "a b", "c", "b a"])
    assert found.closest(0.5).tolist() == [1, 3, 0]
    assert found.closest(0.5, most=1).tolist() == [1]
    assert found.closest(0.9).dtype == np.int64
