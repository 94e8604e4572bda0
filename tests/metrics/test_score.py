from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dialoscope.errors import UsageError
from dialoscope.metrics import DEFAULT_METRICS, METRICS, Options, Pairs, Resampling, score_files, score_pairs
from dialoscope.metrics.embedding import WordVectors

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


def test_a_comparison_adds_the_other_system_the_difference_and_p_values(files: dict[str, Path]) -> None:
    result = score_files(files["said"], files["targets"], metrics=["bleu-1", "length"], compare=files["other"])
    # Of our 10 words 9 match, of their 9 words 6, and the references have 12.
    ours, theirs = 100 * 9 / 10 * math.exp(1 - 12 / 10), 100 * 6 / 9 * math.exp(1 - 12 / 9)
    shown = result.to_dict()
    assert shown["metrics"]["bleu-1"]["value"] == pytest.approx(ours)
    assert shown["comparisons"]["bleu-1"]["other"]["value"] == pytest.approx(theirs)
    assert shown["comparisons"]["bleu-1"]["difference"]["value"] == pytest.approx(ours - theirs)
    assert shown["comparisons"]["length"]["difference"]["value"] == pytest.approx(10 / 5 - 9 / 5)


def test_the_p_values_are_those_of_all_ways_to_exchange_five_responses(files: dict[str, Path]) -> None:
    result = score_files(files["said"], files["targets"], metrics=["bleu-1", "length"], compare=files["other"])
    # Words 3 3 1 1 2 against 2 3 1 2 1: differences 1 0 0 -1 1, a sum as large as 1 in all 32 exchanges of sides.
    assert result.comparisons["length"].p_value == 1
    differences = [_bleu_1_difference(swaps) for swaps in itertools.product([False, True], repeat=5)]
    exact = np.mean([abs(one) >= abs(differences[0]) - 1e-9 for one in differences])
    compared = result.comparisons["bleu-1"]
    assert compared.p_value == pytest.approx(exact, abs=0.02)  # 10,000 of them drawn: ± 4 standard errors
    assert compared.p_value is not None
    assert compared.p_holm == pytest.approx(2 * compared.p_value)
    assert compared.test == "randomisation"


def _bleu_1_difference(swaps: tuple[bool, ...]) -> float:
    from sacrebleu.metrics.bleu import BLEU

    sides = list(zip(SAID, OTHER, swaps, strict=True))
    bleu = BLEU(max_ngram_order=1)
    ours, theirs = [b if swap else a for a, b, swap in sides], [a if swap else b for a, b, swap in sides]
    return float(bleu.corpus_score(ours, [TARGETS]).score - bleu.corpus_score(theirs, [TARGETS]).score)


def test_what_cannot_be_bootstrapped_is_compared_by_randomisation_and_said(files: dict[str, Path]) -> None:
    result = score_files(files["said"], files["targets"], compare=files["other"], test="bootstrap", resamples=200)
    tests = {name: one.test for name, one in result.comparisons.items()}
    is_distinct = dict.fromkeys(("distinct-1", "distinct-2"), "randomisation")
    assert tests == {**dict.fromkeys(DEFAULT_METRICS, "bootstrap"), **is_distinct}
    assert result.notes == ("distinct-1, distinct-2: cannot be bootstrapped, so compared by randomisation.",)


def test_the_signature_of_a_difference_names_both_systems(files: dict[str, Path]) -> None:
    result = score_files(files["said"], files["targets"], metrics=["length"], compare=files["other"])
    both = [Pairs(texts, TARGETS).fingerprint for texts in (SAID, OTHER)]
    assert f"systems:said.txt@{both[0]}/other.txt@{both[1]}" in result.comparisons["length"].difference.signature


def test_the_table_has_a_heading_and_a_row_with_its_unit_for_each_metric(files: dict[str, Path]) -> None:
    rows = score_files(files["said"], files["targets"], metrics=["length", "bleu-1", "perplexity"]).table()
    assert rows[0] == ("metric", "unit", "value", "interval", "n")
    assert rows[1][:3] == ("length", "words", "2")
    assert rows[2][:2] == ("bleu-1", "percent")
    assert rows[3][2].startswith("not computed: perplexity needs")


