"""Check whether test data leaks into training, and whether a dialogue model uses the conversation.

>>> import dialoscope as ds
>>> corpus = ds.load("concierge")          # doctest: +SKIP
>>> ds.overlap.measure(corpus).verdict     # doctest: +SKIP

Names are imported when they are first used, so that `import dialoscope` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dialoscope.cores import find_cache

if TYPE_CHECKING:
    from dialoscope import corpus, distract, engage, errors, metrics, model, overlap, probe, report, study
    from dialoscope.corpus import Corpus, Dialogue, Turn, load
    from dialoscope.errors import DialoscopeError
    from dialoscope.record import Score

    __version__: str

_MODULES = ("corpus", "distract", "engage", "errors", "metrics", "model", "overlap", "probe", "report", "study")
_NAMES = {
    "Corpus": "corpus",
    "Dialogue": "corpus",
    "Turn": "corpus",
    "load": "corpus",
    "DialoscopeError": "errors",
    "Score": "record",
}
__all__ = [
    "Corpus",
    "Dialogue",
    "DialoscopeError",
    "Score",
    "Turn",
    "__version__",
    "corpus",
    "distract",
    "engage",
    "errors",
    "load",
    "metrics",
    "model",
    "overlap",
    "probe",
    "report",
    "study",
]


find_cache()  # before anything imports Numba, which looks for a folder once


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dialoscope.{name}")
    if name in _NAMES:
        return getattr(import_module(f"dialoscope.{_NAMES[name]}"), name)
    if name == "__version__":
        from dialoscope.record import version

        return version()
    raise AttributeError(f"module 'dialoscope' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
