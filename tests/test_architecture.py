"""The shape of the package: what importing it costs, what is public, and that files stay small enough to read."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import dialoscope

SOURCE = Path(dialoscope.__file__).parent
HEAVY = {"torch", "pandas", "plotly", "numba", "transformers", "datasets", "pyspark", "sklearn"}


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    return {name.partition(".")[0] for name in json.loads(out)}


def test_importing_dialoscope_pulls_in_nothing_heavy() -> None:
    assert not modules_after("import dialoscope") & (HEAVY | {"numpy", "pyarrow"})


def test_reading_and_writing_a_corpus_pulls_in_nothing_heavy() -> None:
    assert not modules_after("import dialoscope as ds; ds.load, ds.corpus.write, ds.report.render") & HEAVY


def test_the_command_line_starts_without_anything_heavy() -> None:
    assert not modules_after("import dialoscope.cli") & HEAVY


def test_every_public_name_exists() -> None:
    assert all(getattr(dialoscope, name) is not None for name in dialoscope.__all__)


def test_every_name_that_the_reference_promises_exists() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "dialoscope.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`ds\.(\w+)`", page))
    assert {"engage", "study"} <= names <= set(dialoscope.__all__)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    assert not hasattr(dialoscope, "no_such_name")


def test_no_room_is_called_utils() -> None:
    assert not [path for path in SOURCE.rglob("*.py") if path.stem in ("utils", "helpers", "misc", "common")]


def test_nothing_is_ever_unpickled() -> None:
    for path in SOURCE.rglob("*.py"):
        imported = {
            alias.name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert not imported & {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}, path
