"""What a result keeps comes back the same: dataclasses, mappings, arrays, tables, numbers that are not finite."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dialoscope.errors import UsageError
from dialoscope.record import Score
from dialoscope.report.stored import ARRAYS, STATE, Store


@dataclass(frozen=True)
class Inner:
    text: str
    numbers: tuple[float, ...]
    pair: tuple[str, int]


@dataclass(frozen=True)
class Other:
    name: str


@dataclass(frozen=True)
class Outer:
    inner: Inner | None
    several: Sequence[Inner]
    scores: Mapping[str, Mapping[str, Score]]
    by_number: Mapping[int, str]
    either: Inner | Other
    array: Any
    table: Any


OUTER = Outer(
    Inner("hej", (1.0, math.inf, -math.inf), ("a", 3)),
    (Inner("", (), ("b", 0)),),
    {"m": {"f1": Score(0.5, 10, (0.4, 0.6)), "none": Score.missing("nothing")}},
    {3: "three"},
    Other("x"),
    np.arange(6, dtype=np.float32).reshape(2, 3),
    pa.table({"id": ["a", "b"], "ratio": [0.5, None]}),
)


def test_all_kinds_of_values_come_back_by_their_types(tmp_path: Path) -> None:
    store = Store()
    state = {"outer": store.encode(OUTER, "outer")}
    store.write(state, tmp_path)
    again, kept = Store.read(tmp_path)
    outer = again.decode(Outer, kept["outer"])
    for name in ("inner", "several", "scores", "by_number", "either"):
        assert getattr(outer, name) == getattr(OUTER, name), name
    assert outer.array.dtype == np.float32 and np.array_equal(outer.array, OUTER.array)
    assert outer.table.equals(OUTER.table)


def test_not_a_number_comes_back() -> None:
    store = Store()
    assert math.isnan(store.decode(float, store.encode(math.nan, "x")))


def test_a_number_that_is_whole_stays_a_float() -> None:
    assert isinstance(Store().decode(float, 1), float)


@pytest.mark.parametrize("kind", [Mapping[str, str], Any])
@pytest.mark.parametrize("name", ["number", "array", "table", "$number", "$array", "$table", "$$table", "$"])
def test_a_name_is_never_taken_for_a_reference(name: str, kind: Any) -> None:
    store = Store()
    assert store.decode(kind, store.encode({name: "x"}, "reasons")) == {name: "x"}


def test_what_cannot_be_kept_is_named() -> None:
    with pytest.raises(TypeError, match=r"table\.rows: a result cannot keep a set"):
        Store().encode({"rows": {1}}, "table")


def test_arrays_that_hold_objects_are_refused_when_read(tmp_path: Path) -> None:
    np.savez(tmp_path / ARRAYS, **{"x": np.array([object()], dtype=object)})  # type: ignore[arg-type]
    (tmp_path / STATE).write_text("{}")
    with pytest.raises(UsageError, match="expected a whole result"):
        Store.read(tmp_path)


def test_a_folder_that_lost_its_state_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a whole result, found FileNotFoundError"):
        Store.read(tmp_path)
