from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from dialoscope.probe.examine import Examined
from dialoscope.probe.report import beats_both, control_table, label_picture, score_table, section_of, selection_table
from tests.probe.test_measure import CHAT, FEW, Blind, Counting, splits

from dialoscope.corpus import generate
from dialoscope.errors import UsageError
from dialoscope.model.protocol import DialogueModel
from dialoscope.probe import Settings, chosen_tasks, examine, examples
from dialoscope.probe.checkpoints import Choice
from dialoscope.report import Prose, Table
from dialoscope.report.section import Chart

LOCATION = chosen_tasks(["UtteranceLoc"])
CHOICES = {
    "run": {
        "perplexity": Choice("epoch-002", 60.0),
        "bleu_2": Choice("epoch-001", 2.5),
        "meteor": Choice("epoch-009", 0.1),  # which nobody probed
    }
}
EPOCHS = {"run": {"untrained": "untrained", "epoch-001": "epoch-001", "epoch-002": "epoch-002"}}


def learning(*, has_controls: bool = False) -> Examined:
    """A run that knows nothing, then everything, then nothing again."""
    models: dict[str, DialogueModel] = {
        "run@untrained": Blind("blind@0"), "run@epoch-001": Counting(), "run@epoch-002": Blind("blind@2"),
    }  # fmt: skip
    how = Settings(has_controls=has_controls)
    return examine(
        models, *splits(CHAT), tasks=LOCATION, settings=how, resampling=FEW, checkpoints=EPOCHS, choices=CHOICES
    )


def several(count: int) -> Examined:
    models: dict[str, DialogueModel] = {f"m{place}": Blind(f"blind@{place}") for place in range(count - 1)}
    models["knows"] = Counting()
    return examine(models, *splits(CHAT), tasks=LOCATION, settings=Settings(has_controls=False), resampling=FEW)


def headings(table: Table) -> list[str]:
    return [one if isinstance(one, str) else one.name for one in table.columns]


def test_each_metric_is_shown_what_the_probes_find_where_it_stops() -> None:
    result = learning().result
    shown = result.to_dict()["selection"]["run"]
    assert list(shown) == ["perplexity", "bleu_2"]
    assert [one["checkpoint"] for one in shown.values()] == ["epoch-002", "epoch-001"]
    assert [one["tasks"]["UtteranceLoc"] for one in shown.values()] == [pytest.approx(2 / 8), 1.0]
    assert [one["groups"]["medium"] for one in shown.values()] == [pytest.approx(2 / 8), 1.0]
    table = selection_table(result, "run")
    assert headings(table) == ["task", "by perplexity: epoch-002", "by bleu_2: epoch-001"]
    assert "perplexity 60, bleu_2 2.5" in table.notes[0]


def test_one_metric_alone_is_no_comparison() -> None:
    models: dict[str, DialogueModel] = {"run@by:bleu_2": Counting(), "run@last": Blind("blind@0")}
    how = Settings(has_controls=False)
    chosen = {"run": {"by:bleu_2": "epoch-001", "last": "last"}}
    result = examine(
        models, *splits(CHAT), tasks=LOCATION, settings=how, resampling=FEW, checkpoints=chosen, choices=CHOICES
    ).result
    assert "selection" not in result.to_dict()
    assert result.to_dict()["chosen"] == {"run@by:bleu_2": "epoch-001"}
    assert "run@by:bleu_2 is epoch-001." in score_table(result).notes


def test_a_p_value_of_nought_is_as_significant_as_can_be() -> None:
    """And one that could not be computed is not significant."""
    task = learning(has_controls=True).result.models["run@epoch-001"].tasks["UtteranceLoc"]
    assert task.above_both is not None
    better = replace(task.above_both, difference=replace(task.above_both.difference, value=0.1, interval=None))
    tasks = [replace(task, above_both=replace(better, p_holm=p)) for p in (0.0, 0.01, 0.2, None)]
    assert beats_both(tasks) == (2, 4)


def test_the_best_constant_answer_stands_beside_the_other_controls() -> None:
    table = control_table(learning().result, "run@untrained")
    row = dict(zip(headings(table), table.rows[0], strict=True))
    assert row["constant"] == row["majority"] == pytest.approx(2 / 8)  # of a single label they are the same


def charts(found: Examined) -> dict[str, Chart]:
    section = section_of(found.result, labels=found.measured.labels, pictures=found.pictures)
    return {one.title: one for one in section.blocks if isinstance(one, Chart)}


