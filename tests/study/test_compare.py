from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnwise.errors import UsageError
from turnwise.record import Origin
from turnwise.report import Section, write_run
from turnwise.study import Study, compare
from turnwise.study.compare import section_of

Rows = dict[str, list[Any]]


def run(
    folder: Path, instrument: str, file: str, rows: dict[str, list[Any]], data: dict[str, Any] | None = None
) -> Path:
    table = pa.table(rows)
    section = Section(instrument, instrument, "?", [])
    return write_run(
        folder, instrument=instrument, data=data or {}, section=section, origin=Origin("c@1"),
        fill=lambda place: pq.write_table(table, place / file),
    )  # fmt: skip


def overlap(folder: Path, ratios: dict[str, float]) -> Path:
    rows: Rows = {"id": list(ratios), "ratio": list(ratios.values())}
    return run(folder, "overlap", "matches.parquet", rows, {"threshold": 0.8})


def test_overlap_is_compared_on_the_items_of_both(tmp_path: Path) -> None:
    first = overlap(tmp_path / "a", {"d1#2": 0.9, "d1#3": 0.1, "d2#2": 1.0, "old#2": 1.0})
    second = overlap(tmp_path / "b", {"d1#2": 0.2, "d1#3": 0.1, "d2#2": 1.0, "new#2": 0.0, "new#3": 0.0})
    found = compare(first, second)
    share, mean = found.changes
    assert (share.what, share.first, share.second) == ("share over 0.8", 2 / 3, 1 / 3)
    assert share.comparison.difference.value == pytest.approx(-1 / 3)
    assert (share.items, share.only) == (3, (1, 2))
    assert mean.comparison.difference.value == pytest.approx((0.2 - 0.9) / 3)


def test_f1_is_computed_from_counts(tmp_path: Path) -> None:
    def probe(name: str, right: list[int], too_many: list[int], missing: list[int]) -> Path:
        rows: Rows = {
            "model": ["m", "m"], "task": ["T", "T"], "dialogue": ["x", "y"], "turn": [1, 1], "right": right,
            "too_many": too_many, "missing": missing,
        }  # fmt: skip
        return run(tmp_path / name, "probe", "positions.parquet", rows)

    found = compare(probe("a", [1, 0], [0, 1], [1, 1]), probe("b", [2, 1], [0, 0], [0, 0]))
    (change,) = found.changes
    assert change.what == "F1 of T"
    assert [change.first, change.second] == pytest.approx([2 / 5, 1])
    assert change.comparison.difference.value == pytest.approx(3 / 5)


def test_the_das_ratio_of_means_and_log_perplexity_come_from_logs(tmp_path: Path) -> None:
    def distract(name: str, attention: float, likelihood: float) -> Path:
        rows: Rows = {
            "model": [name] * 3, "set": ["original", "rare-end", "rare-end"], "dialogue": ["x", "x", "y"],
            "turn": [2, 2, 2], "distraction": [None, math.log(attention), None],
            "history": [0.0, math.log(2.0), 0.0], "log_likelihood": [likelihood, -1.0, -1.0], "tokens": [4, 4, 4],
        }  # fmt: skip
        return run(tmp_path / name, "distract", "cases.parquet", rows)

    found = compare(distract("a", 1.0, -8.0), distract("b", 3.0, -4.0))
    perplexity, ratio = found.changes
    assert (perplexity.model, perplexity.first, perplexity.second) == ("a → b", 2.0, 1.0)
    assert ratio.what == "DAS ratio of means, rare-end"
    assert [ratio.first, ratio.second] == pytest.approx([0.5, 1.5])


def test_what_is_sure_is_told_with_its_direction(tmp_path: Path) -> None:
    before = {f"d{place}#2": 0.9 for place in range(40)}
    after = {name: 0.1 if place % 5 else 0.9 for place, name in enumerate(before)}
    better = compare(overlap(tmp_path / "a", before), overlap(tmp_path / "b", after))
    assert [one.is_better for one in better.changes] == [True, True]
    worse = compare(tmp_path / "b", tmp_path / "a")
    assert [one.is_better for one in worse.changes] == [False, False]
    verdict = section_of(worse).verdict
    assert verdict is not None
    assert (verdict.number, verdict.level) == (2, "bad")


def test_a_study_against_its_copy_has_not_changed(study: Study, tmp_path: Path) -> None:
    shutil.copytree(study.folder, tmp_path / "later")
    found = compare(study.folder, tmp_path / "later")
    runs = {one.name: study.folder / one.run for one in study.steps}
    assert {one.comparison.difference.value for one in found.changes} == {0.0}
    assert {one.is_better for one in found.changes} == {None}
    assert {one.run for one in found.changes} == {"overlap-small", "distract-small", "probe-small"}
    values = {(one.run, one.model, one.what): one.second for one in found.changes}
    from turnwise.report import read_run

    probed = read_run(runs["probe-small"]).data["models"]["one"]["tasks"]
    assert values["probe-small", "one", "F1 of UtteranceLoc"] == pytest.approx(probed["UtteranceLoc"]["f1"])
    looked = read_run(runs["distract-small"]).data["models"]["two"]
    assert values["distract-small", "two", "DAS ratio of means, rare-end"] == pytest.approx(
        looked["sets"]["rare-end"]["das_ratio_of_means"]
    )
    assert values["distract-small", "two", "log perplexity"] == pytest.approx(
        math.log(looked["original"]["perplexity"])
    )
    leaked = read_run(runs["overlap-small"]).data["share_over"]["0.8"]
    assert values["overlap-small", "", "share over 0.8"] == pytest.approx(leaked)


