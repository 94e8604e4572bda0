from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.study.samples import ItemsQuestion, ItemsResult, install, items_result
from typer.testing import CliRunner

from dialoscope.cli import app
from dialoscope.corpus import Corpus
from dialoscope.engage import DepthSettings, RatingsSettings
from dialoscope.errors import UsageError
from dialoscope.metrics import Resampling
from dialoscope.metrics import measure as measure_responses
from dialoscope.overlap import OverlapSettings
from dialoscope.probe import ProbeSettings
from dialoscope.record import Origin
from dialoscope.report import Prose
from dialoscope.report.items import Items
from dialoscope.settings import BaseSettings
from dialoscope.study.compare import (
    CompareResult,
    _conditions,
    change_of,
    compare,
    corrected,
    smallest_difference,
    standard_error,
    written_p,
)
from dialoscope.study.run import Study, run

SHARE, MEAN = "ratio/test/share_over_0.8", "ratio/test/mean_ratio"


@pytest.fixture(autouse=True)
def results_of_items(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "study" not in request.fixturenames:
        install(monkeypatch, attention=ItemsQuestion)


def overlap(folder: Path, ratios: Mapping[str, float], **options: Any) -> Path:
    """Shares and means of ratios; the part of a name before # is the dialogue."""
    keys, values = [(name,) for name in ratios], np.asarray(list(ratios.values()))
    dialogues = [name.partition("#")[0] for name in ratios]
    numbers = {
        SHARE: Items.mean_of(keys, dialogues, (values > 0.8).astype(float)),
        MEAN: Items.mean_of(keys, dialogues, values),
    }
    return items_result(folder, numbers, **options)


def probe(folder: Path, right: Mapping[str, int], *, models: int = 1, dialogues: int = 10) -> Path:
    """F1 of tasks with so many right labels of 20 in each dialogue."""
    names = [f"d{place}" for place in range(dialogues)]
    numbers = {}
    for model in range(models):
        for task, count in right.items():
            above, below = np.full(dialogues, 2.0 * count), np.full(dialogues, 2.0 * count + 2 * (20 - count))
            numbers[f"m{model}/{task}/f1"] = Items([(name, "1") for name in names], names, above, below)
    return items_result(folder, numbers)


def attention(folder: Path, model: str, above: list[float], below: list[float], **options: Any) -> Path:
    names = [f"d{place}" for place in range(len(above))]
    items = Items([(name, "2") for name in names], names, np.asarray(above), np.asarray(below))
    return items_result(folder, {f"{model}/rare-end/das_ratio_of_means": items}, **options)


def people(folder: Path, scores: Mapping[str, list[float]], rated: list[float], **options: Any) -> Path:
    """Spearman's correlation of scores with ratings, by path."""
    names = [f"i{place}" for place in range(len(rated))]
    keys = [(name,) for name in names]
    numbers = {
        path: Items(keys, names, np.asarray(values, float), np.ones(len(rated)), np.asarray(rated, float))
        for path, values in scores.items()
    }
    return items_result(folder, numbers, **options)


def only_verdict(result: CompareResult) -> tuple[str, str]:
    (verdict,) = result.verdicts()
    return verdict.level, verdict.text


def test_numbers_are_compared_on_the_items_of_both(tmp_path: Path) -> None:
    first = overlap(tmp_path / "a", {"d1#2": 0.9, "d1#3": 0.1, "d2#2": 1.0, "old#2": 1.0})
    second = overlap(tmp_path / "b", {"d1#2": 0.2, "d1#3": 0.1, "d2#2": 1.0, "new#2": 0.0, "new#3": 0.0})
    share, mean = compare(first, second).changes
    assert (share.path, share.first, share.second) == (SHARE, 2 / 3, 1 / 3)
    assert share.difference.value == pytest.approx(-1 / 3)
    assert (share.items, share.only) == (3, (1, 2))
    assert mean.difference.value == pytest.approx((0.2 - 0.9) / 3)


def test_f1_is_computed_from_counts(tmp_path: Path) -> None:
    def counted(name: str, right: list[int], too_many: list[int], missing: list[int]) -> Path:
        above, rest = 2.0 * np.asarray(right), np.asarray(too_many) + np.asarray(missing)
        items = Items([("x",), ("y",)], ["x", "y"], above, above + rest)
        return items_result(tmp_path / name, {"m/T/f1": items})

    (change,) = compare(counted("a", [1, 0], [0, 1], [1, 1]), counted("b", [2, 1], [0, 0], [0, 0])).changes
    assert [change.first, change.second] == pytest.approx([2 / 5, 1])
    assert change.difference.value == pytest.approx(3 / 5)


def test_one_model_on_each_side_is_compared_with_the_other(tmp_path: Path) -> None:
    first = attention(tmp_path / "a", "old", [1.0, 1.0], [2.0, 2.0])
    (change,) = compare(first, attention(tmp_path / "b", "new", [3.0, 3.0], [2.0, 2.0])).changes
    assert change.path == "old → new/rare-end/das_ratio_of_means"
    assert [change.first, change.second] == pytest.approx([0.5, 1.5])


def test_log_perplexity_is_called_so(tmp_path: Path) -> None:
    def perplexity(name: str, likelihood: float) -> Path:
        items = Items([("x",)], ["x"], np.asarray([-likelihood]), np.asarray([4.0]))
        return items_result(tmp_path / name, {"m/original/perplexity": items})

    (change,) = compare(perplexity("a", -8.0), perplexity("b", -4.0)).changes
    assert (change.shown_path, change.first, change.second) == ("m/original/log perplexity", 2.0, 1.0)


def test_what_is_significant_is_told_with_its_direction(tmp_path: Path) -> None:
    before = {f"d{place}#2": 0.9 for place in range(40)}
    after = {name: 0.1 if place % 5 else 0.9 for place, name in enumerate(before)}
    better = compare(overlap(tmp_path / "a", before), overlap(tmp_path / "b", after))
    assert [change.is_better for change in better.changes] == [True, True]
    worse = compare(tmp_path / "b", tmp_path / "a")
    assert [change.is_better for change in worse.changes] == [False, False]
    assert only_verdict(worse) == ("concern", "2 of 2 numbers are significantly worse than before.")


def test_a_number_of_which_neither_end_is_better_is_neither_better_nor_worse(tmp_path: Path) -> None:
    def history(name: str, value: float) -> Path:
        names = [f"d{place}" for place in range(40)]
        items = Items.mean_of([(each,) for each in names], names, np.full(40, value))
        return items_result(tmp_path / name, {"m/rare-end/history_percent": items})

    found = compare(history("a", 90.0), history("b", 50.0))
    (change,) = found.changes
    assert change.p_holm is not None
    assert (change.p_holm < 0.05, change.is_better, found.better, found.worse) == (True, None, 0, 0)


def test_a_study_against_its_copy_has_not_changed(study: Study, tmp_path: Path) -> None:
    shutil.copytree(study.folder, tmp_path / "later")
    found = compare(study.folder, tmp_path / "later")
    assert {change.difference.value for change in found.changes} == {0.0}
    assert {change.is_better for change in found.changes} == {None}
    assert all(change.is_identical for change in found.changes)
    level, text = only_verdict(found)
    assert (level, "all are the same item by item" in text) == ("cannot_tell", True)
    assert {change.run for change in found.changes} == {"overlap-small", "attention-small", "probe-small"}
    for change in found.changes:
        assert change.second == pytest.approx(study.results[change.run]["scores"][change.path]["value"])


def test_other_weights_are_no_reason_to_doubt_a_comparison(study: Study, small: Corpus, tmp_path: Path) -> None:
    paths = {name: str(next(study.folder.glob(f"models/{name}-*/best"))) for name in ("one", "two")}
    plan = {"corpora": {"small": "x"}, "models": {"one": paths["two"], "two": paths["one"]}, "attention": {"limit": 6}}
    later = run(plan, tmp_path / "s", corpora={"small": small})
    assert compare(study.folder, later.folder).left_out == ()


def test_items_without_a_number_on_either_side_are_left_out_of_both(tmp_path: Path) -> None:
    first = attention(tmp_path / "a", "m", [1.0, 5.0, math.nan], [1.0] * 3)
    (change,) = compare(first, attention(tmp_path / "b", "m", [1.0, math.nan, 1.0], [1.0] * 3)).changes
    assert (change.first, change.second, change.items, change.only) == (1.0, 1.0, 1, (1, 1))


def test_items_of_one_name_are_told_apart(tmp_path: Path) -> None:
    items = Items.mean_of([("d#1",), ("d#1",)], ["d", "d"], np.asarray([1.0, 0.0]))
    folders = [items_result(tmp_path / name, {MEAN: items}) for name in "ab"]
    (mean,) = compare(*folders).changes
    assert (mean.first, mean.second, mean.items) == (0.5, 0.5, 2)


def test_correlations_with_people_are_compared_on_the_same_ratings_only(tmp_path: Path) -> None:
    rated, path = [1.0, 2.0, 3.0, 4.0], "m/s/spearman"
    first, second = (
        people(tmp_path / "a", {path: [1, 2, 3, 4]}, rated),
        people(tmp_path / "b", {path: [4, 3, 2, 1]}, rated),
    )
    (change,) = compare(first, second).changes
    assert (change.first, change.second) == (1.0, -1.0)
    assert change.difference.value == -2.0


def test_changed_ratings_leave_out_their_number_and_nothing_else(tmp_path: Path) -> None:
    rated = np.asarray([1.0, 2.0, 3.0, 4.0])

    def rate(name: str, scores: list[float], other: list[float]) -> Path:
        keys = [(f"i{place}",) for place in range(4)]
        names = [key[0] for key in keys]
        numbers = {
            "m/s/spearman": Items(keys, names, np.asarray(scores), np.ones(4), np.asarray(other)),
            "m/t/spearman": Items(keys, names, np.asarray(scores), np.ones(4), rated),
        }
        return items_result(tmp_path / name, numbers)

    found = compare(rate("a", [1, 2, 3, 4], [1, 2, 3, 4]), rate("b", [4, 3, 2, 1], [2, 1, 3, 4]))
    assert [change.path for change in found.changes] == ["m/t/spearman"]
    assert found.left_out == ("attention: m/s/spearman: 2 of 4 items of both were rated otherwise",)


def test_other_dialogues_and_untested_numbers_are_no_good_news(tmp_path: Path) -> None:
    first = overlap(tmp_path / "a", {"d#2": 1.0})
    second = overlap(tmp_path / "b", {"d#2": 1.0}, origin=Origin("c@2"))
    found = compare(first, second)
    assert only_verdict(found)[0] == "cannot_tell"  # one dialogue is too few for a test
    assert found.left_out == ("attention: other dialogues (c@1, then c@2), paired by their ids alone",)
    with pytest.raises(UsageError, match="are one folder"):
        compare(first, first)


def test_numbers_that_are_the_same_item_by_item_are_not_tested(tmp_path: Path) -> None:
    first = probe(tmp_path / "a", {"T": 16, "U": 16})
    found = compare(first, probe(tmp_path / "b", {"T": 16, "U": 3}))
    same, changed = found.changes
    assert (same.is_identical, same.p_value, same.smallest) == (True, None, None)
    assert same.second == pytest.approx(0.8)
    assert same.reason == "both have the same values, item by item"
    assert changed.p_holm == changed.p_value  # alone in its family
    assert found.to_dict()["identical"] == 1
    assert found.section().lead == (
        "2 numbers of both: 0 significantly better, 1 worse, 0 that could not be tested. 1 is the same item by item."
    )


TASKS = [f"T{number}" for number in range(18)]


@pytest.mark.parametrize(
    ("dialogues", "level", "said"),
    [
        # Of 10 dialogues the least p-value is 2^-9; of 36 numbers that is 0.07.
        (10, "cannot_tell",
         "0 of 36 numbers changed significantly: no change was found, and none could have been found "
         "with 10 dialogues."),
        (12, "concern", "36 of 36 numbers are significantly worse than before."),
        (40, "concern", "36 of 36 numbers are significantly worse than before."),
    ],
)  # fmt: skip
def test_a_collapse_is_never_good_news(tmp_path: Path, dialogues: int, level: str, said: str) -> None:
    options: dict[str, Any] = {"models": 2, "dialogues": dialogues}
    first = probe(tmp_path / "a", dict.fromkeys(TASKS, 16), **options)
    found = compare(first, probe(tmp_path / "b", dict.fromkeys(TASKS, 3), **options))
    assert only_verdict(found) == (level, said)


def test_no_change_found_is_no_good_news(tmp_path: Path) -> None:
    before = {f"d{place}#2": place / 40 for place in range(40)}
    after = {name: value + 0.01 * (-1) ** place for place, (name, value) in enumerate(before.items())}
    level, text = only_verdict(compare(overlap(tmp_path / "a", before), overlap(tmp_path / "b", after)))
    assert level == "cannot_tell"
    assert "no change was found" in text
    assert "could have been found" not in text


def test_what_is_better_is_good_news_only_where_all_else_could_have_been_found(tmp_path: Path) -> None:
    first = overlap(tmp_path / "a", {f"d{place}#2": 0.9 for place in range(40)})
    second = overlap(tmp_path / "b", {f"d{place}#2": 0.1 if place % 5 else 0.9 for place in range(40)})
    assert only_verdict(compare(first, second)) == (
        "good", "2 of 2 numbers are significantly better than before, none is worse.",
    )  # fmt: skip

    def mixed(name: str, gain: int, fall: int) -> Path:
        """One task gains on 60 dialogues, 30 others fall on 10."""
        numbers = {}
        for task, right, count in [("U", gain, 60), *((f"T{number}", fall, 10) for number in range(30))]:
            names = [f"d{place}" for place in range(count)]
            above = np.full(count, 2.0 * right)
            numbers[f"m/{task}/f1"] = Items([(each,) for each in names], names, above, above + 2 * (20 - right))
        return items_result(tmp_path / name, numbers)

    assert only_verdict(compare(mixed("c", 5, 15), mixed("d", 15, 5))) == (
        "cannot_tell", "1 of 31 numbers are significantly better than before, none is worse; in 30 of them no change "
        "could have been found with 10 dialogues.",
    )  # fmt: skip


def responses(folder: Path, said: list[str], meant: list[str]) -> Path:
    return measure_responses(said, meant, name="ours", metrics=["length-ratio", "sentence-bleu-1"]).save(folder)


def test_responses_are_paired_where_row_and_reference_are_the_same(tmp_path: Path) -> None:
    meant = [f"w{place} a b c" for place in range(12)]
    said = [f"w{place} a" for place in range(12)]
    first = responses(tmp_path / "a", said, meant)
    turned = responses(tmp_path / "b", said[::-1], meant[::-1])
    assert {change.items for change in compare(first, turned).changes} == {0}
    partly = responses(tmp_path / "c", [f"{text} b" for text in said], [*meant[:11], "another"])
    found = compare(first, partly)
    assert {change.items for change in found.changes} == {11}
    assert not any(change.has_other_corpus for change in found.changes)  # other responses are what is compared
    assert [message for message in found.left_out if "ids alone" in message] == []


def test_a_fall_on_other_dialogues_cannot_be_told_from_a_change_of_the_dialogues(tmp_path: Path) -> None:
    before = {f"d{place}#2": 0.1 for place in range(40)}
    after = {name: 0.9 if place % 5 else 0.1 for place, name in enumerate(before)}
    first = overlap(tmp_path / "a", before)
    assert only_verdict(compare(first, overlap(tmp_path / "b", after)))[0] == "concern"
    found = compare(first, overlap(tmp_path / "c", after, origin=Origin("c@2")))
    assert only_verdict(found) == (
        "cannot_tell",
        "2 of 2 numbers are significantly worse than before, but the dialogues differ and were paired by their ids "
        "alone.",
    )
    assert [change["other_corpus"] for change in found.to_dict()["changes"]] == [True, True]


# --- What could have been found ---------------------------------------------------------------------------------------


def test_the_paired_standard_error_of_a_mean_is_that_of_the_differences() -> None:
    rng = np.random.default_rng(1)
    before, after = rng.normal(size=(2, 30))
    names = [f"d{place}" for place in range(30)]
    sides = [Items.mean_of([(name,) for name in names], names, values) for values in (before, after)]
    assert standard_error(*sides) == pytest.approx((after - before).std(ddof=1) / math.sqrt(30))


def test_the_paired_standard_error_of_a_ratio_is_the_jackknife_over_dialogues() -> None:
    above, below, names = np.asarray([1.0, 2.0, 4.0, 3.0]), np.asarray([2.0, 2.0, 5.0, 3.0]), ["x", "x", "y", "z"]
    keys = [(str(place),) for place in range(4)]
    first, second = Items(keys, names, np.zeros(4), below), Items(keys, names, above, below)
    # Without x, y, z: 7/8, 6/7, 7/9; sums by hand.
    left_out = np.asarray([7 / 8, 6 / 7, 7 / 9])
    expected = math.sqrt(2 / 3 * ((left_out - left_out.mean()) ** 2).sum())
    assert standard_error(first, second) == pytest.approx(expected)


def test_the_standard_error_of_a_correlation_leaves_each_dialogue_out() -> None:
    rng = np.random.default_rng(3)
    rated = rng.normal(size=400)
    names = [f"d{place}" for place in range(400)]
    keys = [(name,) for name in names]
    strong, weak = rated + rng.normal(size=400), rated + 3 * rng.normal(size=400)
    sides = [Items(keys, names, values, np.ones(400), rated) for values in (strong, weak)]
    change = change_of("r", "m/s/spearman", sides[0], sides[1], Resampling())
    assert not isinstance(change, str)
    assert change.difference.interval is not None
    low, high = change.difference.interval
    assert change.standard_error == pytest.approx((high - low) / 2 / 1.96, rel=0.15)


def test_the_smallest_difference_by_hand() -> None:
    # t(0.975) and t(0.8) with 24 degrees of freedom are 2.0639 and 0.8569 (Student's table).
    assert smallest_difference(0.1, dialogues=25, tests=1) == pytest.approx(0.1 * (2.0639 + 0.8569), rel=1e-4)
    # Ten tests: the smallest p-value has to keep 0.005; t(0.9975) with 24 degrees of freedom is 3.0905.
    assert smallest_difference(0.1, dialogues=25, tests=10) == pytest.approx(0.1 * (3.0905 + 0.8569), rel=1e-3)
    assert smallest_difference(0.1, dialogues=10, tests=36) is None  # 2^-9 · 36 is over 0.05


def test_a_difference_of_the_smallest_size_is_found_four_times_in_five() -> None:
    """Simulated: systems whose true difference is what smallest_difference gives for the true standard error."""
    rng, dialogues, found, rounds = np.random.default_rng(7), 40, 0, 300
    names = [f"d{place}" for place in range(dialogues)]
    keys = [(name,) for name in names]
    true = smallest_difference(0.5 / math.sqrt(dialogues), dialogues=dialogues, tests=1)
    assert true is not None
    for _ in range(rounds):
        before = rng.normal(size=dialogues)
        after = before + rng.normal(true, 0.5, size=dialogues)
        sides = [Items.mean_of(keys, names, values) for values in (before, after)]
        change = change_of("r", MEAN, sides[0], sides[1], Resampling(resamples=1000))
        assert not isinstance(change, str)
        (change,) = corrected([change])
        found += change.p_holm is not None and change.p_holm < 0.05
    assert found / rounds == pytest.approx(0.8, abs=0.07)  # three standard errors of 300 rounds


def test_a_constant_difference_has_no_smallest_difference_and_says_why(tmp_path: Path) -> None:
    before = {f"d{place}#2": 0.1 + place / 130 for place in range(40)}
    after = {name: value + 0.1 for name, value in before.items()}
    found = compare(overlap(tmp_path / "a", before), overlap(tmp_path / "b", after))
    (mean,) = (change for change in found.changes if change.path == MEAN)
    assert (mean.p_value is not None, mean.standard_error, mean.smallest) == (True, 0.0, None)
    said = "No smallest difference to be found for 1 of them: the difference is the same for every dialogue."
    assert said in found.summary().notes


def test_each_number_has_the_smallest_difference_of_its_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    before = {f"d{place}#2": value for place, value in enumerate(rng.uniform(0, 0.7, 60))}
    after = {name: value + rng.normal(0.02, 0.1) for name, value in before.items()}
    share, mean = compare(overlap(tmp_path / "a", before), overlap(tmp_path / "b", after)).changes
    differences = np.asarray([after[name] - before[name] for name in before])
    tests = sum(change.p_value is not None for change in (share, mean))
    assert mean.smallest == pytest.approx(
        smallest_difference(differences.std(ddof=1) / math.sqrt(60), dialogues=60, tests=tests)
    )
    assert mean.to_dict()["smallest"] == mean.smallest


# --- What people see --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "written"),
    [(None, None), (0.0004, "<0.001"), (0.0014, "0.001"), (0.0499, "0.0499"), (0.0501, "0.050"), (0.05, "0.050"),
     (0.049996, "0.049996"), (0.25, "0.250"), (1.0, "1.000")],
)  # fmt: skip
def test_a_p_value_is_not_rounded_to_nothing_nor_over_the_limit(p: float | None, written: str | None) -> None:
    assert written_p(p) == written


