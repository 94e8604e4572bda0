"""The study that `dialoscope demo` runs."""

from __future__ import annotations

from importlib.resources import as_file, files

from dialoscope.study.plan import Plan, read_plan


def demo_plan() -> Plan:
    """Every instrument, two small models that are trained on the spot."""
    with as_file(files("dialoscope.study") / "demo.toml") as path:
        return read_plan(path)
