"""Runs the tutorials as a reader would paste them, and writes or checks what they show.

    python docs/run_tutorials.py                      # run all, write what each block prints below it
    python docs/run_tutorials.py --check corpus       # run, and compare
    python docs/run_tutorials.py --tiny models probe  # run on next to nothing: does every command still work?

Blocks of `sh` and `python` run in order, all pages in one folder; a `text` block right below one is what it prints. A
block that an earlier page has run is not run again. Blocks of `bash` need something that is fetched first and do not
run, but for those under a comment `<!-- data: NAME -->`, which run when pages are written and the folder NAME lies
where DIALOSCOPE_DATA says.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PAGES = Path(__file__).parent / "tutorials"
ORDER = ("corpus", "metrics", "overlap", "models", "distract", "probe", "engage", "study")
BLOCK = re.compile(
    r"(?:<!-- data: (?P<data>\w+) -->\n\n?)?"
    r"```(?P<kind>sh|python|bash)\n(?P<code>.*?)```\n"
    r"(?:\n```text\n(?P<shown>.*?)```\n)?",
    re.DOTALL,
)
TINY = {"--dialogues ": 30, "--epochs ": 1, "--limit ": 5, "width=": 16, "context_tokens=": 40, "<= ": 8}


class Block(NamedTuple):
    """A block of a page, and where in the page the text below it lies (none: nothing is shown)."""

    code: str
    kind: str
    data: str | None
    shown: str | None
    span: tuple[int, int]


def blocks(page: str) -> Iterator[Block]:
    """All blocks that can run, in order."""
    for found in BLOCK.finditer(page):
        kind, data = found["kind"], found["data"]
        if kind != "bash" or data is not None:
            yield Block(found["code"], kind, data, found["shown"], found.span("shown"))


def tiny(code: str) -> str:
    """The same with as little data and training as will do."""
    for setting, least in TINY.items():
        code = re.sub(rf"{setting}\d+", f"{setting}{least}", code)
    return code


def run(code: str, kind: str, folder: Path) -> str:
    """What a block prints, standard error included, as on a terminal 104 columns wide."""
    program = [sys.executable, "-c"] if kind == "python" else ["bash", "-euc"]
    environment = {
        **os.environ,
        "COLUMNS": "104",
        "NO_COLOR": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        [*program, code], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode} of\n{code}\n{done.stdout}")
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def data_folder(name: str) -> Path | None:
    """A data set in its published form, where there is one here."""
    root = Path(os.environ.get("DIALOSCOPE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    return root / name if (root / name).is_dir() else None


def run_page(
    page: str, folder: Path, *, is_tiny: bool, with_data: bool, seen: dict[str, str]
) -> list[tuple[Block, str]]:
    """Every block that shows something, with what it printed now."""
    printed = []
    for block in blocks(page):
        if block.data is not None and not (with_data and link_data(block.data, folder)):
            continue
        if block.code not in seen:
            seen[block.code] = run(tiny(block.code) if is_tiny else block.code, block.kind, folder)
        if block.shown is not None:
            printed.append((block, seen[block.code]))
    return printed


def link_data(name: str, folder: Path) -> bool:
    """Put the data set beside the reader's files; whether there is one."""
    found = data_folder(name)
    if found is None:
        return False
    if not (folder / name).exists():
        (folder / name).symlink_to(found.resolve())
    return True


def check(name: str, printed: list[tuple[Block, str]]) -> None:
    """End with the first block whose page shows something else."""
    for block, now in printed:
        if block.shown != now:
            raise SystemExit(f"{name}.md shows\n{block.shown}\nbelow\n{block.code}\nwhich prints\n{now}")


def written(page: str, printed: list[tuple[Block, str]]) -> str:
    """The page with what its blocks print now."""
    for block, now in reversed(printed):
        start, end = block.span
        page = page[:start] + now + page[end:]
    return page


def main() -> None:
    """Run the pages that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"of {', '.join(ORDER)}")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--tiny", action="store_true", help="only run, on next to nothing")
    asked = parser.parse_args()
    seen: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.pages or ORDER:
            path = PAGES / f"{name}.md"
            page = path.read_text(encoding="utf-8")
            with_data = not (asked.check or asked.tiny)
            printed = run_page(page, Path(folder), is_tiny=asked.tiny, with_data=with_data, seen=seen)
            if asked.check:
                check(name, printed)
            elif not asked.tiny:
                path.write_text(written(page, printed), encoding="utf-8")


if __name__ == "__main__":
    main()
