from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.study.samples import install, small_table

from dialoscope.corpus import Corpus, generate
from dialoscope.study.run import Study, run


@pytest.fixture(scope="module", autouse=True)
def fake_questions() -> Iterator[None]:
    """Attention and probe are answered at once, by `samples.fake_measure`."""
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        yield


@pytest.fixture(scope="session")
def table() -> Callable[..., dict[str, Any]]:
    return small_table


@pytest.fixture(scope="session")
def small() -> Corpus:
    return generate(dialogues=120, seed=3)


@pytest.fixture(scope="session")
def study(small: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Study:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        return run(small_table(), tmp_path_factory.mktemp("study") / "s", corpora={"small": small})
