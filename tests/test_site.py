"""The site builds without a warning, asks no other host for anything, and has a place for every public name."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ROOMS = ("corpus", "metrics", "overlap", "model", "distract", "probe", "engage", "report", "study")
LOADING = {  # what a browser fetches without being asked
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "image": ("href",),
    "img": ("src", "srcset"),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "use": ("href",),
    "video": ("src", "poster"),
}

IN_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")

pytestmark = [
    pytest.mark.skipif(
        find_spec("zensical") is None or find_spec("mkdocstrings") is None,
        reason="Zensical is not installed: pip install 'dialoscope[docs]'",
    ),
    pytest.mark.xdist_group("site"),  # built once
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built in strict mode from a copy of its sources."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "docs", root / "docs", ignore=shutil.ignore_patterns("__pycache__", "commands.md"))
    shutil.copy(ROOT / "mkdocs.yml", root)
    (root / "src").symlink_to(ROOT / "src")
    command = [sys.executable, str(root / "docs" / "build_site.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "No issues found" in said
    return root / "site"


class Loading(HTMLParser):
    """Collects the addresses that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value for name, value in attrs if name in LOADING.get(tag, ()) and value]
        self.addresses += [url for name, value in attrs if name == "style" and value for url in in_style(value)]


def in_style(css: str) -> list[str]:
    return [either for both in IN_STYLE.findall(css) for either in both if either]


def loaded(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        return in_style(text)
    page = Loading()
    page.feed(text)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL)
    return page.addresses + [address for style in styles for address in in_style(style)]


def test_no_page_or_style_loads_anything_from_another_host(site: Path) -> None:
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    foreign = re.compile(r"^\s*(?:[a-z]+:)?//", re.IGNORECASE)
    assert len(files) > 30
    assert {str(path): found for path in files if (found := [one for one in loaded(path) if foreign.match(one)])} == {}


@pytest.mark.parametrize(
    ("markup", "addresses"),
    [
        ('<script src="https://elsewhere.example/a.js"></script>', ["https://elsewhere.example/a.js"]),
        ('<link rel="stylesheet" href="//elsewhere.example/a.css">', ["//elsewhere.example/a.css"]),
        ('<p style="background: url(https://elsewhere.example/a.png)">', ["https://elsewhere.example/a.png"]),
        ('<style>@import "https://elsewhere.example/b.css";</style>', ["https://elsewhere.example/b.css"]),
        ('<a href="https://elsewhere.example/">read</a>', []),  # a link is followed by people only
    ],
)
def test_what_a_page_loads_is_found(markup: str, addresses: list[str], tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(markup)
    assert loaded(tmp_path / "page.html") == addresses


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_of_a_room_is_in_its_reference(room: str, site: Path) -> None:
    page = (site / "reference" / f"{room}.html").read_text(encoding="utf-8")
    places = set(re.findall(r'id="(dialoscope\.[^"]+)"', page))
    names = import_module(f"dialoscope.{room}").__all__
    # A function that is called like its file is found under both names.
    both = {name: {f"dialoscope.{room}.{name}", f"dialoscope.{room}.{name}.{name}"} for name in names}
    assert [name for name, possible in both.items() if not possible & places] == []


def test_every_command_is_in_the_reference(site: Path) -> None:
    from typer.main import get_command

    from dialoscope.cli import app

    page = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    headings = set(re.findall(r'<h[23] id="([a-z-]+)"', page))
    groups = get_command(app).commands  # type: ignore[attr-defined]  # of a group
    inner = [f"{group}-{name}" for group, one in groups.items() for name in getattr(one, "commands", {})]
    assert sorted({f"dialoscope-{name}" for name in [*groups, *inner]} - headings) == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium here: install Debian's package chromium")
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install 'dialoscope[dev]'"
    )
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("page", ["index", "tutorials/overlap", "reference/commands", "metrics"])
def test_a_page_opens_from_the_disk_without_errors_or_overflow(
    page: str, width: int, site: Path, browser: Browser
) -> None:
    tab = browser.new_page(viewport={"width": width, "height": 800})
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda sent: None if sent.url.startswith(("file:", "data:")) else problems.append(sent.url))
    tab.goto((site / f"{page}.html").as_uri())
    tab.wait_for_load_state("networkidle")
    too_wide = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    tab.close()
    assert problems == []
    assert too_wide <= 0


def test_the_search_works_from_the_disk(site: Path, browser: Browser) -> None:
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.goto((site / "tutorials" / "corpus.html").as_uri())
    tab.locator("button.md-search__button").first.click()
    tab.wait_for_timeout(500)
    tab.keyboard.type("selecting on the set", delay=20)
    tab.get_by_text("Selecting on the set that is reported").first.wait_for(timeout=10_000)
    tab.close()
