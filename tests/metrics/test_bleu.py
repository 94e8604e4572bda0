from __future__ import annotations

import math
import warnings
from importlib.metadata import version

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dialoscope.metrics import Options, Pairs, Resampling, score_pairs
from dialoscope.metrics.score import statistics_of
from dialoscope.metrics.statistic import Sums

NO_INTERVAL = Resampling(resamples=0)
WORDS = st.lists(st.sampled_from(["a", "b", "c", "don't", "ok."]), max_size=7).map(" ".join)
TEXTS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6)


def value(name: str, said: list[str], targets: list[str], options: Options | None = None) -> float | None:
    return score_pairs(Pairs(said, targets), metrics=[name], options=options, resampling=NO_INTERVAL).scores[name].value


@pytest.mark.parametrize(
    ("name", "said", "target", "expected"),
    [
        # 5 of 6 words and 3 of 5 bigrams match: sqrt(5/6 · 3/5) = sqrt(1/2)
        ("bleu-1", "the cat sat on the mat", "the cat is on the mat", 100 * 5 / 6),
        ("bleu-2", "the cat sat on the mat", "the cat is on the mat", 100 * math.sqrt(1 / 2)),
        # one of 4 trigrams ("on the mat"): (1/2 · 1/4) to the third
        ("bleu-3", "the cat sat on the mat", "the cat is on the mat", 100 * (1 / 8) ** (1 / 3)),
        # none of 3 four-grams, smoothed to half of one
        ("bleu-4", "the cat sat on the mat", "the cat is on the mat", 100 * (1 / 8 * 1 / 6) ** (1 / 4)),
        # everything matches, but two words stand for three: exp(1 - 3/2)
        ("bleu-2", "the cat", "the cat sat", 100 * math.exp(-1 / 2)),
        ("bleu-2", "the cat", "a dog", 0.0),
        ("bleu-2", "", "a dog", 0.0),
        # one word has no bigram: the sentence score leaves that order out
        ("sentence-bleu-2", "yes", "yes", 100.0),
        ("sentence-bleu-2", "yes I do", "yes we do", 100 * math.sqrt(2 / 3 * 1 / 4)),
    ],
)
def test_bleu_is_the_number_worked_by_hand(name: str, said: str, target: str, expected: float) -> None:
    assert value(name, [said], [target]) == pytest.approx(expected)


@pytest.mark.parametrize(("tokeniser", "library"), [("13a", "13a"), ("whitespace", "none"), ("char", "char")])
@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_corpus_bleu_equals_sacrebleu(order: int, lowercase: bool, tokeniser: str, library: str) -> None:
    from sacrebleu.metrics.bleu import BLEU

    said = ["Hello , how are you?", "I'm fine, thanks.", "Yes.", ""]
    targets = ["Hello, how are You today?", "I am fine, thanks!", "no", "why not?"]
    theirs = BLEU(tokenize=library, lowercase=lowercase, max_ngram_order=order, force=True)
    expected = theirs.corpus_score(said, [targets]).score
    assert value(f"bleu-{order}", said, targets, Options(tokeniser, lowercase)) == pytest.approx(expected)


@settings(deadline=None)  # the library is imported in the first example
@given(TEXTS)
def test_corpus_bleu_equals_sacrebleu_for_any_texts(texts: list[tuple[str, str]]) -> None:
    from sacrebleu.metrics.bleu import BLEU

    said, targets = [list(side) for side in zip(*texts, strict=True)]
    if any(said) or any(targets):
        expected = BLEU(tokenize="13a", force=True).corpus_score(said, [targets]).score
        assert value("bleu-4", said, targets) == pytest.approx(expected)


@settings(deadline=None)  # the library is imported in the first example
@given(TEXTS)
def test_sentence_bleu_is_the_mean_of_sacrebleus_sentence_scores(texts: list[tuple[str, str]]) -> None:
    from sacrebleu.metrics.bleu import BLEU

    said, targets = [list(side) for side in zip(*texts, strict=True)]
    theirs = BLEU(effective_order=True, max_ngram_order=2)
    expected = np.mean([theirs.sentence_score(a, [b]).score for a, b in texts])
    assert value("sentence-bleu-2", said, targets) == pytest.approx(expected)


