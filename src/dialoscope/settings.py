"""Settings: every option of a question is one field of a dataclass, written once and checked once.

A field is made by `option(default, help, …)`. The command line makes one option of each field, a study's TOML goes
through `from_table`, and Python passes keywords: all three end in `__post_init__`, so they refuse the same values with
the same words.

>>> @dataclass(frozen=True, kw_only=True)
... class Example(BaseSettings):
...     limit: int | None = option(None, "Maximum dialogues.", group="Data", least=1)
>>> Example(limit=20).limit
20
>>> Example(limit=1.5)
Traceback (most recent call last):
dialoscope.errors.UsageError: limit takes a whole number, found 1.5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from types import NoneType, UnionType
from typing import Any, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from dialoscope.errors import UsageError, unknown_name

GROUPS = (
    "Data",
    "Models",
    "Measure",
    "Distractions",
    "Papers",
    "Statistics",
    "Reports",
)  # of options in help, in this order
KINDS: Mapping[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


@dataclass(frozen=True)
class Option:
    """What an option is for, and which values it takes."""

    help: str
    group: str = "Measure"
    least: float | None = None
    most: float | None = None
    above: float | None = None  # like `least`, but the value itself is refused
    choices: Sequence[str] = ()
    metavar: str | None = None  # what help calls the value: NAME=PATH
    is_repeated: bool = False  # several values are several options, not one with commas: paths may hold commas
    decides: bool = True  # whether a number may depend on it; False for speed and memory


def option(default: Any, help: str, **limits: Any) -> Any:
    """A field of a settings class, with its help and its limits."""
    return field(default=default, metadata={"option": Option(help, **limits)})


@dataclass(frozen=True, kw_only=True)
class BaseSettings:
    """Checks every value against its type and limits; the same message for command line, TOML and Python."""

    def __post_init__(self) -> None:
        types = types_of(type(self))
        for name, each in options_of(type(self)).items():
            check(name, getattr(self, name), types[name], each)
        self.check()

    def check(self) -> None:
        """Refuse values that do not go together. Subclasses say which."""

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str = "") -> Self:
        """Settings from a TOML table. Unknown keys are errors; nothing is converted but lists to tuples."""
        known = options_of(cls)
        for key in table:
            if key not in known:
                raise unknown_name(f"option in {where}" if where else "option", str(key), known)
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
        try:
            return cls(**values)
        except UsageError as error:
            raise UsageError(f"{where} {error}" if where else str(error)) from error

    def to_dict(self) -> dict[str, Any]:
        """Every setting as JSON has it."""
        return {name: _plain(getattr(self, name)) for name in options_of(type(self))}

    def changed(self) -> dict[str, Any]:
        """The settings that decide numbers and differ from their defaults: what a signature names."""
        return {
            name: value
            for name, each in options_of(type(self)).items()
            if each.decides and (value := getattr(self, name)) != default_of(type(self), name)
        }


Settings = TypeVar("Settings", bound=BaseSettings)


def with_options(settings: Settings | None, kind: type[Settings], options: Mapping[str, Any]) -> Settings:
    """The settings of a call: those given, or the defaults, changed by the keywords of the call.

    >>> with_options(None, BaseSettings, {"limti": 3})
    Traceback (most recent call last):
    dialoscope.errors.UsageError: Unknown setting 'limti'. There are none.
    """
    if settings is not None and not isinstance(settings, kind):
        raise UsageError(f"settings takes {kind.__name__}, found {type(settings).__name__}.")
    known = options_of(kind)
    for name in options:
        if name not in known:
            raise (
                unknown_name("setting", name, known)
                if known
                else UsageError(f"Unknown setting '{name}'. There are none.")
            )
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    return replace(settings or kind(), **values)


def options_of(kind: type) -> dict[str, Option]:
    """The options of a settings class by name."""
    if kind not in _OPTIONS:
        _OPTIONS[kind] = {each.name: each.metadata["option"] for each in fields(kind)}
    return _OPTIONS[kind]


def types_of(kind: type) -> dict[str, Any]:
    """The types of a settings class by name."""
    if kind not in _TYPES:
        _TYPES[kind] = get_type_hints(kind)
    return _TYPES[kind]


_OPTIONS: dict[type, dict[str, Option]] = {}
_TYPES: dict[type, dict[str, Any]] = {}


def default_of(kind: type[BaseSettings], name: str) -> Any:
    """The default of one option."""
    found: Field[Any] = next(each for each in fields(kind) if each.name == name)
    return None if found.default is MISSING else found.default


def element_of(kind: Any) -> tuple[type, bool, bool]:
    """The plain type of an option, whether it is a tuple of these, and whether None is allowed.

    >>> element_of(tuple[str, ...]), element_of(int | None)
    ((<class 'str'>, True, False), (<class 'int'>, False, True))
    """
    members = get_args(kind) if get_origin(kind) in (UnionType, Union) else (kind,)
    named = [each for each in members if each is not NoneType]
    if len(named) != 1:
        raise TypeError(f"an option has one type, or that type and None; found {kind}")
    is_tuple = get_origin(named[0]) is tuple
    element = get_args(named[0])[0] if is_tuple else named[0]
    if element not in KINDS:
        raise TypeError(f"an option is text, a number, true or false, or a tuple of these; found {kind}")
    return element, is_tuple, NoneType in members


def check(name: str, value: Any, kind: Any, limits: Option) -> None:
    """Refuse a value of another type, beyond the limits, or not among the choices."""
    element, is_tuple, is_optional = element_of(kind)
    if value is None and is_optional:
        return
    if is_tuple and not isinstance(value, tuple):
        raise UsageError(f"{name} takes a list, found {_shown(value)}.")
    for each in value if is_tuple else (value,):
        _check_one(name, each, element, limits)


def _check_one(name: str, value: Any, element: type, limits: Option) -> None:
    if not _is(value, element):
        raise UsageError(f"{name} takes {KINDS[element]}, found {_shown(value)}.")
    if limits.choices and value not in limits.choices:
        raise UsageError(f"{name} is one of {', '.join(limits.choices)}; found {_shown(value)}.")
    is_low = limits.least is not None and value < limits.least
    is_high = limits.most is not None and value > limits.most
    is_at_edge = limits.above is not None and value <= limits.above
    if is_low or is_high or is_at_edge or (element is float and not math.isfinite(value)):
        raise UsageError(f"{name} takes {KINDS[element]}{_range(limits)}, found {_shown(value)}.")


def _is(value: Any, element: type) -> bool:
    """True is not a number, 1.0 is not a whole number, 1 is a number."""
    if element is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, element) and (element is bool or not isinstance(value, bool))


def _range(limits: Option) -> str:
    if limits.least is not None and limits.most is not None:
        return f" from {limits.least:,.12g} to {limits.most:,.12g}"
    if limits.least is not None:
        return f" of {limits.least:,.12g} or more"
    low = "" if limits.above is None else f" above {limits.above:,.12g}"
    high = "" if limits.most is None else f"{' and' * bool(low)} of {limits.most:,.12g} or less"
    return low + high


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value!r:.60}"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
