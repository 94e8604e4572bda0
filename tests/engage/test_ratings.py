from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialoscope.corpus import Corpus, Turn
from dialoscope.corpus import Dialogue as Talk
from dialoscope.engage import RatingsResult, RatingsSettings, ratings
from dialoscope.engage.baselines import BASELINES, SingleTurn
from dialoscope.engage.human_sets import HumanSet, halves, item_key, pair_key, read_human
from dialoscope.engage.protocol import Dialogue, Floats
from dialoscope.engage.ratings import NO_SHUFFLED, RESAMPLING, measure_sets, without_selected
from dialoscope.engage.ratings_result import PARTIAL, SELECTED
from dialoscope.engage.ratings_section import people_table, section_of
from dialoscope.errors import UsageError
from dialoscope.metrics import Resampling
from dialoscope.record import Score, direction

QUICK = Resampling(resamples=300, method="percentile")
N = 40


@dataclass(frozen=True)
class Known:
    """A rater that has its scores from a table."""

    name: str
    scores: Mapping[str, float]
    selected_on: frozenset[str] = frozenset()
    is_shuffled: bool = False

    def rate(self, dialogues: Sequence[Dialogue]) -> Floats:
        return np.array([self.scores[pair_key(one)] for one in dialogues], dtype=np.float32)


@pytest.fixture
def people() -> HumanSet:
    """Forty turns of one to nine words, rated by three people who like long ones; one metric scores 39 of them."""
    rng = np.random.default_rng(5)
    words = rng.integers(1, 10, N)
    dialogues = tuple(
        (*["Hi ."] * (place % 3), " ".join([f"w{place}"] * int(count))) for place, count in enumerate(words)
    )
    ratings = np.clip(np.round(words[:, None] / 2 + rng.normal(0, 1.2, (N, 3))), 1, 5)
    bleu = rng.normal(size=N)
    bleu[7] = math.nan
    clusters = tuple(str(place) for place in range(N))
    return HumanSet(
        "people", dialogues, ratings, clusters, ("ann", "bob", "eve"), {"bleu": bleu}, "engagement", "Mine."
    )


def known(people: HumanSet, *, noise: float, seed: int = 1) -> Known:
    """A rater that knows people's mean, but for some noise."""
    values = people.mean + np.random.default_rng(seed).normal(0, noise, len(people))
    return Known(f"known@{seed}", dict(zip(people.keys, values.astype(np.float32).tolist(), strict=True)))


def values_of(rater: Known, people: HumanSet) -> list[float]:
    return [rater.scores[key] for key in people.keys]


def evaluate(
    raters: Mapping[str, Any], sets: Sequence[HumanSet], *, reproduce_paper: bool = False, **options: Any
) -> RatingsResult:
    """Raters on sets, by these baselines and this resampling."""
    return measure_sets(raters, sets, settings=RatingsSettings(reproduce_paper=reproduce_paper), **options)


def of_set(found: RatingsResult, name: str = "people") -> dict[str, Any]:
    """The numbers of one set, as plain values."""
    one = found.sets[name]
    return {
        "n": one.n,
        "ceiling": one.ceiling.value,
        "ceilings": {kind: score.to_dict() for kind, score in one.ceilings.items()},
        "annotators": one.annotators_per_item,
        "annotator_names": one.annotators,
        "left_out": dict(one.left_out),
        "note": one.note,
        **{kind: {rater: shown(each) for rater, each in some.items()} for kind, some in one.raters.items()},
        "comparisons": [compared(each) for each in one.comparisons],
    }


def shown(one: Any) -> dict[str, Any]:
    """One rater's values, with what belongs to its Spearman correlation."""
    spearman = one["spearman"]
    return {
        **{name: score.value for name, score in one.scores.items()},
        "interval": spearman.interval,
        "intervals": {name: score.interval for name, score in one.scores.items() if score.interval},
        "n": spearman.n,
        "signature": spearman.signature,
        "signatures": {name: score.signature for name, score in one.scores.items()},
        "reasons": {name: score.reason for name, score in one.scores.items() if score.reason},
    } | ({"mark": SELECTED} if one.is_selected else {})


