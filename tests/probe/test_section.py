from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.probe.fakes import CHAT, Blind, Counting, probed

from dialoscope.corpus import generate
from dialoscope.errors import UsageError
from dialoscope.metrics import Comparison
from dialoscope.probe import ProbeResult
from dialoscope.probe.checkpoints import Choice
from dialoscope.probe.result import ModelScores
from dialoscope.probe.section import (
    comparison_table,
    control_table,
    group_table,
    label_picture,
    score_table,
    section_of,
    selection_table,
)
from dialoscope.record import Score
from dialoscope.report import Prose, Table
from dialoscope.report.section import Chart
from dialoscope.report.verdict import judge_count

CHOICES = {
    "run": {
        "perplexity": Choice("epoch-002", 60.0),
        "bleu_2": Choice("epoch-001", 2.5),
        "meteor": Choice("epoch-009", 0.1),  # which nobody probed
    }
}
EPOCHS = ("untrained", "epoch-001", "epoch-002")


def learning(*, controls: bool = False) -> ProbeResult:
    """A run that knows nothing, then everything, then nothing again."""
    models = {"run@untrained": Blind("blind@0"), "run@epoch-001": Counting(), "run@epoch-002": Blind("blind@2")}
    return replace(probed(models, controls=controls), checkpoints={"run": EPOCHS}, choices=CHOICES)


def several(count: int, **options: Any) -> ProbeResult:
    models = {f"m{place}": Blind(f"blind@{place}") for place in range(count - 1)}
    return probed({**models, "knows": Counting()}, **{"controls": False, **options})


def headings(table: Table) -> list[str]:
    return [one if isinstance(one, str) else one.name for one in table.columns]


def test_each_metric_is_shown_what_the_probes_find_where_it_stops() -> None:
    result = learning()
    chosen = result.selection["run"]
    assert list(chosen) == ["perplexity", "bleu_2"]
    assert [one.choice.checkpoint for one in chosen.values()] == ["epoch-002", "epoch-001"]
    scores = [result.models[one.model] for one in chosen.values()]
    assert [one.f1["UtteranceLoc"].value for one in scores] == [pytest.approx(2 / 8), 1.0]
    assert [one.groups["medium"].value for one in scores] == [pytest.approx(2 / 8), 1.0]
    table = selection_table(result, "run")
    assert headings(table) == ["task", "by perplexity: epoch-002", "by bleu_2: epoch-001"]
    assert "perplexity 60, bleu_2 2.5" in table.notes[0]
    assert any(
        "epoch-002 by perplexity (0.250), epoch-001 by bleu_2 (1.000)" in note for note in result.summary().notes
    )


def test_one_metric_alone_is_no_comparison() -> None:
    result = replace(
        probed({"run@by:bleu_2": Counting(), "run@last": Blind("blind@0")}, controls=False),
        checkpoints={"run": ("by:bleu_2", "last")},
        chosen={"run@by:bleu_2": "epoch-001"},
        choices=CHOICES,
    )
    assert result.selection == {}
    assert "run@by:bleu_2 is epoch-001." in score_table(result).notes


def comparison(
    p_holm: float | None, difference: float = 0.1, interval: tuple[float, float] | None = None
) -> Comparison:
    return Comparison(Score(difference, 96, interval), p_holm, "bootstrap", p_holm)


def with_tests(*tests: Comparison) -> ModelScores:
    model = probed({"m": Counting()}).models["m"]
    return replace(model, above_both={str(place): test for place, test in enumerate(tests)}, as_baseline=())


def test_a_p_value_of_nought_is_as_significant_as_can_be() -> None:
    """And one that could not be computed is not significant."""
    model = with_tests(*map(comparison, (0.0, 0.01, 0.2, None)))
    assert model.above == ["0", "1"]
    assert (model.count_above.value, model.count_above.n, model.count_above.interval) == (2, 4, (2, 4))


LEVELS = {
    "more than half surely": ([0.01, 0.01, 0.01], 1, "good"),
    "half is not more": ([0.01, 0.01], 2, "concern"),
    "none": ([], 4, "concern"),
    "no test decides": ([0.01, 0.01, 0.3, 0.3], 0, "cannot_tell"),
    "some tests do not decide": ([0.01, 0.3, 0.3], 1, "cannot_tell"),
}


@pytest.mark.parametrize("name", LEVELS)
def test_a_verdict_needs_more_than_half_of_the_tasks_decided(name: str) -> None:
    p_values, surely_not, level = LEVELS[name]
    model = with_tests(*map(comparison, p_values), *[comparison(1.0, -0.2, (-0.3, -0.1))] * surely_not)
    verdict = judge_count(model.count_above, "m/all tasks/tasks_above_baselines", text="Text.")
    assert verdict.level == level


def test_without_controls_nothing_is_good_or_bad() -> None:
    result = several(1)
    assert result.verdict.level == "not_measurable"
    assert "was not measured (controls = false)" in result.verdict.text
    assert result.scores()[result.verdict.scores[0]].value is None


def test_the_best_constant_answer_stands_beside_the_other_controls() -> None:
    table = control_table(learning(), "run@untrained")
    row = dict(zip(headings(table), table.rows[0], strict=True))
    assert row["constant"] == row["majority"] == pytest.approx(2 / 8)  # of a single label they are the same