def test_the_table_says_why_there_is_no_interval() -> None:
    rows = score_pairs(Pairs(["a b"], ["a b"]), metrics=["length"]).table()
    assert rows[1][3].startswith("none: an interval needs at least 3 dialogues")


def test_the_table_of_a_comparison_is_as_wide_as_its_heading(files: dict[str, Path]) -> None:
    rows = score_files(files["said"], files["targets"], compare=files["other"]).table()
    assert {len(row) for row in rows} == {9}


def test_without_names_the_metrics_that_need_no_extra_are_computed(files: dict[str, Path]) -> None:
    assert tuple(score_files(files["said"], files["targets"]).scores) == DEFAULT_METRICS


def test_an_unknown_metric_gets_a_suggestion_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match=r"Unknown metric 'blue-2'. Did you mean 'bleu-2'\?"):
        score_files(Path("none.txt"), Path("none.txt"), metrics=["blue-2"])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"tokeniser": "13b"}, "13a"), ({"test": "t-test"}, "Unknown test"), ({"interval": "bcaa"}, "bca")],
)
def test_an_unknown_choice_gets_a_suggestion_before_anything_is_read(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        score_files(Path("none.txt"), Path("none.txt"), **options)  # type: ignore[arg-type]


def test_no_metric_at_all_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"No metric is named\. Known: bleu-1, "):
        score_pairs(Pairs(SAID, TARGETS), metrics=[])


def test_another_system_with_other_counts_is_an_error_that_names_both(files: dict[str, Path], tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("one\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds 5 responses and .*short\.txt holds 1"):
        score_files(files["said"], files["targets"], compare=short)


def test_other_pairs_of_another_number_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="2 and 1 pairs"):
        score_pairs(Pairs(["a", "b"], ["a", "b"]), compare=Pairs(["a"], ["a"]))


def test_other_pairs_with_other_references_are_a_usage_error() -> None:
    theirs = Pairs(OTHER, [*TARGETS[:2], "maybe", *TARGETS[3:]], name="theirs")
    with pytest.raises(UsageError, match="reference 3 is 'yes' for pairs and 'maybe' for theirs"):
        score_pairs(Pairs(SAID, TARGETS), compare=theirs)


def test_other_pairs_of_other_dialogues_are_a_usage_error() -> None:
    ours, theirs = (Pairs(SAID, TARGETS, dialogues=ids) for ids in ("aabbc", "aabcc"))
    with pytest.raises(UsageError, match="line 4 is dialogue 'b' in pairs and 'c' in pairs"):
        score_pairs(ours, compare=theirs)


def test_another_system_whose_file_has_other_dialogues_is_a_usage_error(tmp_path: Path) -> None:
    paths = {}
    for name, ids in (("said", "aab"), ("other", "abb")):
        lines = [json.dumps({"dialogue_id": one, "response": "yes"}) for one in ids]
        paths[name] = tmp_path / f"{name}.jsonl"
        paths[name].write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(UsageError, match=r"line 2 is dialogue 'a' in .*said\.jsonl and 'b' in .*other\.jsonl"):
        score_files(
            paths["said"], paths["said"], column="response", reference_column="dialogue_id", compare=paths["other"]
        )


def test_dialogues_that_only_the_other_system_names_are_used_for_both() -> None:
    result = score_pairs(Pairs(SAID, TARGETS), metrics=["length"], compare=Pairs(OTHER, TARGETS, dialogues="aabbc"))
    assert "|dialogues:3|" in result.scores["length"].signature
    assert "|dialogues:3|" in result.comparisons["length"].difference.signature


