"""Models that are loaded once and shared by everything that asks for them within a block."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

MOST = 4  # models that are kept in memory
Loaded = TypeVar("Loaded")
_models: OrderedDict[Any, Any] | None = None


@contextmanager
def shared_models() -> Iterator[None]:
    """Within the block, `load` gives the same model again where it is asked for the same path with the same options."""
    global _models
    before, _models = _models, OrderedDict()
    try:
        yield
    finally:
        _models = before


def shared(load: Callable[..., Loaded]) -> Callable[..., Loaded]:
    """Let a function that loads models share them within `shared_models`; `quiet` changes no model."""

    @wraps(load)
    def load_once(path_or_name: Any, **options: Any) -> Loaded:
        if _models is None:
            return load(path_or_name, **options)
        call = signature(load).bind(str(path_or_name), **options)
        call.apply_defaults()
        key = tuple((name, value) for name, value in call.arguments.items() if name != "quiet")
        if key not in _models:
            _models[key] = load(path_or_name, **options)
        _models.move_to_end(key)
        while len(_models) > MOST:
            _models.popitem(last=False)
        model: Loaded = _models[key]
        return model

    return load_once
