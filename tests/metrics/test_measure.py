"""Metrics as a question: texts, files or pairs go in, one result comes out."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialoscope.errors import DialoscopeError, MissingExtraError, UsageError
from dialoscope.metrics import DEFAULT_METRICS, METRICS, MetricsResult, MetricsSettings, Pairs, measure
from dialoscope.metrics.embedding import WordVectors
from dialoscope.metrics.result import COLUMNS
from dialoscope.record import direction

TARGETS = ["the cat sat", "a dog ran off", "yes", "no way", "I see"]
SAID = ["the cat sat", "a dog ran", "yes", "no", "I am"]
OTHER = ["a cat", "the dog ran", "no", "no way", "see"]
FAST: dict[str, Any] = {"resamples": 100}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found = {}
    for name, texts in (("said", SAID), ("targets", TARGETS), ("other", OTHER)):
        found[name] = tmp_path / f"{name}.txt"
        found[name].write_text("\n".join(texts) + "\n", encoding="utf-8")
    return found


def test_two_lists_of_texts_are_measured() -> None:
    result = measure(SAID, TARGETS, metrics=["bleu-1", "length"])
    # Of our 10 words 9 match, and the references have 12.
    assert result.scores()["hypotheses/all/bleu-1"].value == pytest.approx(100 * 9 / 10 * math.exp(1 - 12 / 10))
    assert result.scores()["hypotheses/all/length"].value == 10 / 5
    assert list(measure(SAID, TARGETS, name="mine", metrics=["length"]).scores()) == ["mine/all/length"]


def test_lists_files_and_pairs_give_the_same_numbers(files: dict[str, Path]) -> None:
    asked: list[tuple[Any, ...]] = [
        (SAID, TARGETS),
        (files["said"], files["targets"]),
        (str(files["said"]), TARGETS),
        (tuple(SAID), np.array(TARGETS)),
        (Pairs(SAID, TARGETS),),
    ]
    numbers = [[score.to_dict() for score in measure(*each).scores().values()] for each in asked]
    assert all(each == numbers[0] for each in numbers)


def test_a_system_is_called_as_its_file(files: dict[str, Path]) -> None:
    result = measure(files["said"], files["targets"])
    assert list(result.scores()) == [f"said.txt/all/{name}" for name in DEFAULT_METRICS]


def test_other_systems_are_scored_compared_and_tested(files: dict[str, Path]) -> None:
    result = measure(files["said"], files["targets"], metrics=["bleu-1", "length"], against={"other": files["other"]})
    # Of our 10 words 9 match, of their 9 words 6, and the references have 12.
    ours, theirs = 100 * 9 / 10 * math.exp(1 - 12 / 10), 100 * 6 / 9 * math.exp(1 - 12 / 9)
    assert result.scores()["said.txt/all/bleu-1"].value == pytest.approx(ours)
    assert result.scores()["other/all/bleu-1"].value == pytest.approx(theirs)
    assert result.comparisons["other"]["bleu-1"].difference.value == pytest.approx(ours - theirs)
    assert result.comparisons["other"]["length"].difference.value == pytest.approx(10 / 5 - 9 / 5)


def test_the_p_values_are_those_of_all_ways_to_exchange_five_responses() -> None:
    result = measure(SAID, TARGETS, metrics=["bleu-1", "length"], against={"other": OTHER})
    # Words 3 3 1 1 2 against 2 3 1 2 1: differences 1 0 0 -1 1, a sum as large as 1 in all 32 exchanges of sides.
    assert result.comparisons["other"]["length"].p_value == 1
    differences = [_bleu_1_difference(swaps) for swaps in itertools.product([False, True], repeat=5)]
    exact = np.mean([abs(one) >= abs(differences[0]) - 1e-9 for one in differences])
    compared = result.comparisons["other"]["bleu-1"]
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


def test_holms_correction_is_over_all_systems_and_metrics() -> None:
    result = measure(SAID, TARGETS, metrics=["bleu-1", "length"], against={"one": OTHER, "two": OTHER})
    compared = [each for table in result.comparisons.values() for each in table.values()]
    assert len(compared) == 4
    least = min(each.p_value or 1 for each in compared)
    assert min(each.p_holm or 1 for each in compared) == pytest.approx(min(1, 4 * least))


def test_what_cannot_be_bootstrapped_is_compared_by_randomisation_and_noted() -> None:
    result = measure(SAID, TARGETS, against={"other": OTHER}, test="bootstrap", resamples=200)
    tests = {name: each.test for name, each in result.comparisons["other"].items()}
    is_distinct = dict.fromkeys(("distinct-1", "distinct-2"), "randomisation")
    assert tests == {**dict.fromkeys(DEFAULT_METRICS, "bootstrap"), **is_distinct}
    assert result.notes == ("distinct-1, distinct-2: cannot be bootstrapped, so compared by randomisation.",)


def test_the_signature_of_a_difference_names_both_systems(files: dict[str, Path]) -> None:
    result = measure(files["said"], files["targets"], metrics=["length"], against={"other": files["other"]})
    both = [Pairs(texts, TARGETS).fingerprint for texts in (SAID, OTHER)]
    expected = f"systems:said.txt@{both[0]}/other.txt@{both[1]}"
    assert expected in result.comparisons["other"]["length"].difference.signature


def test_dialogues_that_only_the_other_system_names_are_used_for_both() -> None:
    result = measure(Pairs(SAID, TARGETS), metrics=["length"], against={"x": Pairs(OTHER, TARGETS, dialogues="aabbc")})
    assert "|dialogues:3|" in result.scores()["pairs/all/length"].signature
    assert "|dialogues:3|" in result.comparisons["x"]["length"].difference.signature
    assert result.parts == {"all": 3}


def test_dialogues_are_named_beside_the_texts() -> None:
    result = measure(SAID, TARGETS, dialogues=["a", "a", "b", "b", "c"], metrics=["length"])
    assert result.used == "Measured: 5 responses of 3 dialogues. Intervals draw whole dialogues."
    assert measure(SAID[:1], TARGETS[:1], metrics=["length"]).used.startswith("Measured: 1 response. No dialogues")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"metrics": ["blue-2"]}, "Unknown metric 'blue-2'. Did you mean 'bleu-2'?"),
    ({"metrics": []}, "metrics is empty: name at least one metric, or 'all'."),
    ({"metrics": "bleu-2"}, "metrics takes a list, found 'bleu-2'."),
    ({"tokeniser": "13b"}, "tokeniser is one of 13a, intl, char, zh, whitespace, nltk, wordpunct; found '13b'."),
    ({"test": "t-test"}, "test is one of randomisation, bootstrap; found 't-test'."),
    ({"method": "bcaa"}, "method is one of jackknife, percentile, bca; found 'bcaa'."),
    ({"resamples": 10}, "resamples takes a whole number of 100 or more, found 10."),
    ({"metric": ["bleu-2"]}, "Unknown setting 'metric'. Did you mean 'metrics'?"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_settings_are_refused_before_anything_is_read(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        measure("none.txt", "none.txt", **options)
    assert str(caught.value) == message


INPUTS: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((SAID,), {}, "measure takes hypotheses and references, or Pairs; references are missing."),
    ((3, TARGETS), {}, "hypotheses takes a list of texts or a file, found int."),
    ((SAID, {"a": 1}), {}, "references takes a list of texts or a file, found dict."),
    ((SAID, [1, 2, 3, 4, 5]), {}, "references takes texts; number 1 is 1."),
    ((SAID, TARGETS[:2]), {}, "5 hypotheses and 2 references: expected one reference for each."),
    ((Pairs(SAID, TARGETS), TARGETS), {}, "Pairs hold references and dialogues: leave references and dialogues out."),
    (("nowhere.txt", TARGETS), {}, "nowhere.txt: there is no such file."),
    ((SAID, TARGETS), {"dialogues": ["a"]}, "1 dialogues for 5 pairs: expected one for each, or None."),
    (
        (SAID, TARGETS),
        {"against": {"short": ["one"]}},
        "hypotheses holds 5 responses and short holds 1: expected both systems' responses to the same references.",
    ),
    (
        (Pairs(["a", "b"], ["a", "b"]),),
        {"against": {"x": Pairs(["a"], ["a"])}},
        "2 and 1 pairs: both systems must answer the same references.",
    ),
    (
        (Pairs(SAID, TARGETS),),
        {"against": {"x": Pairs(OTHER, [*TARGETS[:2], "maybe", *TARGETS[3:]], name="theirs")}},
        "reference 3 is 'yes' for pairs and 'maybe' for theirs: both systems must answer the same references.",
    ),
    (
        (Pairs(SAID, TARGETS, dialogues="aabbc"),),
        {"against": {"x": Pairs(OTHER, TARGETS, dialogues="aabcc")}},
        "line 4 is dialogue 'b' in pairs and 'c' in pairs: expected the same order in both. "
        "Sort them alike, or remove the ids.",
    ),
]


@pytest.mark.parametrize(("texts", "options", "message"), INPUTS)
def test_what_cannot_be_scored_is_refused_in_one_line(
    texts: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DialoscopeError) as caught:
        measure(*texts, metrics=["length"], **options)
    assert str(caught.value) == message


def test_two_systems_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^Two systems are called 'x': give"):
        measure(SAID, TARGETS, name="x", metrics=["length"], against={"x": OTHER})


def test_another_system_whose_file_has_other_dialogues_is_refused(tmp_path: Path) -> None:
    paths = {}
    for name, ids in (("said", "aab"), ("other", "abb")):
        lines = [json.dumps({"dialogue_id": one, "response": "yes"}) for one in ids]
        paths[name] = tmp_path / f"{name}.jsonl"
        paths[name].write_text("\n".join(lines), encoding="utf-8")
    columns: dict[str, Any] = {"column": "response", "reference_column": "dialogue_id"}
    with pytest.raises(UsageError, match=r"line 2 is dialogue 'a' in .*said\.jsonl.* and 'b' in .*other\.jsonl"):
        measure(paths["said"], paths["said"], against={"other": paths["other"]}, **columns)


# --- All metrics ------------------------------------------------------------------------------------------------------


def test_all_metrics_score_what_they_can_and_say_what_they_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtraError("An embedding metric", "some-vectors")

    monkeypatch.setattr("dialoscope.metrics.embedding.glove", missing)
    result = measure(SAID, TARGETS, metrics=["all"], **FAST)
    scores = {name.rpartition("/")[2]: score for name, score in result.scores().items()}
    assert set(scores) == set(METRICS)
    for kind in ("average", "extrema", "greedy"):
        assert scores[f"embedding-{kind}"].value is None
        assert "dialoscope[some-vectors]" in (scores[f"embedding-{kind}"].reason or "")
    assert scores["bleu-1"].value is not None
    reason = next(each for each in result.counts["skipped"] if each.startswith("embedding-average"))
    assert result.counts["skipped"][reason] == 5
    assert any(note.startswith("embedding-average: An embedding metric needs an extra") for note in result.notes)
    with pytest.raises(MissingExtraError):  # one that is named must be there
        measure(SAID, TARGETS, metrics=["embedding-average"])


def test_an_encoder_of_ones_own_gives_the_word_vectors() -> None:
    words = sorted({word for text in [*SAID, *TARGETS] for word in text.split()})
    vectors = WordVectors({word: row for row, word in enumerate(words)}, np.eye(len(words), dtype=np.float32), "eye")
    result = measure(TARGETS, TARGETS, metrics=["embedding-average"], encoder=vectors)
    assert result.scores()["hypotheses/all/embedding-average"].value == pytest.approx(1)


# --- The result -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result() -> MetricsResult:
    likelihoods = [-1.0, -2.0, float("nan"), -4.0, -5.0]
    pairs = Pairs(SAID, TARGETS, "aabbc", likelihoods, [1, 2, 3, 4, 5], name="mine")
    names = ["bleu-1", "sentence-bleu-1", "repetition-2", "perplexity", "length"]
    return measure(pairs, metrics=names, against={"other/system": OTHER}, **FAST)


def test_every_score_has_a_direction(result: MetricsResult) -> None:
    assert all(direction(name) in ("high", "low", "neither") for name in result.scores())
    assert "other_system/all/bleu-1" in result.scores()


def test_a_result_comes_back_from_its_folder(result: MetricsResult, tmp_path: Path) -> None:
    again = MetricsResult.load(result.save(tmp_path / "out"))
    assert again.to_dict() == result.to_dict()
    assert again.comparisons.keys() == result.comparisons.keys()
    for name, compared in result.comparisons["other/system"].items():
        assert again.comparisons["other/system"][name].to_dict() == compared.to_dict()
    assert again.section().blocks == result.section().blocks
    assert again.settings == result.settings


def test_the_table_has_a_row_for_each_response_and_says_what_columns_mean(result: MetricsResult) -> None:
    table = result.table
    assert table.num_rows == 10
    assert table.column_names == [*COLUMNS, "sentence-bleu-1", "repetition-2", "length"]
    assert all(field.metadata[b"meaning"] for field in table.schema)
    assert table["length"].to_pylist() == [3, 3, 1, 1, 2, 2, 3, 1, 2, 1]
    assert table["repetition-2"].to_pylist()[2] is None  # one word has no bigram


def test_the_items_of_a_mean_are_the_responses(result: MetricsResult) -> None:
    items = result.items()
    assert list(items)[:3] == ["mine/all/sentence-bleu-1", "mine/all/repetition-2", "mine/all/length"]
    lengths = items["mine/all/length"]
    assert lengths.above.tolist() == [3, 3, 1, 1, 2]
    assert lengths.dialogues == list("aabbc")
    for name, each in items.items():
        kept = each.is_scored
        value = each.above[kept].sum() / each.below[kept].sum() if kept.any() else None
        score = result.scores()[name].value
        if name.endswith("perplexity") and score is not None:
            assert value is not None
            assert math.exp(value) == pytest.approx(score)
        elif score is not None:
            assert value == pytest.approx(score)


def test_what_could_not_be_scored_is_counted_by_reason(result: MetricsResult) -> None:
    skipped = result.counts["skipped"]
    assert skipped["perplexity: their log-likelihood or token count is missing"] == 1
    assert skipped["repetition-2: the response is too short"] == 2 + 2


def test_one_system_alone_is_neither_good_nor_bad() -> None:
    verdict = measure(SAID, TARGETS, metrics=["length", "bleu-1"], name="mine").verdict
    assert verdict.level == "cannot_tell"
    assert verdict.text.startswith("mine has length 2 (words) on 5 responses. Whether that is good cannot be told")


def test_nothing_at_all_is_not_measurable() -> None:
    result = measure([], [], metrics=["bleu-1"])
    assert result.verdict.level == "not_measurable"
    assert result.scores()["hypotheses/all/bleu-1"].value is None


@pytest.mark.parametrize(("ours", "theirs", "level"), [(9, 2, "good"), (2, 9, "concern"), (6, 6, "cannot_tell")])
def test_a_system_is_better_where_interval_and_test_agree(ours: int, theirs: int, level: str) -> None:
    """Of ten words of each response so many are right, a little more or less."""

    def said(right: int, period: int) -> list[str]:
        counts = [right - n % period for n in range(40)]
        return [" ".join(["yes"] * count + ["no"] * (10 - count)) for count in counts]

    meant = ["yes yes yes yes yes yes yes yes yes yes"] * 40
    other = said(theirs, 3) if ours != theirs else said(ours, 2)[::-1]
    result = measure(said(ours, 2), meant, against={"other": other}, metrics=["rouge-1"], name="mine")
    assert result.verdict.level == level
    assert result.verdict.against == "other/all/rouge-1"
    assert result.verdict.text.startswith("mine has rouge-1 ")


def test_a_small_difference_is_left_open_where_the_test_is() -> None:
    """Twelve comparisons: an interval that excludes 0 does not decide while the corrected p-value is large."""
    rng = np.random.default_rng(3)
    ours = [" ".join(["w"] * int(n)) for n in rng.integers(3, 9, 30)]
    theirs = [" ".join(["w"] * int(n)) for n in rng.integers(3, 9, 30)]
    result = measure(ours, theirs, against={f"s{n}": ours[n:] + ours[:n] for n in range(1, 4)}, metrics=["rouge-1"])
    assert {verdict.level for verdict in result.verdicts()} <= {"cannot_tell", "concern", "good"}
    for verdict in result.verdicts():
        system = (verdict.against or "").split("/")[0]
        p = result.comparisons[system]["rouge-1"].p_holm
        assert p is not None
        assert verdict.level == "cannot_tell" or p < 0.05


def test_people_see_units_systems_and_p_values(result: MetricsResult) -> None:
    shown = result.summary()
    assert [head.name for head in shown.heads] == ["metric", "unit", "mine", "other/system", "p against other/system"]
    assert [row[:2] for row in shown.rows][:2] == [("bleu-1", "percent"), ("sentence-bleu-1", "percent")]
    assert result.example().startswith("Response ")
    assert repr(result).startswith("<MetricsResult mine: mine has bleu-1 ")


def test_the_settings_of_a_call_may_be_one_object() -> None:
    settings = MetricsSettings(metrics=("length",), seed=3)
    assert measure(SAID, TARGETS, settings=settings, seed=4).settings == MetricsSettings(metrics=("length",), seed=4)
