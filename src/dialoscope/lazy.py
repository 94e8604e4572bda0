"""Packages whose names are imported when they are first used, so that importing the package costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package that knows which of its files defines which public name."""

    files: Mapping[str, Sequence[str]]

    def __getattr__(self, name: str) -> Any:
        for file, names in self.files.items():
            if name in names:
                value = getattr(import_module(f"{self.__name__}.{file}"), name)
                setattr(self, name, value)
                return value
        raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        # Python sets an imported file as an attribute of its package. Where the file is called as its function is
        # (`overlap.measure`), the function stays.
        if isinstance(value, ModuleType) and name in self.files.get(name, ()):
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        public: list[str] = self.__dict__["__all__"]
        return public


def make_lazy(package: str, files: Mapping[str, Sequence[str]]) -> None:
    """Let a package import its names when they are first used: file -> the names that it defines."""
    module = sys.modules[package]
    module.__dict__["files"] = files
    module.__class__ = LazyPackage