def compared(one: Any) -> dict[str, Any]:
    """One comparison's values."""
    williams = {**asdict(one.pearson), "p_holm": one.pearson_p_holm}
    second = {"first": one.first, "second": one.second, "second_is": one.second_kind.removesuffix("s")}
    note = {"note": one.note} if one.note else {}
    signature = {"signature": one.spearman.difference.signature}
    tested = one.spearman.to_dict()
    return {**second, **tested, "difference": tested["difference"] | signature, "williams": williams, **note}


def partial_spearman(x: Any, y: Any, z: Any) -> float:
    """(r_xy − r_xz r_yz) / sqrt((1 − r_xz²)(1 − r_yz²)) of ranks."""
    xy, xz, yz = (stats.spearmanr(*pair)[0] for pair in ((x, y), (x, z), (y, z)))
    return float((xy - xz * yz) / math.sqrt((1 - xz**2) * (1 - yz**2)))


def test_correlations_are_scipys(people: HumanSet) -> None:
    rater = known(people, noise=1.0)
    one = of_set(evaluate({"mine": rater}, [people], resampling=QUICK))["models"]["mine"]
    x, y = values_of(rater, people), people.mean
    assert one["pearson"] == pytest.approx(stats.pearsonr(x, y)[0])
    assert one["spearman"] == pytest.approx(stats.spearmanr(x, y)[0])
    assert one["kendall"] == pytest.approx(stats.kendalltau(x, y)[0])
    assert one["n"] == N
    low, high = one["interval"]
    assert low < one["spearman"] < high
    assert one["interval"] == one["intervals"]["spearman"]
    assert set(one["intervals"]) == {"pearson", "spearman", "kendall", "partial_given_length"}


def test_the_ceiling_is_one_annotator_against_the_rest(people: HumanSet) -> None:
    found = of_set(evaluate({"mine": known(people, noise=1.0)}, [people], resampling=QUICK))
    for kind, measure in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        each = [measure(people.ratings[:, j], np.delete(people.ratings, j, axis=1).mean(axis=1))[0] for j in range(3)]
        assert found["ceilings"][kind]["value"] == pytest.approx(np.mean(each))
    assert found["ceiling"] == found["ceilings"]["spearman"]["value"]
    assert (found["n"], found["annotators"], len(found["annotator_names"])) == (N, 3, 3)
    assert found["annotator_names"] == ("ann", "bob", "eve")
    mine = found["models"]["mine"]
    assert mine["share_of_ceiling"] == pytest.approx(mine["spearman"] / found["ceiling"])


def test_intervals_are_over_dialogues(people: HumanSet) -> None:
    """Every rated turn four times over, in the dialogue that it is in, makes no interval narrower."""
    rater = known(people, noise=1.0)
    found = []
    for one in (people, people.select([place for place in range(N) for _ in range(4)])):
        set_ = evaluate({"mine": rater}, [one], resampling=QUICK).sets["people"]
        mine = set_.raters["models"]["mine"]
        found.append([set_.ceiling, set_.ceilings["pearson"], *map(mine.__getitem__, ("pearson", "spearman", PARTIAL))])
    for plain, copied in zip(*found, strict=True):
        assert copied.n == 4 * plain.n
        (low, high), again = plain.interval or (0.0, 0.0), copied.interval or (0.0, 0.0)
        assert high - low > 0.01
        assert again == pytest.approx((low, high), rel=1e-6)


def test_length_is_held_fixed(people: HumanSet) -> None:
    rater = known(people, noise=1.0)
    found = of_set(evaluate({"mine": rater}, [people], resampling=QUICK))
    words = [len(dialogue[-1].split()) for dialogue in people.dialogues]
    expected = partial_spearman(values_of(rater, people), people.mean, words)
    assert found["models"]["mine"]["partial_given_length"] == pytest.approx(expected)
    count = found["baselines"]["word_count"]
    assert count["partial_given_length"] is None
    assert "held fixed" in count["reasons"]["partial_given_length"]