# The library is imported in the first example; the data folder stays the same in all of them.
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=TEXTS)
@example(texts=[("I am here. You are not.", "I am here. You were not.")])  # one sentence, or two
def test_bleu_of_the_overlap_paper_equals_nltks_corpus_bleu(each_punkt: str, texts: list[tuple[str, str]]) -> None:
    from nltk.tokenize import NLTKWordTokenizer, word_tokenize
    from nltk.translate.bleu_score import corpus_bleu

    split = word_tokenize if each_punkt == "punkt" else NLTKWordTokenizer().tokenize
    said, targets = [[split(text) for text in side] for side in zip(*texts, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NLTK warns where no bigram matches, and returns 0 but for 150 digits
        expected = 100 * corpus_bleu([[target] for target in targets], said, weights=(0.5, 0.5))
    if any(said) or any(targets):
        ours = value("bleu-2-overlap", [a for a, _ in texts], [b for _, b in texts])
        assert ours == pytest.approx(expected, abs=1e-9)


def test_a_full_stop_inside_a_text_is_a_word_only_with_the_sentence_model(each_punkt: str) -> None:
    expected = {
        # I am here . You are not . – all words but "are", all bigrams but "You are" and "are not"
        "punkt": math.sqrt(7 / 8 * 5 / 7),
        # I am here. You are not . – five of seven words and two of six bigrams ("I am", "not ."), for eight words
        "no_punkt": math.sqrt(5 / 7 * 2 / 6) * math.exp(1 - 8 / 7),
    }
    ours = value("bleu-2-overlap", ["I am here. You are not."], ["I am here . You were not."])
    assert ours == pytest.approx(100 * expected[each_punkt])


@pytest.mark.usefixtures("no_punkt")
def test_without_the_sentence_model_the_overlap_papers_metrics_say_so() -> None:
    result = score_pairs(Pairs(["a b"], ["a b"]), metrics=["bleu-2-overlap", "bleu-2", "distinct-2-overlap"])
    assert "|tok:nltk-without-punkt|" in result.scores["bleu-2-overlap"].signature
    (note,) = result.notes
    assert note.startswith("bleu-2-overlap, distinct-2-overlap: NLTK does not find its sentence model (punkt_tab)")


@pytest.mark.usefixtures("punkt")
def test_with_the_sentence_model_there_is_nothing_to_say() -> None:
    result = score_pairs(Pairs(["a b"], ["a b"]), metrics=["bleu-2-overlap"])
    assert result.notes == ()
    assert f"|tok:nltk|nltk:{version('nltk')}|" in result.scores["bleu-2-overlap"].signature


@settings(deadline=None)  # the library is imported in the first example
@given(TEXTS)
def test_bleu_of_the_probe_paper_is_the_mean_of_nltks_sentence_scores(texts: list[tuple[str, str]]) -> None:
    from nltk.translate.bleu_score import sentence_bleu

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        each = [sentence_bleu([b.split()], a.split(), weights=(0.5, 0.5)) for a, b in texts]
    ours = value("bleu-2-probe", [a.upper() for a, _ in texts], [b for _, b in texts])
    assert ours == pytest.approx(100 * np.mean(each), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # response "a b c d" against target "a b": 2 of 4 words, 1 of 3 bigrams
        ("bleu-2-probe", 100 * math.sqrt(1 / 2 * 1 / 3)),
        # exchanged: everything of "a b" is in "a b c d", but two words stand for four: exp(1 - 4/2)
        ("bleu-2-probe-exchanged", 100 * math.exp(-1)),
    ],
)
def test_exchanging_the_sides_turns_precision_into_recall(name: str, expected: float) -> None:
    assert value(name, ["a b c d"], ["a b"]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bleu-2", 100.0),  # the one bigram there is matches
        ("bleu-2-overlap", 100 * math.sqrt(1 / 2)),  # "yes" brings a bigram that could not match: 1 of 2
        ("bleu-2-probe", 100 / 2),  # 0 for "yes", 1 for "oh no"
    ],
)
def test_three_readings_of_bleu_2_are_three_numbers(name: str, expected: float) -> None:
    assert value(name, ["yes", "oh no"], ["yes", "oh no"]) == pytest.approx(expected)


def test_case_counts_unless_lowercase_is_asked_for() -> None:
    assert value("bleu-1", ["Hello"], ["hello"]) == 0
    assert value("bleu-1", ["Hello"], ["hello"], Options(lowercase=True)) == pytest.approx(100)


def test_resampled_corpus_bleu_equals_sacrebleu_on_the_drawn_texts() -> None:
    from sacrebleu.metrics.bleu import BLEU

    said, targets = ["a b c d e", "a c", "b b b"], ["a b c d f", "a c d", "c b"]
    statistic = statistics_of(Pairs(said, targets), ["bleu-4"], Options())["bleu-4"]
    counts = np.array([[2, 0, 1], [0, 3, 0], [1, 1, 1]])
    expected = []
    for row in counts:
        drawn = [(a, b) for a, b, times in zip(said, targets, row, strict=True) for _ in range(times)]
        expected.append(BLEU().corpus_score([a for a, _ in drawn], [[b for _, b in drawn]]).score)
    assert isinstance(statistic, Sums)
    assert statistic.resampled(counts) == pytest.approx(expected)


def test_signature_names_tokens_case_and_smoothing() -> None:
    scored = score_pairs(Pairs(["a"], ["a"]), metrics=["bleu-2"], resampling=NO_INTERVAL).scores["bleu-2"]
    assert "|metric:bleu-2|case:mixed|tok:13a|smooth:exp|sacrebleu:" in scored.signature


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bleu-2-probe", "|case:lc|tok:whitespace|smooth:none|level:sentence|sacrebleu:"),
        ("bleu-2-probe-exchanged", "|case:lc|tok:whitespace|smooth:none|level:sentence|sides:exchanged|sacrebleu:"),
    ],
)
def test_the_signature_keeps_the_readings_apart(name: str, said: str) -> None:
    assert said in score_pairs(Pairs(["a"], ["a"]), metrics=[name], resampling=NO_INTERVAL).scores[name].signature


def test_tokens_of_another_library_bring_its_version() -> None:
    options = Options(tokeniser="nltk")
    scored = score_pairs(Pairs(["a"], ["a"]), metrics=["bleu-2"], options=options, resampling=NO_INTERVAL)
    signature = scored.scores["bleu-2"].signature
    assert f"|nltk:{version('nltk')}|sacrebleu:{version('sacrebleu')}|" in signature
