from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from turnwise.errors import UsageError
from turnwise.metrics import DEFAULT_METRICS, METRICS, Options, Pairs, Resampling, score_files, score_pairs

TARGETS = ["the cat sat", "a dog ran off", "yes", "no way", "I see"]
SAID = ["the cat sat", "a dog ran", "yes", "no", "I am"]
OTHER = ["a cat", "the dog ran", "no", "no way", "see"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found = {}
    for name, texts in (("said", SAID), ("targets", TARGETS), ("other", OTHER)):
        found[name] = tmp_path / f"{name}.txt"
        found[name].write_text("\n".join(texts) + "\n", encoding="utf-8")
    return found


def test_the_json_has_the_agreed_form(files: dict[str, Path]) -> None:
    result = score_files(files["said"], files["targets"], metrics=["bleu-2", "distinct-2"], seed=3)
    shown = json.loads(json.dumps(result.to_dict()))
    assert list(shown) == ["metrics"]
    assert list(shown["metrics"]) == ["bleu-2", "distinct-2"]
    assert list(shown["metrics"]["bleu-2"]) == ["value", "n", "interval", "signature"]
    assert shown["metrics"]["bleu-2"]["n"] == 5
    assert len(shown["metrics"]["bleu-2"]["interval"]) == 2
    assert "|seed:3|" in shown["metrics"]["bleu-2"]["signature"]


def test_a_comparison_adds_the_other_system_the_difference_and_p_values(files: dict[str, Path]) -> None:
    result = score_files(files["said"], files["targets"], metrics=["bleu-1", "length"], compare=files["other"])
    shown = result.to_dict()["comparisons"]["length"]
    assert shown["other"]["value"] == pytest.approx(9 / 5)
    assert shown["difference"]["value"] == pytest.approx(10 / 5 - 9 / 5)
    assert 0 < shown["p_value"] <= shown["p_holm"] <= 1
    assert shown["test"] == "randomisation"


def test_the_table_has_a_heading_and_a_row_for_each_metric(files: dict[str, Path]) -> None:
    rows = score_files(files["said"], files["targets"], metrics=["length", "perplexity"]).table()
    assert rows[0] == ("metric", "value", "interval", "n")
    assert rows[1][:2] == ("length", "2")
    assert rows[2][1].startswith("not computed: perplexity needs")


def test_the_table_of_a_comparison_is_as_wide_as_its_heading(files: dict[str, Path]) -> None:
    rows = score_files(files["said"], files["targets"], compare=files["other"]).table()
    assert {len(row) for row in rows} == {8}


def test_without_names_the_metrics_that_need_no_extra_are_computed(files: dict[str, Path]) -> None:
    assert tuple(score_files(files["said"], files["targets"]).scores) == DEFAULT_METRICS


def test_an_unknown_metric_gets_a_suggestion_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match=r"Unknown metric 'blue-2'. Did you mean 'bleu-2'\?"):
        score_files(Path("none.txt"), Path("none.txt"), metrics=["blue-2"])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"tokeniser": "13b"}, "13a"), ({"test": "t-test"}, "Unknown test"), ({"interval": "bcaa"}, "bca")],
)
def test_an_unknown_choice_gets_a_suggestion(files: dict[str, Path], options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        score_files(files["said"], files["targets"], **options)  # type: ignore[arg-type]


def test_another_system_with_other_counts_is_an_error_that_names_both(files: dict[str, Path], tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("one\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds 5 responses and .*short\.txt holds 1"):
        score_files(files["said"], files["targets"], compare=short)


def test_other_pairs_of_another_number_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="2 and 1 pairs"):
        score_pairs(Pairs(["a", "b"], ["a", "b"]), compare=Pairs(["a"], ["a"]))


def test_every_metric_of_the_table_scores_or_says_why() -> None:
    names = [name for name in METRICS if not name.startswith("embedding")]
    for name, score in score_pairs(Pairs(SAID, TARGETS), metrics=names, resampling=Resampling(100)).scores.items():
        assert (score.value is None) == (score.reason is not None)
        assert f"metric:{name}" in score.signature


def test_no_pairs_at_all_are_answered_by_every_metric() -> None:
    names = [name for name in METRICS if not name.startswith("embedding")]
    scores = score_pairs(Pairs([], []), metrics=names).scores
    assert all(one.value is None and one.reason for one in scores.values())


def test_a_metric_has_the_same_interval_alone_and_in_company() -> None:
    alone = score_pairs(Pairs(SAID, TARGETS), metrics=["bleu-2"]).scores["bleu-2"]
    company = score_pairs(Pairs(SAID, TARGETS), metrics=["length", "bleu-2"]).scores["bleu-2"]
    assert alone == company


def test_dialogues_widen_the_interval_of_alike_responses() -> None:
    said = ["a b c"] * 20 + ["a"] * 20 + ["a b"] * 20
    ids = ["x"] * 20 + ["y"] * 20 + ["z"] * 20
    grouped = score_pairs(Pairs(said, said, dialogues=ids), metrics=["length"]).scores["length"].interval
    single = score_pairs(Pairs(said, said), metrics=["length"]).scores["length"].interval
    assert grouped == pytest.approx((1, 3))
    assert single is not None
    assert single[1] - single[0] < 0.6


def test_lower_case_applies_to_metrics_that_leave_case_open() -> None:
    pairs = Pairs(["Yes yes"], ["yes yes"])
    result = score_pairs(pairs, metrics=["distinct-1", "bleu-1"], options=Options(lowercase=True))
    assert result.scores["distinct-1"].value == pytest.approx(1 / 2)
    assert "case:lc" in result.scores["bleu-1"].signature


def test_importing_the_metrics_loads_no_heavy_library() -> None:
    heavy = ["torch", "numba", "scipy", "sacrebleu", "nltk", "rouge_score", "krippendorff", "transformers"]
    code = f"import sys, turnwise.metrics; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
