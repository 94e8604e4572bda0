"""A study's page in a real browser: at the width of a phone and of a desk, light and dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import pytest

from turnwise.study import Study

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

if TYPE_CHECKING:
    from playwright.sync_api import Browser

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
LEADING_NOWHERE = """[...document.querySelectorAll('a[href^="#"]')].map(a => a.getAttribute('href').slice(1))
    .filter(id => !document.getElementById(id))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_whole_quiet_and_asks_for_nothing(
    browser: Browser, study: Study, width: int, scheme: Literal["light", "dark"]
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(study.report.as_uri())
    page.wait_for_selector(".main-svg")
    page.wait_for_timeout(300)
    figures = page.get_by_role("figure").all()
    unnamed = [one for one in figures if not (one.get_attribute("aria-label") or one.get_attribute("aria-labelledby"))]
    found = {
        "said": said,
        "asked": asked,
        "beyond": page.evaluate(OVERFLOW),
        "nowhere": page.evaluate(LEADING_NOWHERE),
        "unnamed": unnamed,
        "sections": [one.inner_text() for one in page.get_by_role("heading", level=2).all()],
    }
    context.close()
    sections = found.pop("sections")
    assert found == {"said": [], "asked": [study.report.as_uri()], "beyond": 0, "nowhere": [], "unnamed": []}
    assert isinstance(sections, list)
    assert [
        one for one in ("Overlap", "Distraction", "Probes", "How it was made", "Records") if one not in sections
    ] == []
    assert figures
