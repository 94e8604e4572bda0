"""What is measured on the validation split after every epoch."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.distract.fakes import Fake

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.model.evaluation import Questions
from dialoscope.model.protocol import Context, Decoding
from dialoscope.model.vocabulary import Vocabulary

TEXTS = [str(place) for place in range(11)]
CORPUS = Corpus.of([Dialogue(tuple(Turn("AB"[int(text) % 2], text) for text in TEXTS), id="d")], name="eleven")


class Writes(Fake):
    """Answers with its name."""

    def generate(self, contexts: Sequence[Context], *, decoding: Decoding | None = None) -> list[str]:
        return [self.name] * len(contexts)


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, ["1"]),
        (2, ["1", "10"]),
        (4, ["1", "4", "7", "10"]),
        (10, TEXTS[1:]),
        (99, TEXTS[1:]),
        (0, []),
    ],
)
def test_questions_are_spread_evenly_over_the_corpus(most: int, expected: list[str]) -> None:
    found = Questions.of(CORPUS, most=most, context_turns=1)
    assert found.references == expected
    assert found.contexts == [(str(int(one) - 1),) for one in expected]


@pytest.mark.parametrize(
    ("tokens", "written", "reference"),
    [
        ("words", "a tea - pot, for you!", "a tea-pot , for you !"),  # as people write it, and as the model does
        ("words", "a tea - pot, for you!", "A Tea-pot, for YOU!"),
        ("bpe", "A tea-pot, for You!", "a Tea-pot, for you!"),  # byte pairs keep case, which does not count
    ],
)
def test_a_response_in_other_case_and_spacing_is_no_other(tokens: str, written: str, reference: str) -> None:
    vocabulary = Vocabulary.of([reference], size=300, kind=tokens)
    asked = Questions([["hello"]], [reference])
    assert asked.bleu_2(Writes(name=written), vocabulary) == pytest.approx(100)
    assert asked.bleu_2(Writes(name="something else"), vocabulary) < 50
