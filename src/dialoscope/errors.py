"""Everything a user of Dialoscope may have to catch, drawn in one place.

DialoscopeError                 bad input or a missing part; the message says what to do
├── UsageError                an unknown name, a missing split, options that exclude each other
├── CorpusError               a file that cannot be read: ``file:line: expected …, found …``
├── OutputError               a result that cannot be written where it was asked for
├── ModelError                a model folder or checkpoint that cannot be loaded
├── TrainingError             a run that cannot go on; names the last good checkpoint
└── MissingExtraError         an optional dependency that is not installed

The command line prints any of these as one line and exits with code 2. Everything else is a bug and
keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DialoscopeError(Exception):
    """Base of all errors that a user can cause and mend."""


class UsageError(DialoscopeError):
    """What was asked for does not exist or does not fit together."""


class CorpusError(DialoscopeError):
    """A dialogue file that does not hold what its format promises."""


class OutputError(DialoscopeError):
    """A result that cannot be written where it was asked for."""


class ModelError(DialoscopeError):
    """A model folder or checkpoint that does not hold what it promises."""


class TrainingError(DialoscopeError):
    """A training run that cannot go on; the message names the last good checkpoint."""


class MissingExtraError(DialoscopeError):
    """An optional dependency is missing; the message is the line that installs it.

    `packages` are the arguments of `pip install` for packages that no extra lists.
    """

    def __init__(self, purpose: str, extra: str = "", *, packages: str = "") -> None:
        needed = f"a package: pip install {packages}" if packages else f"an extra: pip install 'dialoscope[{extra}]'"
        super().__init__(f"{purpose} needs {needed}")


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Name what was given, the closest known name, and how to see all: for tables of choices."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(known)}."
    return UsageError(f"Unknown {kind} '{name}'. {hint}")
