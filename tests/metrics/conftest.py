from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

PUNKT_FILES = {
    "abbrev_types.txt": "dr\n",
    "collocations.tab": "",
    "ortho_context.tab": "",
    "sent_starters.txt": "",
}


def write_punkt(folder: Path) -> Path:
    """An NLTK data folder with the smallest sentence model: it knows one abbreviation."""
    model = folder / "tokenizers" / "punkt_tab" / "english"
    model.mkdir(parents=True)
    for name, text in PUNKT_FILES.items():
        (model / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def punkt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """NLTK finds a sentence model."""
    yield from _nltk_data([str(write_punkt(tmp_path / "nltk_data"))], monkeypatch)


@pytest.fixture
def no_punkt(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """NLTK finds no data at all, whatever is installed."""
    yield from _nltk_data([], monkeypatch)


@pytest.fixture(params=["punkt", "no_punkt"])
def each_punkt(request: pytest.FixtureRequest) -> str:
    """With the sentence model and without: the name of the case."""
    request.getfixturevalue(request.param)
    return str(request.param)


def _nltk_data(path: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import nltk.data
    import nltk.tokenize

    monkeypatch.setattr(nltk.data, "path", path)
    nltk.tokenize._get_punkt_tokenizer.cache_clear()
    yield
    nltk.tokenize._get_punkt_tokenizer.cache_clear()