def shown(*folders: Path) -> str:
    """What people see in a terminal of 120 columns."""
    done = CliRunner().invoke(app, ["compare", *map(str, folders)], env={"COLUMNS": "120"})
    assert done.exit_code == 0
    return done.stdout


def cells(text: str, first: str) -> list[list[str]]:
    """The rows of tables that begin so."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if "│" in line]
    return [row[1:] for row in rows if row[0] == first]


def test_people_see_both_values_and_how_small_a_p_value_is(tmp_path: Path) -> None:
    before = {f"d{place}#2": 0.9 for place in range(40)}
    text = shown(overlap(tmp_path / "a", before), overlap(tmp_path / "b", dict.fromkeys(before, 0.1)))
    (row,) = cells(text, "mean_ratio")
    assert (row[:2], row[3], row[5]) == (["0.9", "0.1"], "<0.001 better", "40")
    assert "0.00 " not in text
    assert "attention · ratio/test" in text
    assert text.splitlines()[-1].startswith("Next: dialoscope report ")


def test_why_there_is_no_p_value_is_said(tmp_path: Path) -> None:
    first = overlap(tmp_path / "a", {"d1#2": 0.9, "d2#2": 0.1, "d3#2": 0.3})
    second = overlap(tmp_path / "b", {"d1#2": 0.85, "d2#2": 0.1, "d3#2": 0.2})
    few = "no p-value: the bootstrap needs at least 10 dialogues, found 3; the interval needs no bootstrap"
    text = shown(first, second)
    assert [cells(text, what)[0][3] for what in ("share_over_0.8", "mean_ratio")] == ["– the same", "–"]
    assert "No p-value for 1 of them: both have the same values, item by item." in text
    assert "No p-value for 1 of them: the bootstrap needs at least 10 dialogues, found 3" in text
    found = compare(first, second)
    assert list(found.section().tables[0].footnotes) == ["both have the same values, item by item", few]
    assert only_verdict(found)[1] == f"0 of 2 numbers changed significantly: none could be tested ({few})."


@pytest.mark.parametrize(("dialogues", "has_interval"), [(2, False), (7, True)])
def test_a_reason_says_that_it_is_of_the_p_value_where_it_stands_beside_an_interval(
    tmp_path: Path, dialogues: int, has_interval: bool
) -> None:
    before = {f"d{place}#2": place / 20 for place in range(dialogues)}
    after = {name: value + 0.1 + place / 50 for place, (name, value) in enumerate(before.items())}
    change = compare(overlap(tmp_path / "a", before), overlap(tmp_path / "b", after)).changes[1]
    about = f"no p-value: the bootstrap needs at least 10 dialogues, found {dialogues}"
    assert (change.p_value, change.difference.interval is not None) == (None, has_interval)
    assert change.reason == about + ("; the interval needs no bootstrap" if has_interval else "")


def test_values_of_the_shared_items_stand_beside_those_of_each_result(tmp_path: Path) -> None:
    clean = {f"both{place}#2": 0.1 for place in range(4)}
    first = overlap(tmp_path / "a", {**clean, **{f"old{place}#2": 1.0 for place in range(6)}})
    second = overlap(tmp_path / "b", {**clean, "new#2": 0.9})
    found = compare(first, second)
    share = found.changes[0]
    assert (share.first, share.second, share.own, share.only) == (0.0, 0.0, (0.6, 0.2), (6, 1))
    assert {"own_first": 0.6, "own_second": 0.2}.items() <= share.to_dict().items()
    text = shown(first, second)
    assert cells(text, "share_over_0.8")[0][:2] == ["0", "0"]
    assert cells(text, "over all items")[0] == ["0.6", "0.2", "", "", "", "10 and 5"]
    section = found.section()
    assert isinstance(section.blocks[0], Prose)
    assert section.blocks[0].text.startswith("2 of 2 numbers share only a part of their items: before and after are of")
    assert section.tables[1].rows[0] == (f"attention: {SHARE}", 4, 10, 5, 0.6, 0.2)
    whole = overlap(tmp_path / "c", {**clean, **{f"old{place}#2": 0.5 for place in range(6)}})
    assert len(compare(first, whole).section().blocks) == 1
    assert "over all items" not in shown(first, whole)


def test_results_that_share_no_item_say_so(tmp_path: Path) -> None:
    first, second = overlap(tmp_path / "a", {"x#2": 1.0}), overlap(tmp_path / "b", {"y#2": 0.0})
    share = compare(first, second).changes[0]
    assert (share.first, share.own, share.reason) == (None, (1.0, 0.0), "no item is in both")
    text = shown(first, second)
    assert cells(text, "share_over_0.8")[0] == ["–", "–", "—", "–", "–", "0"]
    assert "No p-value for 2 of them: no item is in both." in text


def test_a_comparison_is_saved_and_loaded_whole(tmp_path: Path) -> None:
    before = {f"d{place}#2": place / 40 for place in range(40)}
    after = {name: value / 2 for name, value in before.items()}
    found = compare(overlap(tmp_path / "a", before), overlap(tmp_path / "b", after))
    loaded = CompareResult.load(found.save(tmp_path / "c"))
    assert loaded.to_dict() == found.to_dict()
    assert loaded.section().blocks == found.section().blocks
    assert loaded.table.equals(found.table)
    assert {each.metadata[b"meaning"] for each in found.table.schema} > {b"after minus before"}


# --- What differs besides ---------------------------------------------------------------------------------------------


def test_what_is_in_one_of_both_only_and_what_was_set_otherwise_is_said(tmp_path: Path) -> None:
    first = attention(tmp_path / "a", "m", [1.0], [1.0], seed=0, dtype="float16")
    items = Items([("d0", "2")], ["d0"], np.ones(1), np.ones(1))
    numbers = {"m/rare-end/das_ratio_of_means": items, "m/rare-begin/das_ratio_of_means": items}
    second = items_result(tmp_path / "b", numbers, seed=7)
    assert compare(first, second).left_out == (
        "attention: m/rare-begin/das_ratio_of_means: in one of both only",
        "attention: dtype was float16, and is float32",
        "attention: seed was 0, and is 7",
    )


def test_other_test_sets_and_versions_are_said_but_not_what_decides_nothing(tmp_path: Path) -> None:
    origins = [
        Origin("c@1", {"sets": "p", "models": "x"}, 0, "0.1"),
        Origin("c@1", {"sets": "q", "models": "y"}, 0, "0.2"),
    ]
    folders = [
        attention(tmp_path / str(number), "m", [1.0], [1.0], origin=origin, batch_size=number + 1)
        for number, origin in enumerate(origins)
    ]
    assert compare(*folders).left_out == (
        "attention: version was 0.1, and is 0.2", "attention: sets was p, and is q",
    )  # fmt: skip


def test_a_seed_is_said_where_it_decides_more_than_intervals() -> None:
    def conditions(settings: BaseSettings, instrument: str) -> dict[str, Any]:
        kind = type("Asked", (ItemsResult,), {"instrument": instrument})
        return _conditions(
            kind(settings=settings, parts={}, used="", counts={}, origin=Origin("c@1"), ids=(), values={}, numbers={})
        )

    assert conditions(DepthSettings(seed=4), "depth")["seed"] == 4
    assert conditions(ProbeSettings(seed=4), "probe")["seed"] == 4
    assert "seed" not in conditions(OverlapSettings(seed=4), "overlap")
    assert "seed" not in conditions(RatingsSettings(seed=4), "ratings")


def test_results_of_other_questions_share_nothing(tmp_path: Path, small: Corpus) -> None:
    first = overlap(tmp_path / "a", {"d#2": 1.0})
    run({"corpora": {"small": "x"}, "overlap": {}}, tmp_path / "s", corpora={"small": small})
    with pytest.raises(
        UsageError, match="share no result: one has attention on c; the other corpus on small, overlap on"
    ):
        compare(first, tmp_path / "s")
