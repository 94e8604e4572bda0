"""The shape of the package: what importing it costs, what is public, and that files stay small enough to read."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dialoscope

SOURCE = Path(dialoscope.__file__).parent
HEAVY = {"torch", "pandas", "plotly", "numba", "transformers", "datasets", "pyspark", "sklearn"}


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    return {name.partition(".")[0] for name in json.loads(out)}


LIGHT = {"numpy", "pyarrow", "orjson", "scipy", "rich"}  # what neither settings nor help pages need
PACKAGES = ("corpus", "distract", "engage", "metrics", "model", "overlap", "probe", "report", "study")
MOST_NAMES = 60
LIGHT_FILES = re.compile(r"dialoscope\.(errors|settings|progress|cli\..*|\w+\.(settings|options))")


def test_importing_dialoscope_pulls_in_nothing_heavy() -> None:
    assert not modules_after("import dialoscope") & (HEAVY | LIGHT | {"typer"})


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_its_names_when_they_are_first_used(package: str) -> None:
    assert not modules_after(f"import dialoscope as ds; ds.{package}") & (HEAVY | LIGHT)


@pytest.mark.parametrize("package", [each for each in PACKAGES if each != "report"])
def test_settings_pull_in_nothing_heavy(package: str) -> None:
    assert not modules_after(f"import dialoscope.{package}.settings") & (HEAVY | LIGHT | {"typer"})


def test_reading_and_writing_a_corpus_pulls_in_nothing_heavy() -> None:
    assert not modules_after("import dialoscope as ds; ds.load, ds.corpus.write, ds.report.render") & HEAVY


def test_the_command_line_starts_without_anything_heavy() -> None:
    assert not modules_after("import dialoscope.cli") & HEAVY


def test_help_loads_neither_numpy_nor_pyarrow() -> None:
    code = "import sys; sys.argv = ['dialoscope', '--help']\nfrom dialoscope.cli import app\n"
    code += "import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()): app(standalone_mode=False)"
    assert not modules_after(code) & (HEAVY | {"numpy", "pyarrow"})


@pytest.mark.parametrize("name", sorted(path.stem for path in (SOURCE / "cli").glob("[a-z]*.py")))
def test_a_file_of_the_command_line_imports_settings_only(name: str) -> None:
    tree = ast.parse((SOURCE / "cli" / f"{name}.py").read_text(encoding="utf-8"))
    imported = [each.module for each in tree.body if isinstance(each, ast.ImportFrom) and each.module]
    assert [each for each in imported if each.startswith("dialoscope") and not LIGHT_FILES.fullmatch(each)] == []


def test_there_are_few_public_names() -> None:
    """Names that several packages share, such as `measure`, are learnt once."""
    names = set(dialoscope.__all__)
    for package in PACKAGES:
        names |= set(getattr(dialoscope, package).__all__)
    assert len(names) <= MOST_NAMES, sorted(names)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_lazy_package_exists(package: str) -> None:
    module = getattr(dialoscope, package)
    named = [name for names in module.files.values() for name in names]
    assert set(module.__all__) <= set(named)
    assert dir(module) == sorted(module.__all__)
    for name in named:
        assert getattr(module, name) is not None
    assert not hasattr(module, "no_such_name")


def test_the_version_is_a_public_name() -> None:
    assert re.fullmatch(r"\d+\.\d+.*", dialoscope.__version__)


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
