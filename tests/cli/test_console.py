"""What a terminal is given to print: the user's own text is neither markup nor an escape sequence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from dialoscope.cli.arguments import Output
from dialoscope.cli.console import finish, print_table
from dialoscope.report.result import Result
from dialoscope.report.section import Table
from dialoscope.report.verdict import Verdict


def test_the_name_of_a_column_is_not_read_as_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["[bold red]mine[/]", "[/]"], [["a", "b"]])
    printed = capsys.readouterr().out
    assert "[bold red]mine[/]" in printed and " [/] " in printed


def test_no_text_of_a_result_reaches_the_terminal_with_an_escape_sequence(capsys: pytest.CaptureFixture[str]) -> None:
    text = "first\x1b[2J\nsecond"
    result = SimpleNamespace(
        verdicts=lambda: [Verdict("good", text)],
        used=text,
        counts={"skipped": {text: 2}},
        example=lambda: text,
        summary=lambda: Table([text], [[text]], text, notes=[text]),
    )
    finish(cast(Result, result), Output(), next_command="dialoscope")
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert printed.count("first\N{REPLACEMENT CHARACTER}[2J") == 8  # five sentences; the title, the column and the cell
    assert "\nsecond" in printed
