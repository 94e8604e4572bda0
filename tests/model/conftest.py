from __future__ import annotations

import pytest

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.model import Recipe, Structure, lstm

GOODS = ("tea", "bread", "milk", "rice", "salt", "fish")


def shop(split: str, count: int, *, first: int = 0) -> list[Dialogue]:
    """Short dialogues with a rule that can be learnt: the answer names what was asked for."""
    made = []
    for place in range(first, first + count):
        thing = GOODS[place % len(GOODS)]
        texts = (
            "Hello.",
            "Good day!",
            f"Do you have {thing}?",
            f"Yes, we have {thing}. How much?",
            f"{place % 7} please.",
        )
        turns = tuple(Turn("AB"[number % 2], text) for number, text in enumerate(texts[: 3 + place % 3]))
        made.append(Dialogue(turns, id=f"{split}-{place}", split=split))
    return made


@pytest.fixture(params=["the library", "our loop"])
def whoever(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever computes LSTMs on a CPU: what a GPU does is our loop."""
    if request.param == "our loop":
        monkeypatch.setattr(lstm, "is_for_library", lambda inputs: False)


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return Corpus.of([*shop("train", 24), *shop("validation", 6), *shop("test", 6, first=3)], name="shop")


@pytest.fixture(scope="session")
def settings() -> Structure:
    return Structure(attention="static", integration=True, layers=1, width=12, embedding=8, dropout=0.3, vocabulary=60)


@pytest.fixture(scope="session")
def recipe() -> Recipe:
    return Recipe("adam", 0.02, epochs=3, batch_size=8, clip=5.0)
