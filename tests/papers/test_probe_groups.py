"""The difficulty of each task, from the published scores (probe_tasks: Tables 6, 7 and 8; section 5)."""

from __future__ import annotations

import statistics

import pytest

from dialoscope.probe.scores import group_of
from dialoscope.probe.tasks import TASKS

COLUMNS = (
    "UtteranceLoc", "RecentTopic", "RecentSlots", "RecentValues", "RepeatInfo", "NumRepeatInfo", "NumRecentInfo",
    "AllSlots", "AllValues", "NumAllInfo", "AllTopics", "NumAllTopics", "IsMultiTopic", "EntitySlots", "EntityValues",
    "ActionSelect",
)  # fmt: skip

# Model -> scores of the checkpoint with the best BLEU, and the means of easy, medium and hard tasks in Table 8.
BEST = {
    "LSTM + Attn": (
        (57.55, 89.91, 67.39, 40.49, 70.92, 74.73, 62.48, 53.08,
         12.81, 25.73, 75.33, 79.39, 85.30, 41.29, 31.57, 60.14),
        {"easy": 77.6, "medium": 65.7, "hard": 44.4},
    ),
    "LSTM Seq2Seq": (
        (57.37, 89.45, 68.08, 39.78, 71.28, 75.36, 62.33, 53.40,
         12.76, 26.94, 75.03, 78.16, 83.90, 43.92, 31.96, 61.13),
        {"easy": 77.2, "medium": 65.7, "hard": 44.9},
    ),
    "BiLSTM + Attn": (
        (59.04, 89.85, 65.03, 39.06, 71.98, 75.63, 60.36, 54.96,
         15.13, 25.87, 78.11, 80.43, 86.20, 40.82, 29.91, 57.76),
        {"easy": 78.5, "medium": 65.6, "hard": 44.2},
    ),
    "HRED": (
        (37.15, 50.98, 34.84, 20.63, 71.68, 75.06, 38.59, 30.23,
         6.90, 14.96, 46.63, 68.66, 72.97, 24.33, 19.97, 35.66),
        {"easy": 72.1, "medium": 39.3, "hard": 25.4},
    ),
    "Transformer": (
        (39.46, 57.05, 30.10, 23.72, 72.70, 75.97, 39.11, 40.43,
         10.43, 9.71, 64.42, 76.10, 84.20, 19.83, 18.34, 15.35),
        {"easy": 77.2, "medium": 43.3, "hard": 24.4},
    ),
}  # fmt: skip

UNTRAINED = {
    "LSTM + Attn": (32.67, 18.97, 30.01, 25.31, 71.31, 75.22, 35.85, 9.91,
                    2.91, 0.00, 35.98, 77.26, 85.13, 20.12, 17.88, 14.99),
    "HRED": (10.82, 0.00, 26.64, 22.83, 72.15, 76.01, 35.14, 0.00,
             0.00, 0.00, 23.00, 77.40, 85.07, 17.17, 16.40, 1.19),
    "LSTM Seq2Seq": (32.40, 18.57, 30.45, 25.01, 71.64, 75.48, 35.82, 10.66,
                     3.21, 0.00, 36.49, 76.95, 85.23, 19.70, 17.61, 15.55),
    "BiLSTM + Attn": (38.98, 23.20, 28.56, 23.82, 71.61, 75.58, 34.45, 17.96,
                      5.24, 0.20, 43.38, 76.17, 85.00, 19.61, 17.50, 14.10),
}  # fmt: skip


@pytest.mark.parametrize("model", list(BEST))
def test_the_means_of_our_groups_are_those_of_table_8(model: str) -> None:
    scores, published = BEST[model]
    by_task = dict(zip(COLUMNS, scores, strict=True))
    for group, mean in published.items():
        members = [score for task, score in by_task.items() if TASKS[task].difficulty == group]
        assert statistics.mean(members) == pytest.approx(mean, abs=0.07), group


@pytest.mark.parametrize("task", COLUMNS)
def test_untrained_recurrent_encoders_put_a_task_into_its_group(task: str) -> None:
    mean = statistics.mean(scores[COLUMNS.index(task)] for scores in UNTRAINED.values())
    assert group_of(mean / 100) == TASKS[task].difficulty