def test_every_baseline_stands_beside_the_models(people: HumanSet) -> None:
    found = of_set(evaluate({"mine": known(people, noise=1.0)}, [people], resampling=QUICK))
    assert list(found["baselines"]) == list(BASELINES)
    words = [len(dialogue[-1].split()) for dialogue in people.dialogues]
    assert found["baselines"]["word_count"]["spearman"] == pytest.approx(stats.spearmanr(words, people.mean)[0])
    assert set(found["baselines"]["random"]) == set(found["models"]["mine"])


def test_a_missing_control_with_shuffled_labels_is_told_once(people: HumanSet) -> None:
    mine, control = known(people, noise=1.0), replace(known(people, noise=9.0, seed=2), is_shuffled=True)
    found = evaluate({"mine": mine}, [people, replace(people, name="again")], resampling=QUICK)
    assert found.note.startswith("No control with shuffled labels: train one with dialoscope engage train")
    assert people_table(found).notes.count(found.note) == found.summary().notes.count(found.note) == 1
    told = evaluate({"mine": mine, "control": control}, [people], resampling=QUICK)
    assert told.note == ""
    assert NO_SHUFFLED not in people_table(told).notes
    assert SingleTurn(control).is_shuffled and not SingleTurn(mine).is_shuffled
    assert evaluate({}, [people], resampling=QUICK).note == ""  # no rater, no control


def test_other_metrics_are_scored_where_they_have_scores(people: HumanSet) -> None:
    one = of_set(evaluate({}, [people], resampling=QUICK))["metrics"]["bleu"]
    kept = np.isfinite(people.metrics["bleu"])
    assert one["n"] == N - 1
    assert one["spearman"] == pytest.approx(stats.spearmanr(people.metrics["bleu"][kept], people.mean[kept])[0])


def test_a_constant_rater_says_why_it_has_no_number(people: HumanSet) -> None:
    rater = Known("flat", dict.fromkeys(people.keys, 0.5))
    one = of_set(evaluate({"flat": rater}, [people], resampling=QUICK))["models"]["flat"]
    assert one["spearman"] is None
    assert one["interval"] is None
    assert "constant" in one["reasons"]["spearman"]
    assert "constant" in one["reasons"]["share_of_ceiling"]


def test_without_a_second_annotator_there_is_no_ceiling(people: HumanSet) -> None:
    alone = replace(people, ratings=people.ratings[:, :1], annotators=("ann",))
    found = of_set(evaluate({"mine": known(alone, noise=1.0)}, [alone], resampling=QUICK))
    assert found["ceiling"] is None
    assert found["models"]["mine"]["share_of_ceiling"] is None
    assert "there is no ceiling" in found["models"]["mine"]["reasons"]["share_of_ceiling"]


def test_signatures_name_set_rater_and_what_was_measured(people: HumanSet) -> None:
    one = of_set(evaluate({"mine": known(people, noise=1.0)}, [people], resampling=QUICK))["models"]["mine"]
    assert f"corpus:people@{people.fingerprint}|" in one["signature"]
    assert "rater:known@1" in one["signature"]
    assert "correlation:spearman" in one["signature"]
    assert "correlation:kendall" in one["signatures"]["kendall"]


# --- Comparisons ------------------------------------------------------------------------------------------------------


