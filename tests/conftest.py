from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# Tests share few cores with other processes, and threads that wait for each other there wait for minutes.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Timing never decides a test; and what CI finds today it should find tomorrow.
settings.register_profile("dialoscope", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("dialoscope")

DATA = Path(os.environ.get("DIALOSCOPE_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data sets; tests that need it skip where it is missing."""
    if not DATA.is_dir():
        pytest.skip("no real data here: set DIALOSCOPE_DATA to the folder that holds it")
    return DATA


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file into the test's own folder and give its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
