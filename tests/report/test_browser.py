"""The page in a real browser, opened from a file: what it draws, what it loads, who can use it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from dialoscope.report import Chart, Section, Table, render

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
Scheme = Literal["light", "dark"]
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
GROUND = "getComputedStyle(document.body).backgroundColor"
CHART_GROUND = "document.querySelector('.plot').layout.paper_bgcolor"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


class Visit:
    """A page that was opened, with all it said and asked for."""

    def __init__(self, browser: Browser, path: Path, *, width: int = 1280, scheme: Scheme = "light") -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        self.page: Page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


@pytest.fixture
def path(tmp_path: Path, section: Section) -> Path:
    return _written(tmp_path, section)


@pytest.fixture
def small_path(tmp_path: Path, section: Section) -> Path:
    """One table and one chart, for what does not depend on their number."""
    chart = next(block for block in section.blocks if isinstance(block, Chart))
    return _written(tmp_path, replace(section, blocks=[*section.tables, chart]))


@pytest.fixture
def hostile_path(tmp_path: Path, hostile_section: Section) -> Path:
    return _written(tmp_path, hostile_section)


def _written(folder: Path, section: Section) -> Path:
    path = folder / "report.html"
    path.write_text(render(section.title, [section], subtitle=section.title), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["path", "hostile_path"])
def test_the_page_says_no_error_and_asks_for_nothing_but_itself(
    browser: Browser, name: str, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(name)
    with Visit(browser, path) as visit:
        visit.page.wait_for_selector(".main-svg")
        visit.page.wait_for_timeout(300)
        assert (visit.said, visit.asked) == ([], [path.as_uri()])


@pytest.mark.parametrize("name", ["path", "hostile_path"])
def test_the_page_never_scrolls_sideways(browser: Browser, name: str, request: pytest.FixtureRequest) -> None:
    with Visit(browser, request.getfixturevalue(name), width=320) as visit:
        beyond = {}
        for width in (320, 360, 390, 768, 1280):
            visit.page.set_viewport_size({"width": width, "height": 900})
            beyond[width] = visit.page.evaluate(OVERFLOW)
        assert beyond == dict.fromkeys(beyond, 0)


def test_every_chart_is_drawn(browser: Browser, path: Path) -> None:
    with Visit(browser, path) as visit:
        drawn = visit.page.eval_on_selector_all(".plot", "plots => plots.map(p => p.querySelectorAll('svg').length)")
        assert len(drawn) == 9
        assert all(drawn)


@pytest.mark.parametrize(("role", "count"), [("figure", 11), ("img", 9)])
def test_every_figure_and_every_picture_has_a_name(
    browser: Browser, path: Path, role: Literal["figure", "img"], count: int
) -> None:
    with Visit(browser, path) as visit:
        wait_until(visit.page, "!document.querySelector('.plot svg:not([aria-hidden])')")
        assert visit.page.get_by_role(role).count() == count
        assert visit.page.get_by_role(role, name="Plain words").count() == count


def test_hostile_labels_are_drawn_as_text_and_make_no_links(browser: Browser, hostile_path: Path) -> None:
    with Visit(browser, hostile_path) as visit:
        assert visit.page.locator(".plot a").count() == 0
        assert "<script>alert(1)" in visit.page.locator(".plot").first.inner_text()


def test_light_and_dark_follow_the_system(browser: Browser, small_path: Path) -> None:
    grounds = []
    schemes: list[Scheme] = ["light", "dark"]
    for scheme in schemes:
        with Visit(browser, small_path, scheme=scheme) as visit:
            grounds.append((visit.page.evaluate(GROUND), visit.page.evaluate(CHART_GROUND)))
    assert grounds == [("rgb(251, 251, 249)", "#fbfbf9"), ("rgb(19, 22, 25)", "#131619")]


def test_the_button_changes_page_and_charts_and_says_so(browser: Browser, small_path: Path) -> None:
    with Visit(browser, small_path) as visit:
        button = visit.page.get_by_role("button", name="Dark theme")
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert visit.page.evaluate(GROUND) == "rgb(19, 22, 25)"
        assert visit.page.evaluate(CHART_GROUND) == "#131619"


def test_charts_follow_when_the_system_turns_dark(browser: Browser, small_path: Path) -> None:
    with Visit(browser, small_path) as visit:
        visit.page.emulate_media(color_scheme="dark")
        wait_until(visit.page, f"{CHART_GROUND} === '#131619'")
        bars = visit.page.evaluate("document.querySelector('.plot').data[0].marker.color")
        assert bars == "#4a8df0"


def wait_until(page: Page, expression: str) -> None:
    """Ask from outside until it is so: waiting inside the page is evaluation, which the page's policy forbids."""
    for _ in range(100):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not so after 5 seconds: {expression}")


def _column(page: Page, place: int) -> list[str]:
    cells = page.locator("figure.table").first.locator(f"tbody tr > :nth-child({place})")
    return [text.split("[")[0].strip() for text in cells.all_inner_texts()]


