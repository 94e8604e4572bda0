"""Token ids in one array are those of the tokenizer, and no more texts than a portion are read at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.engage.samples import conversations

from dialoscope.engage.encoder import Encoder
from dialoscope.engage.predictor import readings
from dialoscope.engage.shape import Shape
from dialoscope.engage.tokens import Tokens


@pytest.mark.parametrize("options", [{}, {"tokens": 4}, {"history": 2, "is_flat": True, "tokens": 8}], ids=str)
@pytest.mark.parametrize("at_once", [6, 1000])
def test_tokens_are_those_of_the_tokenizer(
    encoder: Encoder, options: dict[str, Any], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialoscope.engage.tokens.AT_ONCE", at_once)
    given, settings, read = conversations(12, seed=1), Shape(**options), Encoder.read
    sizes: list[int] = []

    def noted(self: Encoder, texts: Sequence[str], *others: Any) -> Any:
        sizes.append(len(texts))
        return read(self, texts, *others)

    monkeypatch.setattr(Encoder, "read", noted)
    found = Tokens.of(given, encoder, settings)
    assert max(sizes) <= at_once  # dialogues have two to six turns
    assert found.ids.dtype == np.int32
    texts = [text for one in given.dialogues for text in readings(one, settings)]
    assert found.lists(0, len(texts)) == read(encoder, texts, settings)
    assert found.lists(3, 5) == read(encoder, texts[3:5], settings)
