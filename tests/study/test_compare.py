from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dialoscope.cli import app
from dialoscope.errors import UsageError
from dialoscope.record import Origin
from dialoscope.report import Prose, Section, write_run
from dialoscope.study import Study, compare
from dialoscope.study.compare import section_of, written_p

Rows = dict[str, list[Any]]
Data = dict[str, Any]


def run(
    folder: Path, instrument: str, file: str, rows: Rows, data: Data | None = None, origin: Origin | None = None
) -> Path:
    table = pa.table(rows)
    section = Section(instrument, instrument, "?", [])
    return write_run(
        folder, instrument=instrument, data=data or {}, section=section, origin=origin or Origin("c@1"),
        fill=lambda place: pq.write_table(table, place / file),
    )  # fmt: skip


def overlap(folder: Path, ratios: dict[str, float], *, unit: str = "sample") -> Path:
    rows: Rows = {"id": list(ratios), "ratio": list(ratios.values())}
    return run(folder, "overlap", "matches.parquet", rows, {"threshold": 0.8, "unit": unit})


def probe(folder: Path, right: dict[str, int], *, models: int = 1, dialogues: int = 10, of: int = 20) -> Path:
    """Tasks with so many right labels of 20 in each dialogue."""
    parts = [
        {"model": f"m{model}", "task": task, "dialogue": f"d{place}", "turn": 1, "right": count, "too_many": of - count,
         "missing": of - count}
        for model in range(models)
        for task, count in right.items()
        for place in range(dialogues)
    ]  # fmt: skip
    return run(folder, "probe", "positions.parquet", {name: [one[name] for one in parts] for name in parts[0]})


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
    def counted(name: str, right: list[int], too_many: list[int], missing: list[int]) -> Path:
        rows: Rows = {
            "model": ["m", "m"], "task": ["T", "T"], "dialogue": ["x", "y"], "turn": [1, 1], "right": right,
            "too_many": too_many, "missing": missing,
        }  # fmt: skip
        return run(tmp_path / name, "probe", "positions.parquet", rows)

    found = compare(counted("a", [1, 0], [0, 1], [1, 1]), counted("b", [2, 1], [0, 0], [0, 0]))
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
    assert all(one.is_identical for one in found.changes)
    verdict = section_of(found).verdict
    assert verdict is not None
    assert (verdict.level, "all are the same item by item" in verdict.line) == ("info", True)
    assert {one.run for one in found.changes} == {"overlap-small", "distract-small", "probe-small"}
    values = {(one.run, one.model, one.what): one.second for one in found.changes}
    from dialoscope.report import read_run

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


def people(
    folder: Path,
    score: list[float],
    rated: list[float],
    *,
    raters: list[tuple[str, str]] | None = None,
    kind: str = "models",
) -> Path:
    """Items of sets and raters; those of a `kind` other than models come last, under the name of the last model."""
    raters = raters or [("s", "m")]
    count, kinds = len(score), ["models", *({kind} - {"models"})]
    items = [f"i{place}" for place in range(count)]
    parts = [
        {"set": name, "kind": each, "rater": rater, "item": item, "dialogue": item, "people": mark,
         "score": value if each == "models" else -value}
        for each in kinds
        for name, rater in (raters if each == "models" else raters[-1:])
        for item, mark, value in zip(items, rated, score, strict=True)
    ]  # fmt: skip
    return run(folder, "engage", "items.parquet", {name: [one[name] for one in parts] for name in parts[0]})


def test_correlations_with_people_are_compared_on_the_same_ratings_only(tmp_path: Path) -> None:
    rated = [1.0, 2.0, 3.0, 4.0]
    first, second = people(tmp_path / "a", [1, 2, 3, 4], rated), people(tmp_path / "b", [4, 3, 2, 1], rated)
    (change,) = compare(first, second).changes
    assert (change.first, change.second) == (1.0, -1.0)
    assert change.comparison.difference.value == -2.0


def test_changed_ratings_leave_out_their_number_and_nothing_else(tmp_path: Path) -> None:
    names, rated = [("s", "m"), ("t", "m")], [1.0, 2.0, 3.0, 4.0]
    first = people(tmp_path / "a", [1, 2, 3, 4], rated, raters=names)
    second = people(tmp_path / "b", [4, 3, 2, 1], rated, raters=names)
    table = pq.read_table(second / "items.parquet").to_pydict()
    table["people"][:2] = [2.0, 1.0]
    pq.write_table(pa.table(table), second / "items.parquet")
    found = compare(first, second)
    assert [one.what for one in found.changes] == ["Spearman with people, t"]
    assert found.left_out == ["engage: m, Spearman with people, s: 2 of 4 items of both were rated otherwise"]


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


