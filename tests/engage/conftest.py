"""A tiny encoder with random weights, read from disk as real ones are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engage.samples import ENDINGS, MIDDLES, OPENINGS, Counting, save_bert

from dialoscope.engage.encoder import Encoder
from dialoscope.engage.predictor import Predictor
from dialoscope.engage.shape import Shape


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny networks gain nothing from threads, which only wait for each other on busy cores."""
    usual = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(usual)


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a BERT of two layers and width 32."""
    return save_bert(tmp_path_factory.mktemp("encoders") / "tiny")


@pytest.fixture(scope="session")
def encoder(bert: Path) -> Encoder:
    """Shared by all tests, none of which may change its weights."""
    return Encoder.load(bert)


@pytest.fixture(scope="session")
def predictor(encoder: Encoder) -> Callable[..., Predictor]:
    """A predictor with a random layer, of these settings; its scores are not all at the ends of the clamp."""

    def made(**options: Any) -> Predictor:
        given = Predictor.untrained(encoder, Shape(**options), seed=3)
        if given.settings.classes is None:
            with torch.no_grad():
                given.head.weight.mul_(0.3)
                given.head.bias.fill_(0.5)
        return given

    return made


@pytest.fixture
def counted(encoder: Encoder) -> tuple[Encoder, Counting]:
    """The encoder, and what counts its work."""
    counting = Counting(encoder.network)
    return Encoder(counting, encoder.tokenizer, encoder.name), counting


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty short talks in three splits, as Parquet."""
    from dialoscope.corpus import Corpus, Dialogue, Turn, write

    path = tmp_path_factory.mktemp("corpus") / "talks.parquet"
    made = []
    for number in range(60):
        texts = [
            OPENINGS[number % len(OPENINGS)],
            *(MIDDLES[(number + k) % len(MIDDLES)] for k in range(number % 4 + 1)),
        ]
        texts.append(ENDINGS[number % len(ENDINGS)])
        turns = tuple(Turn("AB"[place % 2], text) for place, text in enumerate(texts))
        split = "validation" if number % 6 == 4 else "test" if number % 6 == 5 else "train"
        made.append(Dialogue(turns, id=f"d{number}", split=split))
    write(Corpus.of(made), path, to="parquet")
    return path


@pytest.fixture(scope="session")
def model(corpus: Path, bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A predictor that the command line fitted to them."""
    from tests.test_cli_model import as_json

    out = tmp_path_factory.mktemp("models") / "engaged"
    as_json("engage", "train", corpus, "--frozen", "--encoder", bert, "--history", "1", "--out", out)
    return out
