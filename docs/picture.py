"""Takes pictures of pages as a browser shows them: the README's of the demo, those of docs/results.md of one figure.

Run it as `make demo && python docs/picture.py demo/report.html docs/images/report.png`, or for a figure as
`python examples/leak_study.py --page leak.html && python docs/picture.py leak.html docs/images/leak.png figure`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright


def main(page: Path, picture: Path, only: str | None = None) -> None:
    """Open the page offline in Chromium and save its first screens, or only the first of what a selector names."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1180, "height": 1560}, offline=True, device_scale_factor=1.5)
        tab = context.new_page()
        tab.goto(page.absolute().as_uri())
        tab.wait_for_selector("svg.main-svg")
        tab.wait_for_timeout(500)
        tab.screenshot(path=picture) if only is None else tab.locator(only).first.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4])
