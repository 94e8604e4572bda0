from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.engage.samples import Counting

from dialoscope.engage.encoder import Encoder, chunks, pool
from dialoscope.engage.settings import POOLINGS
from dialoscope.engage.shape import Shape
from dialoscope.errors import UsageError

WORDS = st.lists(st.sampled_from(["hello", "bridge", "the", "old", "where", "?", "bye", "xyz"]), max_size=12)
TEXTS = st.lists(WORDS.map(" ".join), min_size=1, max_size=6)


def words(encoder: Encoder, ids: list[int]) -> list[str]:
    found: list[str] = encoder.tokenizer.convert_ids_to_tokens(ids)
    return found


def states_alone(encoder: Encoder, text: str) -> torch.Tensor:
    """What the network gives for each token of a text on its own: (tokens, width)."""
    ids = encoder.read([text], Shape())
    with torch.inference_mode():
        found: torch.Tensor = encoder.network.eval()(input_ids=torch.tensor(ids)).last_hidden_state[0]
    return found


# --- Reading ----------------------------------------------------------------------------------------------------------


def test_a_text_is_read_between_cls_and_sep(encoder: Encoder) -> None:
    ids = encoder.read(["Where is the bridge?", ""], Shape())
    assert words(encoder, ids[0]) == ["[CLS]", "where", "is", "the", "bridge", "?", "[SEP]"]
    assert words(encoder, ids[1]) == ["[CLS]", "[SEP]"]
    assert encoder.read([], Shape()) == []


@pytest.mark.parametrize(("name", "plain"), [("[SEP]", "sep"), ("[PAD]", "pad"), ("[CLS]", "cls")])
def test_names_of_control_tokens_in_a_turn_are_plain_words(encoder: Encoder, name: str, plain: str) -> None:
    control = {encoder.tokenizer.convert_tokens_to_ids(one) for one in ("[SEP]", "[PAD]", "[CLS]", "[MASK]")}
    read = encoder.read([f"the {name} bridge"], Shape())[0]
    assert not control & set(read[1:-1])
    assert read[1:-1] == [one for text in ("the", "[", plain, "]", "bridge") for one in plainly(encoder, text)]


def plainly(encoder: Encoder, text: str) -> list[int]:
    return encoder.read([text], Shape())[0][1:-1]


def test_a_long_text_loses_its_end(encoder: Encoder) -> None:
    ids = encoder.read(["a b c d e f"], Shape(tokens=5))[0]
    assert words(encoder, ids) == ["[CLS]", "a", "b", "c", "[SEP]"]


def test_a_flat_history_loses_its_oldest_tokens(encoder: Encoder) -> None:
    flat, plain = Shape(history=2, is_flat=True, tokens=5), Shape(tokens=5)
    assert words(encoder, encoder.read(["a b c d e f"], flat)[0]) == ["[CLS]", "d", "e", "f", "[SEP]"]
    assert words(encoder, encoder.read(["a b c d e f"], plain)[0])[1] == "a"  # the side is not left as it was set


def test_more_tokens_than_positions_are_refused(encoder: Encoder) -> None:
    with pytest.raises(UsageError, match="128 positions and cannot read a window of 129 tokens"):
        encoder.read(["a"], Shape(tokens=129))