def test_models_meet_the_best_baseline_and_each_other(people: HumanSet) -> None:
    raters = {"good": known(people, noise=0.2), "bad": known(people, noise=9.0, seed=2)}
    found = of_set(evaluate(raters, [people], resampling=QUICK))
    values = {name: one["spearman"] for name, one in found["baselines"].items() if one["spearman"] is not None}
    best = max(values, key=lambda name: values[name])  # nobody asks anything, so question_mark has none
    assert "question_mark" not in values
    pairs = [(one["first"], one["second"], one["second_is"]) for one in found["comparisons"]]
    assert pairs == [
        ("good", best, "baseline"),
        ("bad", best, "baseline"),
        ("good", "bad", "model"),
        ("good", "bleu", "metric"),
        ("bad", "bleu", "metric"),
    ]
    last = found["comparisons"][2]
    expected = found["models"]["good"]["spearman"] - found["models"]["bad"]["spearman"]
    assert last["difference"]["value"] == pytest.approx(expected)
    assert last["difference"]["n"] == N
    assert last["p_value"] < 0.05


def test_models_meet_metrics_on_the_items_that_have_both(people: HumanSet) -> None:
    rater = known(people, noise=0.5)
    (one,) = of_set(evaluate({"mine": rater}, [people], baselines={}, resampling=QUICK))["comparisons"]
    kept = np.isfinite(people.metrics["bleu"])
    mine, bleu = (
        stats.spearmanr(np.asarray(values)[kept], people.mean[kept])[0]
        for values in (values_of(rater, people), people.metrics["bleu"])
    )
    assert one["difference"]["value"] == pytest.approx(mine - bleu)
    assert (one["difference"]["n"], one["williams"]["n"]) == (N - 1, N - 1)


def test_a_metric_without_scores_is_not_tested_and_not_counted(people: HumanSet) -> None:
    metrics = {"none": np.full(N, math.nan), "flat": np.ones(N), **people.metrics}
    found = of_set(
        evaluate({"mine": known(people, noise=1.0)}, [replace(people, metrics=metrics)], baselines={}, resampling=QUICK)
    )["comparisons"]
    assert [one["p_value"] is None for one in found] == [True, True, False]
    assert [one["williams"]["p_value"] is None for one in found] == [True, True, False]
    assert found[2]["p_holm"] == found[2]["p_value"]


