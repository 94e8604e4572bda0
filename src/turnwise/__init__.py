"""Turnwise: does the model read its context, and is the benchmark honest.

>>> import turnwise as tw
>>> corpus = tw.load("concierge")          # doctest: +SKIP
>>> tw.corpus.summarise(corpus).turns      # doctest: +SKIP

Names are imported when they are first used, so that `import turnwise` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from turnwise.cores import find_cache

if TYPE_CHECKING:
    from turnwise import corpus, distract, engage, errors, metrics, model, overlap, probe, record, report, study
    from turnwise.corpus import Corpus, Dialogue, Turn, load
    from turnwise.errors import TurnwiseError
    from turnwise.record import Origin, Score

_MODULES = (
    "corpus", "distract", "engage", "errors", "metrics", "model", "overlap", "probe", "record", "report", "study"
)  # fmt: skip
_NAMES = {
    "Corpus": "corpus",
    "Dialogue": "corpus",
    "Turn": "corpus",
    "load": "corpus",
    "TurnwiseError": "errors",
    "Origin": "record",
    "Score": "record",
}
__all__ = [
    "Corpus",
    "Dialogue",
    "Origin",
    "Score",
    "Turn",
    "TurnwiseError",
    "corpus",
    "distract",
    "engage",
    "errors",
    "load",
    "metrics",
    "model",
    "overlap",
    "probe",
    "record",
    "report",
    "study",
]


find_cache()  # before anything imports Numba, which looks for a place once


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"turnwise.{name}")
    if name in _NAMES:
        return getattr(import_module(f"turnwise.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'turnwise' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
