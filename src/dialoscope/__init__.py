"""Dialoscope: does the model read its context, and is the benchmark honest.

>>> import dialoscope as ds
>>> corpus = ds.load("concierge")          # doctest: +SKIP
>>> ds.corpus.summarise(corpus).turns      # doctest: +SKIP

Names are imported when they are first used, so that `import dialoscope` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dialoscope.cores import find_cache

if TYPE_CHECKING:
    from dialoscope import corpus, distract, engage, errors, metrics, model, overlap, probe, record, report, study
    from dialoscope.corpus import Corpus, Dialogue, Turn, load
    from dialoscope.errors import DialoscopeError
    from dialoscope.record import Origin, Score

_MODULES = (
    "corpus", "distract", "engage", "errors", "metrics", "model", "overlap", "probe", "record", "report", "study"
)  # fmt: skip
_NAMES = {
    "Corpus": "corpus",
    "Dialogue": "corpus",
    "Turn": "corpus",
    "load": "corpus",
    "DialoscopeError": "errors",
    "Origin": "record",
    "Score": "record",
}
__all__ = [
    "Corpus",
    "Dialogue",
    "DialoscopeError",
    "Origin",
    "Score",
    "Turn",
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
        return import_module(f"dialoscope.{name}")
    if name in _NAMES:
        return getattr(import_module(f"dialoscope.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'dialoscope' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