def test_williams_t_is_that_of_its_formula(people: HumanSet) -> None:
    raters = {"a": known(people, noise=0.5), "b": known(people, noise=2.0, seed=2)}
    found = of_set(evaluate(raters, [people], baselines={}, resampling=QUICK))["comparisons"][0]["williams"]
    a, b = (values_of(one, people) for one in raters.values())
    r12, r13, r23 = (stats.pearsonr(*pair)[0] for pair in ((people.mean, a), (people.mean, b), (a, b)))
    determinant = np.linalg.det(np.corrcoef([people.mean, a, b]))
    spread = 2 * determinant * (N - 1) / (N - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    t = (r12 - r13) * math.sqrt((N - 1) * (1 + r23) / spread)
    assert found["statistic"] == pytest.approx(t)
    assert found["p_value"] == pytest.approx(2 * stats.t.sf(abs(t), N - 3))
    assert (found["n"], found["degrees_of_freedom"]) == (N, N - 3)


def test_p_values_are_corrected_over_all_sets(people: HumanSet) -> None:
    other = replace(people, name="other", ratings=people.ratings[::-1].copy())
    raters = {"a": known(people, noise=0.5), "b": known(people, noise=2.0, seed=2)}
    found = evaluate(raters, [people, other], resampling=QUICK)
    compared = [one for name in found.sets for one in of_set(found, name)["comparisons"]]
    for tests in (compared, [one["williams"] for one in compared]):
        ordered = sorted(tests, key=lambda one: one["p_value"])
        assert len(ordered) == 10
        largest = 0.0
        for rank, one in enumerate(ordered):
            largest = max(largest, min(1.0, one["p_value"] * (10 - rank)))
            assert one["p_holm"] == pytest.approx(largest)


def test_dialogues_are_drawn_whole_and_williams_says_what_it_assumes(people: HumanSet) -> None:
    shared = replace(people, clusters=tuple(str(place // 2) for place in range(N)))
    found = of_set(evaluate({"mine": known(people, noise=1.0)}, [shared], resampling=QUICK))
    best, bleu = found["comparisons"]
    assert "dialogues:20" in best["difference"]["signature"]
    assert best["note"] == "Williams' t takes 40 items of 20 dialogues as independent."
    assert bleu["note"] == "Williams' t takes 39 items of 20 dialogues as independent."  # one has no score
    assert (
        "note" not in of_set(evaluate({"mine": known(people, noise=1)}, [people], resampling=QUICK))["comparisons"][0]
    )


# --- What was selected on ---------------------------------------------------------------------------------------------


def test_items_of_the_selection_are_left_out_for_every_rater(people: HumanSet) -> None:
    raters = {"mine": known(people, noise=1.0), "other": known(people, noise=1.0, seed=2)}
    half = halves(people)
    found = of_set(evaluate(raters, [people], resampling=QUICK, selected_on={"mine": half.selection.keys}))
    assert found["n"] == 20
    assert {one["n"] for kind in ("models", "baselines") for one in found[kind].values()} == {20}
    assert found["left_out"] == {"used for the selection of mine": 20}
    assert found["note"] == "Mine. 20 items that mine was selected on are left out for all raters."
    rater = raters["other"]
    expected = stats.spearmanr(values_of(rater, half.reported), half.reported.mean)[0]
    assert found["models"]["other"]["spearman"] == pytest.approx(expected)


def test_what_a_rater_says_it_was_selected_on_is_left_out_unasked(people: HumanSet) -> None:
    half = halves(people)
    rater = replace(known(people, noise=1.0), selected_on=frozenset(half.selection.keys))
    found = of_set(evaluate({"mine": rater}, [people], resampling=QUICK))
    assert (found["n"], found["left_out"]) == (20, {"used for the selection of mine": 20})
    paper = of_set(evaluate({"mine": rater}, [people], resampling=QUICK, reproduce_paper=True))
    assert (paper["n"], paper["models"]["mine"]["mark"]) == (N, SELECTED)


def test_what_a_rater_says_is_joined_with_what_is_given(people: HumanSet) -> None:
    rater = replace(known(people, noise=1.0), selected_on=frozenset(people.keys[:5]))
    given = {"mine": people.keys[3:8]}
    assert of_set(evaluate({"mine": rater}, [people], resampling=QUICK, selected_on=given))["n"] == N - 8


def test_controls_that_were_selected_are_guarded_too(people: HumanSet) -> None:
    control = replace(known(people, noise=1.0), selected_on=frozenset(people.keys[:5]))
    found = evaluate({}, [people], baselines={"shuffled": control}, resampling=QUICK)
    assert of_set(found)["left_out"] == {"used for the selection of shuffled": 5}


def test_a_metric_of_a_raters_name_is_not_marked(people: HumanSet) -> None:
    rater = replace(known(people, noise=1.0), selected_on=frozenset(people.keys))
    found = of_set(evaluate({"bleu": rater}, [people], resampling=QUICK, reproduce_paper=True))
    assert "mark" in found["models"]["bleu"]
    assert "mark" not in found["metrics"]["bleu"]


def test_changed_texts_and_contexts_do_not_hide_what_was_selected_on(people: HumanSet) -> None:
    used = {"mine": people.keys[:12]}
    for change in (
        lambda turns: tuple(f" {turn.upper()} ..." for turn in turns),
        lambda turns: turns[-2:],
        lambda turns: ("Well ?", *turns),
    ):
        copy = replace(people, dialogues=tuple(map(change, people.dialogues)))
        assert without_selected(copy, used).mean.tolist() == people.mean[12:].tolist()


def test_exact_keys_of_whole_dialogues_are_recognised(people: HumanSet) -> None:
    used = {"mine": [item_key(turns) for turns in people.dialogues[:12]]}  # as predictors had them before pairs
    assert without_selected(people, used).keys == people.keys[12:]


def test_items_of_several_selections_are_all_left_out(people: HumanSet) -> None:
    both = without_selected(people, {"a": people.keys[:5], "b": people.keys[3:8], "c": ["elsewhere"]})
    assert both.keys == people.keys[8:]
    assert both.left_out == {"used for the selection of a, b": 8}


@pytest.mark.parametrize("left", [0, 9])
def test_a_set_that_was_selected_on_is_not_reported(people: HumanSet, left: int) -> None:
    used = {"mine": people.keys[left:]}
    with pytest.raises(UsageError, match="used for the selection of mine") as caught:
        evaluate({"mine": known(people, noise=1.0)}, [people], resampling=QUICK, selected_on=used)
    assert f"{N - left} of {N} items" in str(caught.value)
    assert "--reproduce-paper" in str(caught.value)


def test_ten_items_left_are_reported(people: HumanSet) -> None:
    used = {"mine": people.keys[10:]}
    found = of_set(evaluate({"mine": known(people, noise=1.0)}, [people], resampling=QUICK, selected_on=used))
    assert found["n"] == 10


def test_the_papers_way_keeps_the_items_and_is_marked(people: HumanSet) -> None:
    raters = {"mine": known(people, noise=1.0), "other": known(people, noise=1.0, seed=2)}
    used = {"mine": people.keys}
    result = evaluate(raters, [people], resampling=QUICK, selected_on=used, reproduce_paper=True)
    found = of_set(result)
    assert found["n"] == N
    assert found["models"]["mine"]["mark"] == SELECTED == "selected on this set"
    assert "mark" not in found["models"]["other"]
    assert found["note"] == "Mine. mine: selected on this set."
    assert "selected:True" in found["models"]["mine"]["signature"]
    assert "mine (selected on this set)" in people_table(result).to_csv()


def test_a_selection_elsewhere_changes_nothing(people: HumanSet) -> None:
    found = evaluate({"mine": known(people, noise=1.0)}, [people], resampling=QUICK, selected_on={"mine": ["else"]})
    assert of_set(found) == of_set(evaluate({"mine": known(people, noise=1.0)}, [people], resampling=QUICK))


# --- Bad input and tables ---------------------------------------------------------------------------------------------


def test_what_does_not_fit_together_is_refused(people: HumanSet) -> None:
    rater = known(people, noise=1.0)
    with pytest.raises(UsageError, match="at least one set"):
        evaluate({"mine": rater}, [])
    with pytest.raises(UsageError, match="Two sets are called 'people'"):
        evaluate({"mine": rater}, [people, people])
    with pytest.raises(UsageError, match=r"Unknown rater 'mime'\. Did you mean 'mine'\?"):
        evaluate({"mine": rater}, [people], selected_on={"mime": people.keys})


def test_a_rater_that_leaves_turns_out_is_a_bug(people: HumanSet) -> None:
    @dataclass(frozen=True)
    class Short:
        name: str = "short"

        def rate(self, dialogues: Sequence[Dialogue]) -> Floats:
            return np.zeros(3, dtype=np.float32)

    with pytest.raises(ValueError, match="short: expected a score for each of 40 dialogues"):
        evaluate({"short": Short()}, [people], resampling=QUICK)


def test_the_table_has_a_row_for_the_ceiling_and_each_rater(people: HumanSet) -> None:
    result = evaluate({"mine": known(people, noise=1.0)}, [people], resampling=QUICK)
    rows = list(csv.DictReader(io.StringIO(people_table(result).to_csv())))
    assert [(row["kind"], row["rater"]) for row in rows] == [
        ("ceiling", "annotators"),
        ("model", "mine"),
        *(("baseline", name) for name in BASELINES),
        ("metric", "bleu"),
    ]
    assert float(rows[1]["spearman"]) == of_set(result)["models"]["mine"]["spearman"]
    latex = people_table(result).to_latex()
    assert r"\toprule" in latex
    assert "people: Mine." in latex
    assert "a share above 1 is possible" in latex


def test_words_reach_0_725_on_dailydialog_human_and_pass_the_ceiling(data: Path) -> None:
    folder = data / "dailydialog_human"
    if not folder.is_dir():
        pytest.skip(f"no DailyDialog-Human in {data} (DIALOSCOPE_DATA)")
    found = of_set(evaluate({}, [read_human(folder)], resampling=QUICK), "dailydialog-human")
    words = found["baselines"]["word_count"]
    assert words["spearman"] == pytest.approx(0.725, abs=5e-4)
    assert words["share_of_ceiling"] > 1
    assert found["baselines"]["position"]["spearman"] is None  # every rated turn is the second
    assert (found["annotators"], len(found["annotator_names"])) == (3, 24)
    assert found["note"] == "The file has 3 annotators per item; the paper says 5."


def test_the_page_says_what_its_verdict_rests_on(people: HumanSet) -> None:
    found = evaluate({"ours": known(people, noise=0.5)}, [people], resampling=QUICK)
    one = next(each for each in found.sets["people"].comparisons if each.second_kind == "baselines")
    section = section_of(found)
    assert f"ours minus {one.second}: {one.spearman.difference.value or 0:+.2f} [" in section.lead
    assert "(paired bootstrap, Holm)." in section.lead


def test_the_card_of_the_page_has_n_and_an_interval(people: HumanSet) -> None:
    verdict = section_of(evaluate({"ours": known(people, noise=0.5)}, [people], resampling=QUICK)).verdict
    assert verdict is not None and isinstance(verdict.number, Score)
    low, high = verdict.number.interval or (1.0, 0.0)
    assert low < (verdict.number.value or 0.0) < high
    assert verdict.number.n == len(people)


@pytest.mark.parametrize(
    ("interval", "level"),
    [((0.1, 0.5), "good"), ((-0.5, -0.1), "concern"), ((-0.1, 0.5), "cannot_tell"), (None, "cannot_tell")],
)
def test_a_verdict_needs_an_interval_on_one_side_of_the_best_baseline(
    people: HumanSet, interval: tuple[float, float] | None, level: str
) -> None:
    found = evaluate({"ours": known(people, noise=0.5)}, [people], resampling=QUICK)
    one = found.sets["people"]
    first, *others = one.comparisons
    difference = Score(0.0 if interval is None else sum(interval) / 2, N, interval)
    tested = replace(first, spearman=replace(first.spearman, difference=difference))
    verdict = replace(found, sets={"people": replace(one, comparisons=(tested, *others))}).verdict
    assert verdict.level == level
    assert verdict.against == f"{first.second}/people/spearman"
    assert "the number of words by" in verdict.text and "one annotator with the others by" in verdict.text


def test_a_rater_that_was_selected_on_the_set_is_never_good(people: HumanSet) -> None:
    rater = replace(known(people, noise=0.01), selected_on=frozenset(people.keys))
    verdict = evaluate({"mine": rater}, [people], resampling=QUICK, reproduce_paper=True).verdict
    assert (verdict.level, "it was selected on this set" in verdict.text) == ("cannot_tell", True)
    assert (
        evaluate({"mine": replace(rater, selected_on=frozenset())}, [people], resampling=QUICK).verdict.level == "good"
    )


# --- One result and one call ------------------------------------------------------------------------------------------


def test_a_saved_result_is_the_same_when_it_is_loaded(people: HumanSet, tmp_path: Path) -> None:
    raters = {"bleu": known(people, noise=0.5), "random": known(people, noise=3.0, seed=2)}
    found = evaluate(raters, [people, replace(people, name="others")], resampling=QUICK)
    loaded = RatingsResult.load(found.save(tmp_path / "out"))
    assert loaded.to_dict() == found.to_dict() == json.loads(json.dumps(found.to_dict()))
    assert loaded.section().blocks == found.section().blocks
    assert loaded.sets["people"].comparisons == found.sets["people"].comparisons
    assert loaded.parts == {"people": N, "others": N}


def test_paths_tell_models_from_baselines_and_metrics_of_their_name(people: HumanSet) -> None:
    raters = {"bleu": known(people, noise=0.5), "random": known(people, noise=3.0, seed=2)}
    found = evaluate(raters, [people], resampling=QUICK)
    assert all(len(name.split("/")) == 3 and direction(name) for name in found.scores())
    subjects = list(dict.fromkeys(name.partition("/")[0] for name in found.scores()))
    assert subjects == [
        "annotators", "bleu", "random", "word_count", "question_mark", "position", "average_length", "baseline random",
        "metric bleu",
    ]  # fmt: skip
    assert found.scores()["bleu/people/spearman"] == found.sets["people"].raters["models"]["bleu"]["spearman"]


def test_items_hold_the_scores_beside_the_people(people: HumanSet) -> None:
    rater = known(people, noise=1.0)
    found = evaluate({"mine": rater}, [people], resampling=QUICK)
    ((name, items),) = found.items().items()
    assert name == "mine/people/spearman"
    assert items.above.tolist() == pytest.approx(values_of(rater, people))
    assert items.people is not None and items.people.tolist() == people.mean.tolist()
    assert [key for (key,) in items.keys] == list(people.keys)
    assert all(field.metadata[b"meaning"] for field in found.table.schema)


def test_one_call_takes_sets_corpora_paths_and_names_of_baselines(people: HumanSet, tmp_path: Path) -> None:
    found = ratings(people, models={"words": "word_count", "mine": known(people, noise=1.0)})
    scores = found.scores()
    assert scores["words/people/spearman"].value == scores["word_count/people/spearman"].value
    assert ratings([people], limit=12).parts == {"people": 12}
    assert ratings(people, reported_half=True).parts == {"people": N // 2}
    labels = {"ratings": {"engagement": {"ann": 1, "bob": 2}}}
    talks = [Talk((Turn("A", "hi there"), Turn("B", "well " * n, labels)), str(n)) for n in range(1, 13)]
    corpus = Corpus.of(talks, name="r")
    assert ratings(corpus).parts == {"r": 12}


def test_without_a_predictor_there_is_no_finding(people: HumanSet) -> None:
    verdict = evaluate({}, [people], resampling=QUICK).verdict
    assert verdict.level == "not_measurable"
    assert "no predictor was given" in verdict.text and "the number of words by" in verdict.text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ratings(3), "ratings takes paths, corpora or HumanSets of rated turns, found int"),  # type: ignore[arg-type]
        (lambda: ratings([]), "at least one set"),
        (lambda: ratings("nowhere.csv"), "No file or folder 'nowhere.csv'"),
        (lambda: ratings("x", against={"a": Corpus.of([])}), "leave out against"),
    ],
)
def test_a_wrong_call_is_one_line(call: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_resampling_follows_the_seed(people: HumanSet) -> None:
    first, second = (
        measure_sets(
            {"mine": known(people, noise=1.0)}, [people], settings=RatingsSettings(seed=seed), resampling=QUICK
        )
        for seed in (0, 1)
    )
    one, two = (found.scores()["mine/people/spearman"] for found in (first, second))
    assert one.value == two.value and one.interval != two.interval
    assert RESAMPLING.resamples == 10_000


@pytest.mark.parametrize(
    "change",
    [
        lambda turns: turns[-1:],
        lambda turns: (" ".join(turns[-2:]),),
        lambda turns: tuple(f"{'AB'[place % 2]}: {turn}" for place, turn in enumerate(turns)),
    ],
    ids=["reply alone", "as one text", "with labels"],
)
def test_copies_in_another_form_do_not_hide_what_was_selected_on(people: HumanSet, change: Any) -> None:
    used = {"mine": people.select(range(12)).selection_keys}
    copy = replace(people, dialogues=tuple(map(change, people.dialogues)))
    assert without_selected(copy, used).mean.tolist() == people.mean[12:].tolist()
    assert without_selected(people, used).mean.tolist() == people.mean[12:].tolist()
