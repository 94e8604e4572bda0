from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialoscope.corpus import Corpus, generate
from dialoscope.study import Study, plan_of, run_study

SMALL = {
    "preset": "static-ui",
    "context_turns": 4,
    "train_limit": 20,
    "validation_limit": 5,
    "bleu_samples": 0,
    "set": {"layers": 1, "width": 8, "embedding": 8, "vocabulary": 200, "epochs": 1, "batch_size": 32},
}


def _table(**more: Any) -> dict[str, Any]:
    return {
        "corpora": {"small": "concierge"},
        "models": {"one": SMALL, "two": {**SMALL, "seed": 1}},
        "overlap": {},
        "distract": {"sets": ["random-0.5", "rare-end"], "limit": 6},
        "probe": {"tasks": ["UtteranceLoc", "RecentTopic"], "train_limit": 30, "limit": 12},
        **more,
    }


@pytest.fixture(scope="session")
def table() -> Callable[..., dict[str, Any]]:
    """A study that takes seconds, and what is to be other in it."""
    return _table


@pytest.fixture(scope="session")
def small() -> Corpus:
    return generate(dialogues=120, seed=3)


@pytest.fixture(scope="session")
def study(small: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Study:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")
    return run_study(plan_of(_table()), tmp_path_factory.mktemp("study") / "s", given={"small": small})


@pytest.fixture(scope="session")
def folder(study: Study) -> Path:
    return study.folder