def test_only_models_are_compared_with_people(tmp_path: Path) -> None:
    rated = [1.0, 2.0, 3.0, 4.0]
    options: dict[str, Any] = {"raters": [("s", "random")], "kind": "baselines"}  # a model called as a baseline is
    first = people(tmp_path / "a", [1, 2, 3, 4], rated, **options)
    second = people(tmp_path / "b", [2, 1, 3, 4], rated, **options)
    (change,) = compare(first, second).changes
    assert (change.model, change.items, change.first) == ("random", 4, 1.0)
    assert change.second == pytest.approx(1 - 6 * 2 / 60)


def test_only_models_are_compared_by_remaining_depth(tmp_path: Path) -> None:
    def engage(name: str, score: float) -> Path:
        rows: Rows = {
            "dialogue": ["x", "y"], "turn": [1, 1], "remaining_depth": [0.5, 0.5], "score m": [score, score],
            "score average": [0.4, 0.4], "score random": [0.1, 0.9],
        }  # fmt: skip
        data: Data = {"models": {"m": {}}, "baselines": {"average": {}, "random": {}}}
        return run(tmp_path / name, "engage", "turns.parquet", rows, data)

    (change,) = compare(engage("a", 0.6), engage("b", 0.7)).changes
    assert change.model == "m"
    assert [change.first, change.second] == pytest.approx([1.0, 4.0])


def test_numbers_that_are_the_same_item_by_item_are_not_tested(tmp_path: Path) -> None:
    first = probe(tmp_path / "a", {"T": 16, "U": 16})
    found = compare(first, probe(tmp_path / "b", {"T": 16, "U": 3}))
    same, changed = found.changes
    assert (same.is_identical, same.comparison.p_value) == (True, None)
    assert same.second == pytest.approx(0.8)
    assert same.comparison.reason == "both have the same values, item by item"
    assert changed.comparison.p_holm == changed.comparison.p_value  # alone in its family
    assert found.to_dict()["identical"] == 1
    assert section_of(found).lead == (
        "2 numbers of both: 0 better for sure, 1 worse, 0 that could not be tested. 1 is the same item by item."
    )


def test_whole_dialogues_are_not_joined_by_what_their_ids_share(tmp_path: Path) -> None:
    ratios = {f"conv#{place}": place / 40 for place in range(40)}
    first = overlap(tmp_path / "a", ratios, unit="dialogue")
    second = overlap(tmp_path / "b", {name: value / 2 for name, value in ratios.items()}, unit="dialogue")
    assert [one.dialogues for one in compare(first, second).changes] == [40, 40]
    samples = [overlap(tmp_path / name, ratios) for name in "cd"]
    assert [one.dialogues for one in compare(*samples).changes] == [1, 1]


TASKS = [f"T{number}" for number in range(18)]


@pytest.mark.parametrize(
    ("dialogues", "level", "said"),
    [
        # Of 10 dialogues the least p-value is 2^-9; of 36 numbers that is 0.07.
        (10, "info", "0 of 36 numbers changed for sure: no change was found, and none could have been found with 10 "
                     "dialogues"),
        (12, "bad", "36 of 36 numbers worse for sure than before"),
        (40, "bad", "36 of 36 numbers worse for sure than before"),
    ],
)  # fmt: skip
def test_a_collapse_is_never_good_news(tmp_path: Path, dialogues: int, level: str, said: str) -> None:
    options: dict[str, Any] = {"models": 2, "dialogues": dialogues}
    first = probe(tmp_path / "a", dict.fromkeys(TASKS, 16), **options)
    verdict = section_of(compare(first, probe(tmp_path / "b", dict.fromkeys(TASKS, 3), **options))).verdict
    assert verdict is not None
    assert (verdict.level, verdict.line) == (level, said)


def test_no_change_found_is_no_good_news(tmp_path: Path) -> None:
    before = {f"d{place}#2": place / 40 for place in range(40)}
    after = {name: value + 0.01 * (-1) ** place for place, (name, value) in enumerate(before.items())}
    section = section_of(compare(overlap(tmp_path / "a", before), overlap(tmp_path / "b", after)))
    assert section.verdict is not None
    assert section.verdict.level == "info"
    assert "no change was found" in section.verdict.line
    assert "could have been found" not in section.verdict.line


