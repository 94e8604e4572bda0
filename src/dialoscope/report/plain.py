"""Values as JSON has them: what goes into a file comes back the same, or is refused by name."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from dialoscope.record import Origin, Score


def plain(value: Any, where: str = "data") -> Any:
    """Scores, dataclasses and NumPy values as plain JSON; NaN and infinity are refused with their place.

    >>> plain({"bleu": Score(0.5, 10)}, "result")
    {'bleu': {'value': 0.5, 'n': 10, 'interval': None, 'reason': None}}
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _finite(float(value), where)
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist(), where)
    if isinstance(value, os.PathLike):
        return _encodable(os.fspath(value))
    return _plain_container(value, where)


def _plain_container(value: Any, where: str) -> Any:
    if isinstance(value, Score):
        return plain(value.to_dict(), where)
    if isinstance(value, Origin):
        return origin_to_dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name), f"{where}.{each.name}") for each in fields(value)}
    if isinstance(value, Mapping):
        return {_encodable(str(key)): plain(each, f"{where}.{key}") for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, f"{where}[{place}]") for place, each in enumerate(value)]
    raise TypeError(f"{where}: expected something JSON can hold, found {type(value).__name__}")


def _finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{where}: expected a finite number, found {value}. Give None, or a Score with a reason.")
    return value


def _encodable(text: str) -> str:
    """Names of files in other encodings carry lone surrogates, which UTF-8 has no bytes for."""
    return text.encode("utf-8", "replace").decode("utf-8")


def to_text(value: Any, *, indent: int | None = None) -> str:
    """Plain JSON as text."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)


def origin_to_dict(origin: Origin) -> dict[str, Any]:
    """An origin as JSON, such that `origin_from` gives one with the same signature."""
    settings = {key: _setting(value) for key, value in origin.settings.items()}
    shown = {"corpus": origin.corpus, "settings": settings, "seed": origin.seed, "version": origin.version}
    return {**plain(shown, "origin"), "signature": _encodable(origin.signature)}


def origin_from(value: Mapping[str, Any]) -> Origin:
    """The origin that `origin_to_dict` wrote."""
    return Origin(value["corpus"], dict(value["settings"]), value["seed"], value["version"])


def _setting(value: Any) -> Any:
    """JSON would turn (1, 2) into [1, 2] and so change the signature: what it cannot keep is kept as written."""
    try:
        kept = plain(value, "settings")
    except (TypeError, ValueError):
        return str(value)
    return kept if str(kept) == str(value) else str(value)