def test_learning_curves_show_what_a_bag_of_words_knows() -> None:
    """The words of these contexts tell their place, so the line lies at 1; without controls there is none."""
    lines = {one["name"]: one for one in charts(learning(has_controls=True))["UtteranceLoc"].figure["data"]}
    assert list(lines["bag of words"]["y"]) == [1.0, 1.0, 1.0]
    assert "bag of words" not in {one["name"] for one in charts(learning())["UtteranceLoc"].figure["data"]}


def test_few_models_stand_side_by_side_and_many_below_each_other() -> None:
    few, many = (score_table(several(count).result) for count in (3, 6))
    assert headings(few) == ["task", "m0", "m1", "knows", "highest"]
    assert [row[-1] for row in few.rows] == ["knows"]
    assert headings(many) == ["model", "UtteranceLoc"]
    assert len(many.rows) == 6
    assert headings(score_table(several(1).result)) == ["task", "knows"]


def test_encodings_too_small_to_be_read_are_not_blamed_on_the_model() -> None:
    models: dict[str, DialogueModel] = {"m": Blind("blind@0")}
    result = examine(models, *splits(CHAT), tasks=LOCATION, settings=Settings(), resampling=FEW).result
    found = result.models["m"]
    task = found.tasks["UtteranceLoc"]
    found = replace(found, tasks={"UtteranceLoc": replace(task, f1=replace(task.f1, value=0.0, interval=None))})
    small = replace(result, models={"m": replace(found, spread=1e-3)})
    levels = []
    for one in (replace(result, models={"m": replace(found, spread=1.0)}), small):
        section = section_of(one)
        assert section.verdict is not None
        levels.append(
            (section.verdict.level, isinstance(section.blocks[0], Prose), "scale" in section.verdict.headline)
        )
        assert score_table(replace(one, models={"m": found, "other": found})).rows[0][-1] == "–"  # none is highest
    assert levels == [("bad", False, False), ("warn", True, True)]


def test_of_many_models_the_first_and_the_last_are_shown_beside_their_controls() -> None:
    for count, shown in ((2, ["m0", "knows"]), (6, ["m0", "knows"]), (4, ["m0", "m1", "m2", "knows"])):
        tables = [one for one in section_of(several(count).result).blocks if isinstance(one, Table)]
        beside = [one for one in tables if one.caption.endswith("beside its controls")]
        assert [one.caption.split()[0] for one in beside] == shown
        assert ["in result.json" in one.notes[-1] for one in beside] == [count == 6] * len(beside)


def test_the_picture_of_labels_has_their_shares_in_order() -> None:
    """Of eight places in a dialogue, fifths hold 2, 2, 1, 2 and 1."""
    found = several(1).measured.labels
    picture: Any = label_picture(found)
    (grid,) = picture.figure["data"]
    assert len(grid["z"]) == 1
    assert list(grid["z"][0])[:5] == [pytest.approx(share / 8) for share in (2, 2, 2, 1, 1)]
    assert set(list(grid["z"][0])[5:]) == {None}


def test_pictures_are_coloured_by_the_task_that_is_wanted() -> None:
    corpus = generate(dialogues=40, seed=1)
    parts = examples(corpus.split("train")), examples(corpus.split("validation"))
    tasks, how = chosen_tasks(["UtteranceLoc", "IsMultiTopic"]), Settings(has_controls=False)
    usual, wanted = (
        examine({"m": Counting()}, *parts, tasks=tasks, settings=how, resampling=FEW, picture_by=task).pictures[0]
        for task in (None, "IsMultiTopic")
    )
    assert (usual.task, wanted.task) == ("UtteranceLoc", "IsMultiTopic")
    assert set(wanted.points) <= {"yes", "no"} < set(usual.points) | {"yes", "no"}
    assert sum(map(len, wanted.points.values())) == sum(map(len, usual.points.values()))


def test_a_picture_cannot_be_coloured_by_what_was_not_asked() -> None:
    tasks, how = chosen_tasks(["UtteranceLoc", "RecentTopic"]), Settings(has_controls=False)
    for task, message in {
        "RecentTopic": "cannot be coloured by RecentTopic: it needs state annotation",
        "UtteranceLocs": "Did you mean 'UtteranceLoc'",
    }.items():
        with pytest.raises(UsageError, match=message):
            examine({"m": Counting()}, *splits(CHAT), tasks=tasks, settings=how, resampling=FEW, picture_by=task)