def test_what_is_better_is_good_news_only_where_all_else_could_have_been_found(tmp_path: Path) -> None:
    first = overlap(tmp_path / "a", {f"d{place}#2": 0.9 for place in range(40)})
    second = overlap(tmp_path / "b", {f"d{place}#2": 0.1 if place % 5 else 0.9 for place in range(40)})
    verdict = section_of(compare(first, second)).verdict
    assert verdict is not None
    assert (verdict.line, verdict.level) == ("2 of 2 numbers better for sure than before, none worse", "good")
    tasks = {f"T{number}": 10 for number in range(30)}
    some, few = (  # one task gains on 60 dialogues, 30 others fall on 10
        _joined(tmp_path / name, probe(tmp_path / f"{name}1", {"U": gain}, dialogues=60),
                probe(tmp_path / f"{name}2", dict.fromkeys(tasks, fall), dialogues=10))
        for name, gain, fall in (("c", 5, 15), ("d", 15, 5))
    )  # fmt: skip
    verdict = section_of(compare(some, few)).verdict
    assert verdict is not None
    assert verdict.level == "info"
    assert verdict.line == (
        "1 of 31 numbers better for sure than before, none worse; in 30 of them no change could have been found with "
        "10 dialogues"
    )


def _joined(folder: Path, first: Path, second: Path) -> Path:
    """One run with the positions of both."""
    rows = pa.concat_tables([pq.read_table(one / "positions.parquet") for one in (first, second)]).to_pydict()
    return run(folder, "probe", "positions.parquet", rows)


@pytest.mark.parametrize(
    ("p", "written"),
    [(None, None), (0.0004, "<0.001"), (0.0014, "0.001"), (0.0499, "0.0499"), (0.0501, "0.050"), (0.05, "0.050"),
     (0.049996, "0.049996"), (0.25, "0.250"), (1.0, "1.000")],
)  # fmt: skip
def test_a_p_value_is_not_rounded_to_nothing_nor_over_the_limit(p: float | None, written: str | None) -> None:
    assert written_p(p) == written


def test_people_see_how_small_a_p_value_is(tmp_path: Path) -> None:
    before = {f"d{place}#2": 0.9 for place in range(40)}
    folders = overlap(tmp_path / "a", before), overlap(tmp_path / "b", dict.fromkeys(before, 0.1))
    text = shown(*folders)
    assert text.count("<0.001") == 2
    assert "0.00 " not in text


def shown(*folders: Path) -> str:
    """What people see in a terminal of 100 columns."""
    done = CliRunner().invoke(app, ["compare", *map(str, folders)], env={"COLUMNS": "100"})
    assert done.exit_code == 0
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 100  # the last line is a sentence
    return done.stdout