def test_items_without_a_number_on_either_side_are_left_out_of_both(tmp_path: Path) -> None:
    def distract(name: str, attention: list[float | None]) -> Path:
        count = len(attention)
        rows: Rows = {
            "model": ["m"] * count, "set": ["rare-end"] * count, "dialogue": [f"d{place}" for place in range(count)],
            "turn": [2] * count, "distraction": attention, "history": [0.0] * count,
            "log_likelihood": [-1.0] * count, "tokens": [1] * count,
        }  # fmt: skip
        return run(tmp_path / name, "distract", "cases.parquet", rows)

    (change,) = compare(distract("a", [0.0, math.log(5), None]), distract("b", [0.0, None, 0.0])).changes
    assert (change.first, change.second, change.items, change.only) == (1.0, 1.0, 1, (1, 1))


def test_items_of_one_name_are_told_apart(tmp_path: Path) -> None:
    rows: Rows = {"id": ["d#1", "d#1"], "ratio": [1.0, 0.0]}
    folders = [run(tmp_path / name, "overlap", "matches.parquet", rows, {"threshold": 0.8}) for name in "ab"]
    share, _ = compare(*folders).changes
    assert (share.first, share.second, share.items) == (0.5, 0.5, 2)


def people(folder: Path, score: list[float], rated: list[float]) -> Path:
    count = len(score)
    items = [f"i{place}" for place in range(count)]
    rows: Rows = {
        "set": ["s"] * count, "kind": ["models"] * count, "rater": ["m"] * count, "item": items, "dialogue": items,
        "people": rated, "score": score,
    }  # fmt: skip
    return run(folder, "engage", "items.parquet", rows)


def test_correlations_with_people_are_compared_on_the_same_ratings_only(tmp_path: Path) -> None:
    rated = [1.0, 2.0, 3.0, 4.0]
    first, second = people(tmp_path / "a", [1, 2, 3, 4], rated), people(tmp_path / "b", [4, 3, 2, 1], rated)
    (change,) = compare(first, second).changes
    assert (change.first, change.second) == (1.0, -1.0)
    assert change.comparison.difference.value == -2.0
    with pytest.raises(UsageError, match="have other ratings"):
        compare(first, people(tmp_path / "c", [4, 3, 2, 1], [2.0, 1.0, 3.0, 4.0]))


def test_other_dialogues_and_untested_numbers_are_no_good_news(tmp_path: Path) -> None:
    first = overlap(tmp_path / "a", {"d#2": 1.0})
    second = overlap(tmp_path / "b", {"d#2": 1.0})
    verdict = section_of(compare(first, second)).verdict
    assert verdict is not None
    assert verdict.level == "info"  # one dialogue is too few for a test
    kept = json.loads((second / "result.json").read_text())
    kept["origin"]["corpus"] = "c@2"
    (second / "result.json").write_text(json.dumps(kept))
    assert compare(first, second).left_out == ["overlap: other dialogues (c@1, then c@2), paired by their ids alone"]
    with pytest.raises(UsageError, match="are one folder"):
        compare(first, first)


def test_what_is_in_one_of_both_only_and_what_was_told_otherwise_is_said(tmp_path: Path) -> None:
    def probe(name: str, tasks: list[str], seed: int) -> Path:
        count = len(tasks)
        rows: Rows = {
            "model": ["m"] * count, "task": tasks, "dialogue": ["x"] * count, "turn": [1] * count,
            "right": [1] * count, "too_many": [0] * count, "missing": [0] * count,
        }  # fmt: skip
        folder = run(tmp_path / name, "probe", "positions.parquet", rows)
        kept = json.loads((folder / "result.json").read_text())
        kept["origin"]["settings"] = {"classifier": "logistic", "context": seed}
        (folder / "result.json").write_text(json.dumps(kept))
        return folder

    found = compare(probe("a", ["T", "U"], 1), probe("b", ["T"], 2))
    assert found.left_out == ["probe: m, F1 of U: in one of both only", "probe: context was 1, and is 2"]


def test_runs_that_share_nothing_are_told(tmp_path: Path) -> None:
    first = overlap(tmp_path / "a", {"d#2": 1.0})
    second = run(tmp_path / "b", "probe", "positions.parquet", {"x": [1]})
    with pytest.raises(UsageError, match="share no run: one has overlap; the other probe"):
        compare(first, second)
    with pytest.raises(UsageError, match="expected a whole run with its items"):
        compare(second, run(tmp_path / "c", "probe", "positions.parquet", {"x": [1]}))
