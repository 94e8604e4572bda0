"""What several tests of this folder do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dialoscope.instruments import INSTRUMENTS


def break_off(monkeypatch: pytest.MonkeyPatch, instrument: str) -> None:
    """Has an instrument broken off by whoever waits for it."""

    def broken_off(bench: Any, wish: Any) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setitem(INSTRUMENTS, instrument, replace(INSTRUMENTS[instrument], run=broken_off))
