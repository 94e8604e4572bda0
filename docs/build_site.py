"""Builds this site into `site/`, from nothing but the checkout: no page of it asks another host for anything.

Run it as `python docs/build_site.py`, or `make docs`. Three steps: the command line reference is written from the
commands themselves, Zensical builds the pages in strict mode (a link that leads nowhere is an error), and the search
index is written once more as a script, because a page that is opened from the disk may load scripts and nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OPENING = """# The command line

Made from the commands themselves, so it says what `--help` says. Every command over data takes `--split`, `--limit` and
`--seed` where they make sense; `--json` gives machines what people see as tables; exit code 2 and one line mean that
something can be mended.
"""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its full name, groups before what is in them."""
    from typer.main import get_command

    from dialoscope.cli import app

    waiting: list[tuple[str, Any]] = [("dialoscope", get_command(app))]
    while waiting:
        name, command = waiting.pop(0)
        yield name, command
        inner = [(f"{name} {word}", one) for word, one in getattr(command, "commands", {}).items() if not one.hidden]
        waiting = [*inner, *waiting]


def reference() -> str:
    """The page of all commands."""
    return "\n".join([OPENING, *(describe(name, command) for name, command in commands())])


def describe(name: str, command: Any) -> str:
    """One command: what it does, how it is called, its arguments and options, two lines to paste."""
    level = "##" if name.count(" ") < 2 else "###"
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
    inner = ["COMMAND …"] if getattr(command, "commands", None) else []
    usage = " ".join([name, *inner, *(placeholder(one) for one in arguments), *(["[OPTIONS]"] if options else [])])
    parts = [f"{level} {name}", " ".join((command.help or "").split()), f"```text\n{usage}\n```"]
    rows = [row(placeholder(one), one) for one in arguments] + [row(flags(one), one) for one in options]
    if rows:
        parts.append("\n".join(["| write | to | usual |", "|---|---|---|", *rows]))
    if command.epilog:
        parts.append(closing(command.epilog))
    return "\n\n".join(parts) + "\n"


def closing(epilog: str) -> str:
    """What stands below the options: commands to paste, each on its line, then whatever else is said."""
    first, _, rest = epilog.partition("\n\n")
    tried = [" ".join(one.split()) for one in first.removeprefix("Try: ").split(" · ")]
    return "\n".join(["```text", *tried, "```", *(["", " ".join(rest.split())] if rest else [])])


def placeholder(argument: Any) -> str:
    """An argument as a usage line has it."""
    name = (argument.metavar or argument.name or "").strip("{}[]").upper().removesuffix("...")
    return name if argument.required else f"[{name}]"


def flags(option: Any) -> str:
    """All ways to write an option."""
    return ", ".join([*option.opts, *option.secondary_opts])


def row(label: str, parameter: Any) -> str:
    """A line of the table: how it is written, what it does, what it is where nothing is said."""
    says = " ".join((getattr(parameter, "help", None) or "").split()).replace("|", "\\|").replace("<", "&lt;")
    return f"| `{label}` | {says} | {usual(parameter)} |"


def usual(parameter: Any) -> str:
    """What holds where nothing is given; switches are off, which goes without saying."""
    if parameter.required:
        return "required"
    value = parameter.default
    is_nothing = value is None or value is False or value in ([], ()) or callable(value)
    return "" if is_nothing else f"`{value}`"


def main() -> None:
    """Write the generated page, build, and write the index for pages on a disk."""
    root = HERE.parent
    (HERE / "reference" / "commands.md").write_text(reference(), encoding="utf-8")
    built = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict", "--clean"], cwd=root)
    if built.returncode:
        sys.exit(built.returncode)
    index = (root / "site" / "search.json").read_text(encoding="utf-8")
    (root / "site" / "search.js").write_text(f"var __index = {index}", encoding="utf-8")


if __name__ == "__main__":
    main()