def test_the_terminal_shows_scores_beside_their_controls() -> None:
    one = probed({"m": Counting()}).summary()
    assert headings(one) == ["task", "F1", "95 %", "major", "const", "words", "shuf."]
    few = several(3, controls=True).summary()
    assert headings(few) == ["task", "m0", "m1", "knows", "major", "const", "words"]
    many = several(6, controls=True).summary()
    assert headings(many) == ["model", "easy", "medium", "hard", "all", "above baselines"]
    assert [row[0] for row in many.rows[-3:]] == ["majority", "constant", "bag of words"]
    assert many.rows[5][4] == 1.0 and many.rows[5][5] == "0 of 1"


def charts(result: ProbeResult) -> dict[str, Chart]:
    return {one.title: one for one in result.figures()}


def test_learning_curves_show_what_a_bag_of_words_knows() -> None:
    """The words of these contexts tell their place, so the line lies at 1; without controls there is none."""
    lines = {one["name"]: one for one in charts(learning(controls=True))["UtteranceLoc"].figure["data"]}
    assert list(lines["bag of words"]["y"]) == [1.0, 1.0, 1.0]
    assert "bag of words" not in {one["name"] for one in charts(learning())["UtteranceLoc"].figure["data"]}


def test_few_models_stand_side_by_side_and_many_below_each_other() -> None:
    few, many = (score_table(several(count)) for count in (3, 6))
    assert headings(few) == ["task", "m0", "m1", "knows", "highest"]
    assert [row[-1] for row in few.rows] == ["knows"]
    assert headings(many) == ["model", "UtteranceLoc"]
    assert len(many.rows) == 6
    assert headings(score_table(several(1))) == ["task", "knows"]


def test_the_others_are_compared_with_the_first() -> None:
    table = comparison_table(several(2))
    assert headings(table) == ["task", "− knows", "p, knows"]
    assert isinstance(table.rows[0][1], Score) and table.rows[0][1].value == pytest.approx(-6 / 8)


def test_groups_of_the_baselines_stand_below_those_of_the_models() -> None:
    assert [row[0] for row in group_table(probed({"m": Counting()})).rows] == [
        "m", "majority", "constant", "bag of words",
    ]  # fmt: skip


def test_encodings_too_small_to_be_read_are_not_blamed_on_the_model() -> None:
    result = probed({"m": Blind("blind@0")})
    model = result.models["m"]
    silent = replace(model, f1={"UtteranceLoc": replace(model.f1["UtteranceLoc"], value=0.0, interval=None)})
    levels = []
    for spread in (1.0, 0.0, 1e-3):
        shown = replace(result, models={"m": replace(silent, spread=spread)})
        first = section_of(shown).blocks[0]
        is_advised = isinstance(first, Prose) and first.heading == "Before a number is read"
        levels.append((shown.verdict.level, is_advised, "scale" in shown.verdict.text, len(shown.summary().notes)))
        both = replace(shown, models={"m": silent, "other": silent})
        assert score_table(both).rows[0][-1] == "–"  # none is highest
    assert levels == [("concern", False, False, 0)] * 2 + [("cannot_tell", True, True, 1)]


def test_of_many_models_the_first_and_the_last_are_shown_beside_their_controls() -> None:
    for count, shown in ((2, ["m0", "knows"]), (6, ["m0", "knows"]), (4, ["m0", "m1", "m2", "knows"])):
        tables = [one for one in section_of(several(count)).blocks if isinstance(one, Table)]
        beside = [one for one in tables if one.caption.endswith("beside its controls")]
        assert [one.caption.split()[0] for one in beside] == shown
        assert ["in result.json" in one.notes[-1] for one in beside] == [count == 6] * len(beside)


def test_the_picture_of_labels_has_their_shares_in_order() -> None:
    """Of eight places in a dialogue, fifths hold 2, 2, 1, 2 and 1."""
    picture: Any = label_picture(several(1))
    (grid,) = picture.figure["data"]
    assert len(grid["z"]) == 1
    assert list(grid["z"][0])[:5] == [pytest.approx(share / 8) for share in (2, 2, 2, 1, 1)]
    assert set(list(grid["z"][0])[5:]) == {None}


def test_pictures_are_coloured_by_the_task_that_is_wanted() -> None:
    corpus = generate(dialogues=40, seed=1)
    usual, wanted = (
        probed(
            {"m": Counting()}, corpus, tasks=("UtteranceLoc", "IsMultiTopic"), controls=False, picture_by=task
        ).pictures[0]
        for task in (None, "IsMultiTopic")
    )
    assert (usual.task, wanted.task) == ("UtteranceLoc", "IsMultiTopic")
    assert set(wanted.points) <= {"yes", "no"} < set(usual.points) | {"yes", "no"}
    assert sum(map(len, wanted.points.values())) == sum(map(len, usual.points.values()))


def test_of_many_models_the_first_and_the_last_have_a_picture() -> None:
    assert [one.model for one in several(7).pictures] == ["m0", "knows"]
    assert len(several(6).pictures) == 6


def test_a_picture_cannot_be_coloured_by_what_was_not_asked() -> None:
    for task, message in {
        "RecentTopic": "cannot be coloured by RecentTopic: it needs state annotation",
        "UtteranceLocs": "Did you mean 'UtteranceLoc'",
    }.items():
        with pytest.raises(UsageError, match=message):
            probed({"m": Counting()}, CHAT, tasks=("UtteranceLoc", "RecentTopic"), picture_by=task)
