"""A result's fields as JSON, arrays and tables, and back by their types: nothing is pickled.

Dataclasses become objects of their fields; NumPy arrays go to `arrays.npz`, Arrow tables to Parquet files of their own.
The JSON refers to them as {"$array": name} and {"$table": name}, and writes numbers that are not finite as
{"$number": "nan"}. A key of the user's own that begins with a dollar sign gets a second one, so no name is a reference.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dialoscope.errors import UsageError

STATE, ARRAYS = "state.json", "arrays.npz"
NUMBER, ARRAY, TABLE = "$number", "$array", "$table"
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass
class Store:
    """Arrays and tables by name, beside the JSON that refers to them."""

    arrays: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def encode(self, value: Any, name: str) -> Any:
        """A value as JSON; `name` is where it stands, and names its array or table."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {NUMBER: str(value)}
        if isinstance(value, np.ndarray):
            self.arrays[name] = value
            return {ARRAY: name}
        if isinstance(value, np.generic):
            return self.encode(value.item(), name)
        if isinstance(value, pa.Table):
            self.tables[name] = value
            return {TABLE: name}
        if is_dataclass(value):
            return {each.name: self.encode(getattr(value, each.name), f"{name}.{each.name}") for each in fields(value)}
        if isinstance(value, Mapping):
            return {_escaped(str(key)): self.encode(each, f"{name}.{key}") for key, each in value.items()}
        if isinstance(value, Sequence):
            return [self.encode(each, f"{name}.{place}") for place, each in enumerate(value)]
        raise TypeError(f"{name}: a result cannot keep a {type(value).__name__}")

    def decode(self, kind: Any, value: Any) -> Any:
        """The value of this type that `encode` wrote."""
        if get_origin(kind) in (Union, types.UnionType):
            return None if value is None else self._decode_one_of(kind, value)
        if _is_reference(value, NUMBER):
            return NOT_FINITE[value[NUMBER]]
        if _is_reference(value, ARRAY):
            return self.arrays[value[ARRAY]]
        if _is_reference(value, TABLE):
            return self.tables[value[TABLE]]
        origin, members = get_origin(kind) or kind, get_args(kind)
        if is_dataclass(kind) and isinstance(kind, type):
            hints = types_of(kind)
            return kind(**{name: self.decode(hints[name], each) for name, each in value.items()})
        if isinstance(value, dict):
            element = members[1] if len(members) == 2 else Any
            return {_key(members, key): self.decode(element, each) for key, each in value.items()}
        if isinstance(value, list):
            return _sequence(origin, [self.decode(_element(members, at), each) for at, each in enumerate(value)])
        return float(value) if kind is float and isinstance(value, int) else value

    def _decode_one_of(self, kind: Any, value: Any) -> Any:
        """A union: the only member besides None, or the dataclass whose fields the value has."""
        members = [each for each in get_args(kind) if each is not types.NoneType]
        if len(members) > 1 and isinstance(value, dict):
            known = (each for each in members if is_dataclass(each) and isinstance(each, type))
            members = [each for each in known if {one.name for one in fields(each)} == value.keys()] or [Any]
        return self.decode(members[0] if len(members) == 1 else Any, value)

    def write(self, state: Mapping[str, Any], folder: Path) -> None:
        """Write the JSON, the arrays and the tables."""
        (folder / STATE).write_text(json.dumps(state, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
        if self.arrays:
            np.savez(folder / ARRAYS, allow_pickle=False, **self.arrays)
        for name, table in self.tables.items():
            pq.write_table(table, folder / f"{name}.parquet")

    @classmethod
    def read(cls, folder: Path) -> tuple[Store, dict[str, Any]]:
        """What `write` wrote: the arrays and tables, and the JSON."""
        try:
            state = json.loads((folder / STATE).read_bytes())
            arrays: dict[str, np.ndarray[Any, Any]] = {}
            if (folder / ARRAYS).is_file():
                with np.load(folder / ARRAYS, allow_pickle=False) as kept:
                    arrays = {name: kept[name] for name in kept.files}
            tables = {path.stem: pq.read_table(path) for path in folder.glob("*.parquet")}
        except (OSError, ValueError, pa.ArrowException) as error:
            found = " ".join(str(error).split())
            raise UsageError(f"{folder}: expected a whole result, found {type(error).__name__}: {found}.") from error
        return cls(arrays, tables), state


def types_of(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields by name."""
    return get_type_hints(kind)


def _is_reference(value: Any, kind: str) -> bool:
    """Whether a value stands for a number, an array or a table."""
    return isinstance(value, dict) and value.keys() == {kind}


def _escaped(key: str) -> str:
    return f"${key}" if key.startswith("$") else key


def _key(members: tuple[Any, ...], key: str) -> Any:
    """The key that `encode` wrote, as its type says."""
    return int(key) if members and members[0] is int else key[1:] if key.startswith("$") else key


def _element(members: tuple[Any, ...], at: int) -> Any:
    """The type of one element: a tuple of fixed length has a type for each."""
    if not members or get_origin(members[0]) is Literal:
        return Any
    if len(members) > 1 and members[1] is not Ellipsis:
        return members[at]
    return members[0]


def _sequence(origin: Any, values: list[Any]) -> Any:
    return tuple(values) if origin is tuple or origin is Sequence or origin is Any else values