def cells(text: str, first: str) -> list[list[str]]:
    """The rows of tables that begin so."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if "│" in line]
    return [row[1:] for row in rows if row[0] == first]


def test_people_see_of_which_run_and_model_a_row_is_with_both_values(tmp_path: Path) -> None:
    def study(name: str, likelihood: float) -> Path:
        """Log perplexity of one model on two corpora."""
        steps = []
        for place, corpus in enumerate(("chats", "town")):
            rows: Rows = {
                "model": ["ours"] * 12, "set": ["original"] * 12, "dialogue": [f"d{one}" for one in range(12)],
                "turn": [2] * 12, "distraction": [None] * 12, "history": [0.0] * 12,
                "log_likelihood": [likelihood * (1 + place) - one / 50 for one in range(12)], "tokens": [2] * 12,
            }  # fmt: skip
            step = f"distract-{corpus}"
            run(tmp_path / name / "runs" / step, "distract", "cases.parquet", rows)
            steps.append(
                {"name": step, "instrument": "distract", "corpus": corpus, "state": "done", "run": f"runs/{step}"}
            )
        (tmp_path / name / "study.json").write_text(json.dumps({"schema_version": 1, "steps": steps}))
        return tmp_path / name

    text = shown(study("a", -8.0), study("b", -4.0))
    assert text.count("distract-chats · ours") == text.count("distract-town · ours") == 1
    # The mean of 0.00, 0.02 … 0.22 is 0.11; two tokens each.
    assert [row[:2] for row in cells(text, "log perplexity")] == [["4.055", "2.055"], ["8.055", "4.055"]]
    # Of 12 dialogues the least p-value is 2Φ(−√12) = 0.00053, and there are two numbers.
    assert [row[3:] for row in cells(text, "log perplexity")] == [["0.001 better", "12"]] * 2


def test_the_longest_names_stay_within_a_hundred_columns(tmp_path: Path) -> None:
    def distract(name: str, attention: float) -> Path:
        rows: Rows = {
            "model": [name] * 12, "set": ["frequent-middle"] * 12, "dialogue": [f"d{one}" for one in range(12)],
            "turn": [2] * 12, "distraction": [attention + one / 100 for one in range(12)], "history": [0.0] * 12,
            "log_likelihood": [-1.0] * 12, "tokens": [1] * 12,
        }  # fmt: skip
        return run(tmp_path / name, "distract", "cases.parquet", rows)

    text = shown(distract("dynamic-ui", 0.1), distract("static-ui-with-distractions", -0.1))
    assert "distract · dynamic-ui → static-ui-with-distractions" in text
    (row,) = cells(text, "DAS ratio of means,")  # and its set in the line below
    assert row[3:] == ["<0.001 better", "12"]


def test_why_there_is_no_p_value_is_said_in_the_terminal_and_on_the_page(tmp_path: Path) -> None:
    first = overlap(tmp_path / "a", {"d1#2": 0.9, "d2#2": 0.1, "d3#2": 0.3})
    second = overlap(tmp_path / "b", {"d1#2": 0.85, "d2#2": 0.1, "d3#2": 0.2})
    few = "no p-value: the bootstrap needs at least 10 dialogues, found 3; the interval needs no bootstrap"
    text = shown(first, second)
    assert [cells(text, what)[0][3] for what in ("share over 0.8", "mean overlap")] == ["– a", "– b"]
    assert f"a: both have the same values, item by item\nb: {few}\n" in text
    section = section_of(compare(first, second))
    assert list(section.tables[0].footnotes) == ["both have the same values, item by item", few]
    assert section.lead == (
        f"2 numbers of both: 0 better for sure, 0 worse, 1 that could not be tested ({few}). "
        "1 is the same item by item."
    )
    assert section.verdict is not None
    assert section.verdict.line == f"0 of 2 numbers changed for sure: none could be tested ({few})"


@pytest.mark.parametrize(("dialogues", "has_interval"), [(2, False), (7, True)])
def test_a_reason_says_that_it_is_of_the_p_value_where_it_stands_beside_an_interval(
    tmp_path: Path, dialogues: int, has_interval: bool
) -> None:
    before = {f"d{place}#2": place / 20 for place in range(dialogues)}
    after = {name: value + 0.1 + place / 50 for place, (name, value) in enumerate(before.items())}
    found = compare(overlap(tmp_path / "a", before), overlap(tmp_path / "b", after)).changes[1].comparison
    about = f"no p-value: the bootstrap needs at least 10 dialogues, found {dialogues}"
    assert (found.p_value, found.difference.interval is not None) == (None, has_interval)
    assert found.reason == about + ("; the interval needs no bootstrap" if has_interval else "")


def test_values_of_the_shared_items_stand_beside_those_of_each_run(tmp_path: Path) -> None:
    clean = {f"both{place}#2": 0.1 for place in range(4)}
    first = overlap(tmp_path / "a", {**clean, **{f"old{place}#2": 1.0 for place in range(6)}})
    second = overlap(tmp_path / "b", {**clean, "new#2": 0.9})
    found = compare(first, second)
    share = found.changes[0]
    assert (share.first, share.second, share.own) == (0.0, 0.0, (0.6, 0.2))
    assert share.of == (10, 5)
    assert {"own_first": 0.6, "own_second": 0.2}.items() <= share.to_dict().items()
    text = shown(first, second)
    assert cells(text, "share over 0.8")[0] == ["0", "0", "0", "– a", "4"]
    assert cells(text, "over all items")[0] == ["0.6", "0.2", "", "", "10 and 5"]
    assert "Before and after are of the items of both" in text
    section = section_of(found)
    assert isinstance(section.blocks[0], Prose)
    assert section.blocks[0].text.startswith("2 of 2 numbers share only a part of their items: before and after are of")
    assert section.tables[1].rows[0] == ("overlap", "", "share over 0.8", 4, 10, 5, 0.6, 0.2)
    whole = overlap(tmp_path / "c", {**clean, **{f"old{place}#2": 0.5 for place in range(6)}})
    assert len(section_of(compare(first, whole)).blocks) == 1
    assert "over all items" not in shown(first, whole)


def test_runs_that_share_no_item_say_so(tmp_path: Path) -> None:
    first, second = overlap(tmp_path / "a", {"x#2": 1.0}), overlap(tmp_path / "b", {"y#2": 0.0})
    share = compare(first, second).changes[0]
    assert (share.first, share.own, share.comparison.reason) == (None, (1.0, 0.0), "no item is in both")
    text = shown(first, second)
    assert cells(text, "share over 0.8")[0] == ["–", "–", "—", "– a", "0"]
    assert "\na: no item is in both\n" in text


def test_what_is_in_one_of_both_only_and_what_was_told_otherwise_is_said(tmp_path: Path) -> None:
    def probed(name: str, tasks: list[str], context: int) -> Path:
        folder = probe(tmp_path / name, dict.fromkeys(tasks, 1))
        kept = json.loads((folder / "result.json").read_text())
        kept["origin"]["settings"] = {"classifier": "logistic", "context": context}
        (folder / "result.json").write_text(json.dumps(kept))
        return folder

    found = compare(probed("a", ["T", "U"], 1), probed("b", ["T"], 2))
    assert found.left_out == ["probe: m0, F1 of U: in one of both only", "probe: context was 1, and is 2"]


def distract(folder: Path, origin: Origin, sets: dict[str, str]) -> Path:
    count = 12
    rows: Rows = {
        "model": ["m"] * count, "set": ["rare-end"] * count, "dialogue": [f"d{place}" for place in range(count)],
        "turn": [2] * count, "distraction": [0.1 * place for place in range(count)], "history": [0.0] * count,
        "log_likelihood": [-1.0] * count, "tokens": [1] * count,
    }  # fmt: skip
    about = {"sets": {name: {"fingerprint": one, "seed": origin.seed} for name, one in sets.items()}}
    return run(folder, "distract", "cases.parquet", rows, about, origin)


def test_other_test_sets_seeds_and_versions_are_said(tmp_path: Path) -> None:
    first = distract(tmp_path / "a", Origin("c@1", {}, 0, "0.1"), {"original": "o", "random-0.5": "p", "rare-end": "r"})
    second = distract(
        tmp_path / "b", Origin("c@1", {}, 7, "0.2"), {"original": "o", "random-0.5": "q", "rare-end": "s"}
    )
    found = compare(first, second)
    assert found.left_out == [
        "distract: seed was 0, and is 7",
        "distract: version was 0.1, and is 0.2",
        "distract: other test sets (random-0.5 was p, and is q; rare-end was r, and is s), paired by dialogue and turn "
        "alone",
    ]
    same = distract(tmp_path / "c", Origin("c@1", {}, 0, "0.1"), {"original": "o", "random-0.5": "p", "rare-end": "r"})
    assert compare(first, same).left_out == []


@pytest.mark.parametrize(("classifier", "told"), [("logistic", []), ("mlp", ["probe: seed was 0, and is 7"])])
def test_a_seed_that_decides_nothing_here_is_not_said(tmp_path: Path, classifier: str, told: list[str]) -> None:
    folders = [probe(tmp_path / name, {"T": 10}) for name in "ab"]
    for folder, seed in zip(folders, (0, 7), strict=True):
        kept = json.loads((folder / "result.json").read_text())
        kept["origin"] |= {"settings": {"classifier": classifier}, "seed": seed}
        (folder / "result.json").write_text(json.dumps(kept))
    assert compare(*folders).left_out == told


def test_other_raters_are_what_is_compared(tmp_path: Path) -> None:
    folders = [people(tmp_path / name, [1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0]) for name in "ab"]
    kept = json.loads((folders[1] / "result.json").read_text())
    kept["origin"]["settings"] = {"raters": "rdep-small@1234"}
    (folders[1] / "result.json").write_text(json.dumps(kept))
    assert compare(*folders).left_out == []


def test_runs_that_share_nothing_are_told(tmp_path: Path) -> None:
    first = overlap(tmp_path / "a", {"d#2": 1.0})
    second = run(tmp_path / "b", "probe", "positions.parquet", {"x": [1]})
    with pytest.raises(UsageError, match="share no run: one has overlap; the other probe"):
        compare(first, second)
    with pytest.raises(UsageError, match="expected a whole run with its items"):
        compare(second, run(tmp_path / "c", "probe", "positions.parquet", {"x": [1]}))
