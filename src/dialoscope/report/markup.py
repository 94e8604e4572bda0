"""Text from anywhere made harmless in LaTeX and Markdown."""

from __future__ import annotations

import re

LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "—": "---",
    "–": "--",
}
MARKDOWN = re.compile(r"([\\`*_\[\]<>|~$])")


def latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> print(latex("50% of A_1 & B"))
    50\% of A\_1 \& B
    """
    return "".join(LATEX.get(letter, letter) for letter in " ".join(text.split()))


def latex_row(cells: list[str]) -> str:
    """A line of a tabular."""
    # After "\\" LaTeX reads "[" as an option and "*" as a star, even from the next line.
    first = f"{{{cells[0][0]}}}{cells[0][1:]}" if cells[0][:1] in ("[", "*") else cells[0]
    return " & ".join([first, *cells[1:]]) + r" \\"


def markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return MARKDOWN.sub(r"\\\1", " ".join(text.split()))