# --- Vectors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pooling", POOLINGS)
def test_pooling_is_a_loop_over_real_tokens(encoder: Encoder, pooling: Any) -> None:
    texts = ["where is the old bridge?", "bye", ""]
    found = encoder.vectors(texts, Shape(pooling=pooling))
    for text, vector in zip(texts, found, strict=True):
        by_token = [one.tolist() for one in states_alone(encoder, text)]
        for place, value in enumerate(vector.tolist()):
            column = [one[place] for one in by_token]
            expected = {"mean": sum(column) / len(column), "cls": column[0], "max": max(column), "min": min(column)}
            assert value == pytest.approx(expected[pooling], abs=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("filler", [0.0, 1e6, -1e6])
def test_what_stands_at_padding_never_reaches_a_vector(pooling: str, filler: float) -> None:
    states = torch.tensor([[[1.0, -4.0], [3.0, -2.0], [filler, filler]]])
    found = pool(states, torch.tensor([[True, True, False]]), pooling)
    expected = {"mean": [2.0, -3.0], "cls": [1.0, -4.0], "max": [3.0, -2.0], "min": [1.0, -4.0]}
    assert found.tolist() == [expected[pooling]]


@hypothesis_settings(max_examples=25)
@given(TEXTS, st.sampled_from(POOLINGS))
def test_a_vector_does_not_depend_on_what_else_is_encoded(encoder: Encoder, texts: list[str], pooling: Any) -> None:
    settings = Shape(pooling=pooling)
    together = encoder.vectors([*texts, "hello there " * 20], settings)[:-1]
    alone = np.concatenate([encoder.vectors([text], settings) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_vectors_are_in_the_order_of_the_texts_whatever_their_lengths_and_chunks(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [" ".join(["the old bridge"] * count) for count in (3, 1, 7, 0, 2, 7, 5)]
    whole = encoder.vectors(texts, Shape())
    monkeypatch.setattr("dialoscope.engage.encoder.CHUNK_TOKENS", {"cpu": 20})  # two of eleven, one of over ten
    np.testing.assert_allclose(encoder.vectors(texts, Shape()), whole, atol=1e-5)
    np.testing.assert_array_equal(whole[2], whole[5])


def test_long_texts_and_short_ones_are_not_padded_to_one_length() -> None:
    """Ten of 128 tokens are too few for a pass, 64 are worth one; the 946 others of 20 follow in another."""
    lengths = [128] * 10 + [20] * 1000
    assert list(chunks(lengths, 65_536)) == [slice(0, 64), slice(64, 1010)]
    assert list(chunks(lengths, 4096)) == [
        slice(0, 32),
        *(slice(at, min(at + 204, 1010)) for at in range(32, 1010, 204)),
    ]
    assert list(chunks([128] * 100 + [70] * 10, 65_536)) == [slice(0, 110)]  # more than half as long


@given(st.lists(st.integers(1, 128), max_size=200), st.integers(128, 70_000))
def test_chunks_hold_every_text_once_and_no_more_tokens_than_allowed(lengths: list[int], most: int) -> None:
    lengths = sorted(lengths, reverse=True)
    found = list(chunks(lengths, most))
    assert [place for one in found for place in range(one.start, one.stop)] == list(range(len(lengths)))
    assert all((one.stop - one.start) * lengths[one.start] <= most for one in found)


def test_equal_texts_are_encoded_once(counted: tuple[Encoder, Counting]) -> None:
    encoder, counting = counted
    found = encoder.vectors(["hello", "bye", "hello", "hello"], Shape())
    assert (counting.texts, found.shape) == (2, (4, 32))
    np.testing.assert_array_equal(found[0], found[2])


def test_no_texts_give_no_vectors(encoder: Encoder) -> None:
    assert encoder.vectors([], Shape()).shape == (0, 32)


def test_progress_counts_to_the_end(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoscope.engage.encoder.CHUNK_TOKENS", {"cpu": 6})
    told: list[tuple[int, int]] = []
    encoder.vectors(["a", "b", "c"], Shape(), lambda done, of: told.append((done, of)))
    assert told == [(2, 3), (3, 3)]  # [CLS] a [SEP]: three tokens a text, two texts a chunk


def test_scoring_drops_nothing_out_even_after_training(bert: Path) -> None:
    encoder = Encoder.load(bert)
    encoder.network.train()
    first, second = (encoder.vectors(["hello there"], Shape()) for _ in range(2))
    np.testing.assert_array_equal(first, second)


# --- Loading ----------------------------------------------------------------------------------------------------------


def test_an_encoder_from_disk_is_named_by_its_folder_and_has_no_pooler(encoder: Encoder) -> None:
    assert (encoder.name, encoder.width, str(encoder.device)) == ("tiny", 32, "cpu")
    assert encoder.network.pooler is None


def test_a_model_that_writes_is_no_encoder(tmp_path: Path) -> None:
    t: Any = import_module("transformers")
    config = t.GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=1)
    t.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    with pytest.raises(UsageError, match=r"^[^\n]*is no encoder of BERT's kind \(gpt2\)\.$"):
        Encoder.load(tmp_path)
