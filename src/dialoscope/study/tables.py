"""TOML tables as frozen dataclasses: unknown names get a suggestion, wrong types are told with where they stand."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dialoscope.errors import UsageError, unknown_name

Read = TypeVar("Read")

SAID = {str: "text", int: "a whole number", float: "a number", bool: "true or false", dict: "a table"}


def read_table(cls: type[Read], table: Any, where: str) -> Read:
    """The dataclass that a table describes; `where` names the table in complaints.

    >>> from dataclasses import dataclass
    >>> Wish = dataclass(type("Wish", (), {"__annotations__": {"limit": int}, "limit": 3}))
    >>> read_table(Wish, {"limit": 5}, "[probe]").limit
    5
    """
    if not isinstance(table, Mapping):
        raise UsageError(f"{where}: expected a table, found {table!r}.")
    known = {one.name: one for one in fields(cls)}  # type: ignore[arg-type]
    for name in table:
        if name not in known:
            raise unknown_name(f"option in {where}", str(name), known)
    missing = [name for name, one in known.items() if name not in table and one.default is MISSING
               and one.default_factory is MISSING]  # fmt: skip
    if missing:
        raise UsageError(f"{where}: expected {missing[0]!r}, found none.")
    hints = get_type_hints(cls)
    return cls(**{name: _fitted(value, hints[name], f"{where} {name}") for name, value in table.items()})


def _fitted(value: Any, hint: Any, where: str) -> Any:
    """The value as the type has it."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (hint,) = (one for one in parts if one is not types.NoneType)
        return _fitted(value, hint, where)
    if origin is Literal:
        if value not in parts:
            raise unknown_name(f"value for {where}", str(value), map(str, parts))
        return value
    if origin is tuple:
        values = value if isinstance(value, list) else [value]
        return tuple(_fitted(one, parts[0], where) for one in values)
    if origin is not None and issubclass(origin, Mapping):
        hint = dict
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise UsageError(f"{where}: expected {SAID.get(hint, hint.__name__)}, found {value!r}.")
    return value