def test_the_keyboard_sorts_a_table_up_down_and_back(browser: Browser, small_path: Path) -> None:
    with Visit(browser, small_path) as visit:
        head = visit.page.locator("figure.table").first.locator("th", has_text="Count")
        orders = []
        for _ in range(3):
            head.get_by_role("button").focus()
            visit.page.keyboard.press("Enter")
            orders.append((head.get_attribute("aria-sort"), _column(visit.page, 3)))
        assert orders == [("ascending", ["3", "10", ""]), ("descending", ["10", "3", ""]), (None, ["3", "10", ""])]


def test_scores_are_sorted_by_value_and_missing_ones_stay_last(browser: Browser, small_path: Path) -> None:
    with Visit(browser, small_path) as visit:
        button = visit.page.locator("figure.table").first.get_by_role("button", name="Score")
        button.click()
        button.click()
        assert [text[:4] for text in _column(visit.page, 2)] == ["0.50", "0.25", "—a"]


def test_a_table_that_goes_on_below_says_so_until_its_end(browser: Browser, tmp_path: Path) -> None:
    tables = [Table(["place"], [[place] for place in range(rows)], f"{rows} rows") for rows in (3, 60)]
    path = _written(tmp_path, Section("Long", "long", "How long?", tables))
    with Visit(browser, path) as visit:
        boxes = visit.page.locator(".box")
        shown = [boxes.nth(place).evaluate("box => box.classList.contains('goes-on')") for place in range(2)]
        assert shown == [False, True]
        boxes.nth(1).evaluate("box => box.scrollTo(0, box.scrollHeight)")
        visit.page.wait_for_function("!document.querySelectorAll('.box')[1].classList.contains('goes-on')")


def test_a_heading_of_several_words_breaks_before_its_table_has_to_scroll(browser: Browser, tmp_path: Path) -> None:
    heads = ["split", *(f"standard deviation of {name}" for name in ("turns", "words", "speakers", "letters"))]
    path = _written(tmp_path, Section("Wide", "wide", "How wide?", [Table(heads, [["train", 1, 2, 3, 4]], "Sizes")]))
    with Visit(browser, path, width=900) as visit:
        assert visit.page.locator(".box").evaluate("box => box.scrollWidth - box.clientWidth") == 0


def _saved(visit: Visit, button: str) -> tuple[str, bytes]:
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name=button).first.click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_a_table_can_be_saved_for_a_spreadsheet(browser: Browser, small_path: Path, section: Section) -> None:
    with Visit(browser, small_path) as visit:
        assert _saved(visit, "as CSV") == ("scores.csv", section.tables[0].to_csv().encode())


def test_a_table_can_be_saved_for_a_paper(browser: Browser, small_path: Path, section: Section) -> None:
    with Visit(browser, small_path) as visit:
        assert _saved(visit, "as LaTeX") == ("scores.tex", section.tables[0].to_latex().encode())


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<svg")])
def test_a_chart_can_be_saved_as_a_picture(browser: Browser, small_path: Path, kind: str, start: bytes) -> None:
    with Visit(browser, small_path) as visit:
        name, content = _saved(visit, f"as {kind.upper()}")
    assert name == f"histogram-plain-words.{kind}"
    assert content.startswith(start)


def test_on_paper_charts_are_light_and_as_wide_as_the_page(browser: Browser, small_path: Path) -> None:
    with Visit(browser, small_path, scheme="dark") as visit:
        visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert visit.page.evaluate(CHART_GROUND) == "#ffffff"
        assert visit.page.evaluate("document.querySelector('.plot').layout.width") == 680
        visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert visit.page.evaluate(CHART_GROUND) == "#131619"


def test_the_page_can_be_printed(browser: Browser, small_path: Path) -> None:
    with Visit(browser, small_path, scheme="dark") as visit:
        assert visit.page.pdf(format="A4").startswith(b"%PDF")


def test_a_script_that_got_in_would_not_run(browser: Browser, small_path: Path) -> None:
    with Visit(browser, small_path) as visit:
        make = "const script = document.createElement('script'); script.textContent = 'window.ran = 1'"
        visit.page.evaluate(f"() => {{ {make}; document.body.append(script) }}")
        assert visit.page.evaluate("window.ran === undefined")


def test_the_page_cannot_reach_the_network(browser: Browser, small_path: Path) -> None:
    with Visit(browser, small_path) as visit:
        reached = visit.page.evaluate("fetch('https://dialoscope.invalid/').then(() => true, () => false)")
        assert reached is False
        assert any("Content Security Policy" in text for text in visit.said)


def test_without_scripts_all_words_and_numbers_are_there(browser: Browser, small_path: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(small_path.as_uri())
    assert page.locator("figure.table td").first.is_visible()
    assert not page.locator("#theme").is_visible()
    context.close()