# Twice the same five words, each with probability 1/2, and nothing else to be said.
PERFECT = {
    **{f"{kind}bleu-{order}": 100 for kind in ("", "sentence-") for order in (1, 2, 3, 4)},
    **{f"bleu-{rest}": 100 for rest in ("2-overlap", "4-overlap", "2-probe", "2-probe-exchanged")},
    "distinct-1": 5 / 10,
    "distinct-2": 4 / 8,
    "distinct-1-overlap": 100 * 5 / 10,
    "distinct-2-overlap": 100 * 5 / 10,  # four within, and one across the end of the first
    "distinct-responses": 1 / 2,
    "rouge-1": 1,
    "rouge-2": 1,
    "rouge-l": 1,
    "meteor": 1 - 0.5 / 5**3,
    "meteor-stem": 1 - 0.5 / 5**3,  # five matches in one chunk
    "embedding-average": 1,
    "embedding-extrema": 1,
    "embedding-greedy": 1,
    "perplexity": 2,
    "length": 5,
    "length-ratio": 1,
    "repetition-2": 0,
    "repetition-4": 0,
}


def test_every_metric_of_the_table_knows_a_perfect_answer() -> None:
    assert set(PERFECT) == set(METRICS)
    said = ["the cat sat on it"] * 2
    pairs = Pairs(said, said, log_likelihoods=[-5 * math.log(2)] * 2, token_counts=[5, 5])
    encoder = WordVectors({word: row for row, word in enumerate(said[0].split())}, np.eye(5, dtype=np.float32), "eye")
    result = score_pairs(pairs, metrics=list(METRICS), options=Options(encoder=encoder), resampling=Resampling(0))
    assert {name: one.value for name, one in result.scores.items()} == pytest.approx(
        {name: value for name, value in PERFECT.items() if name in result.scores}
    )
    assert set(METRICS) - set(result.scores) <= {"meteor"}  # where NLTK finds no WordNet


@pytest.mark.parametrize("name", METRICS)
def test_the_unit_of_a_metric_holds_its_perfect_answer(name: str) -> None:
    limits = {"percent": 100, "share": 1, "cosine": 1, "ratio": math.inf, "words": math.inf, "perplexity": math.inf}
    assert PERFECT[name] <= limits[METRICS[name].unit]


def test_no_pairs_at_all_are_answered_by_every_metric() -> None:
    names = [name for name in METRICS if not name.startswith("embedding")]
    scores = score_pairs(Pairs([], []), metrics=names).scores
    assert all(one.value is None and one.reason for one in scores.values())


def test_a_metric_has_the_same_interval_alone_and_in_company() -> None:
    alone = score_pairs(Pairs(SAID, TARGETS), metrics=["bleu-2"]).scores["bleu-2"]
    company = score_pairs(Pairs(SAID, TARGETS), metrics=["length", "bleu-2"]).scores["bleu-2"]
    assert alone == company


def test_dialogues_widen_the_interval_of_alike_responses() -> None:
    said = [" ".join(["word"] * (1 + place // 20 % 3)) for place in range(40 * 20)]  # 40 dialogues of 20 alike
    grouped = score_pairs(Pairs(said, said, dialogues=[place // 20 for place in range(800)]), metrics=["length"])
    single = score_pairs(Pairs(said, said), metrics=["length"])
    widths = [one.scores["length"].interval or (0, 0) for one in (grouped, single)]
    # Twenty alike responses say no more than one: the interval is wider by the square root of 20.
    ratio = (widths[0][1] - widths[0][0]) / (widths[1][1] - widths[1][0])
    assert ratio == pytest.approx(math.sqrt(20), rel=0.1)


def test_lower_case_applies_to_metrics_that_leave_case_open() -> None:
    pairs = Pairs(["Yes yes"], ["yes yes"])
    result = score_pairs(pairs, metrics=["distinct-1", "bleu-1"], options=Options(lowercase=True))
    assert result.scores["distinct-1"].value == pytest.approx(1 / 2)
    assert "case:lc" in result.scores["bleu-1"].signature


def test_importing_the_metrics_loads_no_heavy_library() -> None:
    heavy = ["torch", "numba", "scipy", "sacrebleu", "nltk", "rouge_score", "krippendorff", "transformers"]
    code = f"import sys, dialoscope.metrics; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
