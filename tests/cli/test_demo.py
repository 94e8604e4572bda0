"""The demonstration, and its page in a real browser: at the width of a phone and of a desk, light and dark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from typer.testing import CliRunner

from dialoscope.cli import app

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECTIONS = ("Overlap", "Attention", "Prob", "epth", "How it was made", "Records")
pytestmark = pytest.mark.xdist_group("demo")  # made once

if TYPE_CHECKING:
    from playwright.sync_api import Browser

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
LEADING_NOWHERE = """[...document.querySelectorAll('a[href^="#"]')].map(a => a.getAttribute('href').slice(1))
    .filter(id => !document.getElementById(id))"""


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `dialoscope demo` says, of few conversations."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")
    pytest.importorskip("chitchat_dataset", reason="chitchat is not installed: pip install 'dialoscope[demo]'")
    out = tmp_path_factory.mktemp("demo") / "demo"
    done = CliRunner().invoke(app, ["demo", "--out", str(out), "--dialogues", "60", "--json"])
    assert done.exit_code == 0, done.output
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_the_demo_writes_one_report_and_the_runs_behind_it(demo: dict[str, Any]) -> None:
    assert Path(demo["report"]).read_text(encoding="utf-8").startswith("<!doctype html>")
    states = {step["name"]: step["state"] for step in demo["steps"]}
    assert states.pop("depth-chitchat") in ("done", "skipped")  # skipped where its encoder is not installed
    assert set(states.values()) == {"done"}
    result = json.loads((Path(demo["report"]).parent / demo["steps"][0]["run"] / "result.json").read_text())
    assert (result["schema_version"], sum(result["parts"].values())) == (2, 60)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_whole_quiet_and_asks_for_nothing(
    browser: Browser, demo: dict[str, Any], width: int, scheme: Literal["light", "dark"]
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    address = Path(demo["report"]).resolve().as_uri()
    page.goto(address)
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
    assert found == {"said": [], "asked": [address], "beyond": 0, "nowhere": [], "unnamed": []}
    assert isinstance(sections, list)
    assert [one for one in SECTIONS if not any(one in title for title in sections)] == []
    assert figures
