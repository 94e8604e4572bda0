"""What the findings about attention may say."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dialoscope.distract import AttentionResult, AttentionSettings
from dialoscope.record import Origin, Score

RATIO = "das_ratio_of_means"
NEAR = ((1.0001, 1.0006), (0.996, 0.998))  # intervals on one side of 1, nearer to it than a number is written


def result_of(**models: dict[str, Score]) -> AttentionResult:
    """A result by each model's ratio on each set; names of sets have _ for -."""
    sets = [name.replace("_", "-") for name in next(iter(models.values()))]
    result = AttentionResult(
        settings=AttentionSettings(),
        parts={"test": 40},
        used="Measured: test, 40 dialogues.",
        counts={"skipped": {}},
        origin=Origin("corpus@1"),
        models=tuple((model, f"{model}@1") for model in models),
        sets={name: {} for name in sets},
        cases=pa.table({}),
    )
    scores = {
        f"{model}/{name.replace('_', '-')}/{RATIO}": score
        for model, ratios in models.items()
        for name, score in ratios.items()
    }
    result.__dict__["_kept"] = {"scores": scores}
    return result


@pytest.mark.parametrize(
    ("value", "interval", "level"),
    [
        (0.8, (0.7, 0.9), "cannot_tell"),
        (1.2, (1.1, 1.3), "cannot_tell"),
        (0.95, (0.8, 1.1), "cannot_tell"),
        (1.0003, (1.0001, 1.0006), "cannot_tell"),  # sure, but nothing that is written down
        (0.997, (0.996, 0.998), "cannot_tell"),  # the same
        (0.95, None, "cannot_tell"),  # of three dialogues: nothing is sure
        (None, None, "not_measurable"),
    ],
)
def test_a_verdict_needs_an_interval(value: float | None, interval: tuple[float, float] | None, level: str) -> None:
    score = Score(value, 3, interval, reason="no History" if value is None else None)
    verdict = result_of(mine={"random_0.7": score}).verdict
    assert verdict.level == level
    assert verdict.scores == (f"mine/random-0.7/{RATIO}",)
    if value is None:
        assert "o History" in verdict.text
        return
    # Without a control for lengths, no ratio is good or a concern, however sure it is.
    is_sure = interval in ((0.7, 0.9), (1.1, 1.3))
    assert ("no control for them is measured" in verdict.text) == is_sure
    assert ("ends within 0.005 of the limit of 1." in verdict.text) == (interval in NEAR)
    assert f"On random-0.7, mine gives unrelated turns {value:.2f} times the attention of real ones" in verdict.text
    assert "(1 = cannot tell them apart; lower is better)" in verdict.text


def test_a_verdict_names_its_set_and_another_names_the_sets_that_draw_the_model() -> None:
    good, open_, worse, worst = (
        Score(value, 40, (value - 0.1, value + 0.1)) for value in (0.8, 0.95, 1.2, 1.3)
    )  # fmt: skip
    steady = {"random_1.0": good, "rare_end": open_, "frequent_end": good}
    drawn = {"random_1.0": good, "rare_end": worse, "frequent_end": worst}
    verdicts = result_of(steady=steady).verdicts()
    assert [verdict.level for verdict in verdicts] == ["cannot_tell"]
    assert verdicts[0].text.startswith("On random-1.0, steady ")
    both = result_of(steady=steady, drawn=drawn)
    assert [verdict.level for verdict in both.verdicts()] == ["cannot_tell"] * 3
    last = both.verdicts()[-1]
    assert last.text.startswith("On rare-end and frequent-end, drawn gives unrelated turns 1.20 times and 1.30")
    assert last.scores == (f"drawn/rare-end/{RATIO}", f"drawn/frequent-end/{RATIO}")
