"""Sections in, one self-contained page out: it opens from a disk, with no network at all.

Three fences stand between what users wrote and the page: Jinja's autoescape, JSON with every `<`, `>` and `&`
written as an escape, and a Content-Security-Policy that runs only the scripts whose hashes it names and
allows no connection anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from dialoscope.record import version
from dialoscope.report.anchor import free_name, slug
from dialoscope.report.plain import to_text
from dialoscope.report.section import Block, Prose, Section, Table
from dialoscope.report.theme import dark_counterparts, page_colours

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

LEVELS = {
    "good": "Good",
    "concern": "Concern",
    "cannot_tell": "Cannot tell",
    "not_measurable": "Not measurable",
}
OWN_IDS = frozenset({"main", "summary", "records", "theme"})  # of the page itself; sections get others
IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def render(title: str, sections: Sequence[Section], *, subtitle: str = "", overall: str = "") -> str:
    """One page of these sections: verdicts first, under what they come to, then contents, sections and records.

    >>> page = render("Report", [Section("Empty", "empty", "Is there anything?", [])])
    >>> "<!doctype html>" in page and "plotly.js v" not in page
    True
    """
    placed = _with_own_anchors(sections)
    placed = _with_own_files(placed) if len(placed) > 1 else placed
    scripts = [_page_script(), *([_plotly()] if any(section.has_chart for section in placed) else [])]
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            subtitle=subtitle,
            overall=overall,
            sections=placed,
            contents=_contents(placed),
            records=_records(placed),
            scripts=scripts,
            policy=_policy(scripts),
            version=version(),
        )
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("dialoscope", "report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= {"levels": LEVELS, "colours": page_colours}
    environment.filters |= {
        "in_script": _in_script,
        "downloads": _downloads,
        "typeset": _typeset,
        "named": _named,
        "slug": slug,
    }
    return environment


def _with_own_anchors(sections: Sequence[Section]) -> list[Section]:
    """Two runs of one instrument may stand on one page; links must still lead to each."""
    taken: set[str] = set(OWN_IDS)
    placed = []
    for section in sections:
        anchor = free_name(section.anchor, taken)
        taken.add(anchor)
        placed.append(section.at(anchor))
    return placed


def _with_own_files(sections: Sequence[Section]) -> list[Section]:
    """Tables that are downloaded from one page lie in one folder: their names say which section they are of."""
    taken: set[str] = set()
    placed = []
    for section in sections:
        blocks: list[Block] = []
        for block in section.blocks:
            if isinstance(block, Table):
                block = replace(block, name=free_name(_file(section, block.name), taken))
                taken.add(block.name)
            blocks.append(block)
        placed.append(replace(section, blocks=blocks))
    return placed


def _file(section: Section, name: str) -> str:
    """The section's anchor and the table's name; a word that begins both is said once."""
    word = section.anchor.partition("-")[0]
    rest = "" if name == word else name.removeprefix(f"{word}-")
    return slug(f"{section.anchor} {rest}")


def _named(section: Section) -> list[tuple[str, Block]]:
    """The section's blocks with an id for each."""
    # The double hyphen keeps them apart from anchors, which never have one.
    return [(f"{section.anchor}--{place}", block) for place, block in enumerate(section.blocks, 1)]


def _contents(sections: Sequence[Section]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Anchor, title and headings of each section; empty where there is nothing to choose from."""
    shown = [(section.anchor, section.title, _headings(section)) for section in sections]
    return shown if sum(1 + len(headings) for _, _, headings in shown) > 1 else []


def _headings(section: Section) -> list[tuple[str, str]]:
    return [(name, block.heading) for name, block in _named(section) if isinstance(block, Prose) and block.heading]


def _records(sections: Sequence[Section]) -> list[tuple[str, str, str]]:
    return [
        (section.anchor, section.title, section.origin.signature) for section in sections if section.origin is not None
    ]


def _in_script(value: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    from markupsafe import Markup

    text = to_text(value)
    for letter, escape in IN_SCRIPT.items():
        text = text.replace(letter, escape)
    return Markup(text)  # every letter that means something to HTML is an escape by now


def _downloads(table: Table) -> dict[str, str]:
    return {"name": table.name, "csv": table.to_csv(), "tex": table.to_latex()}


def _typeset(text: str, is_number: bool = True) -> str:
    """Numbers with a true minus sign, which is as wide as a digit."""
    return text.replace("-", "\N{MINUS SIGN}") if is_number else text


@cache
def _page_script() -> Markup:
    from markupsafe import Markup

    themes = {"light": page_colours(0), "dark": page_colours(1), "swap": dark_counterparts()}
    script = _environment().get_template("page.js.j2").render(themes=themes)
    return Markup(script)  # our own; its one variable went through in_script


@cache
def _plotly() -> Markup:
    """Plotly's library from the installed package, as the browser will see it."""
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    # Browsers read any line end as \n before they hash; "</script" and "<!--" inside a string would end or hide it.
    library = get_plotlyjs().replace("\r\n", "\n").replace("\r", "\n")
    return Markup(library.replace("</script", "<\\/script").replace("<!--", "<\\!--"))


def _policy(scripts: Sequence[str]) -> str:
    """What the page may do: run these scripts, style itself, show pictures it made. Nothing else, no network."""
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    # Charts set style attributes and make a blob of themselves when they are saved as a picture.
    rules = ["default-src 'none'", f"script-src {hashes}", "style-src 'unsafe-inline'", "img-src data: blob:"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
