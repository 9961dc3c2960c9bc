"""A kernel's page in Chromium: what only a browser can tell of it."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import run
from tests.report.explorer.test_browser import ARGUMENTS, CHROMIUM, pytestmark, sync_api

__all__ = ["pytestmark"]


def test_rows_of_code_are_one_line_high_and_the_loop_is_in_sight(tmp_path: Path) -> None:
    sizes = ["-m", 64, "-n", 64, "-k", 2048, "--tiling", "split_k=1"]
    run("gemm", "--arch", "gfx942", *sizes, "--report", tmp_path / "p.html")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(f"{(tmp_path / 'p.html').as_uri()}#loop-A")
        heights = page.evaluate(
            "[...document.querySelectorAll('.code tbody tr')].map(e => e.offsetHeight)"
        )
        top, below = page.evaluate(
            "[document.getElementById('loop-A').getBoundingClientRect().top,"
            " document.querySelector('.code thead th').getBoundingClientRect().bottom]"
        )
        page.set_viewport_size({"width": 480, "height": 900})
        wide = page.evaluate("document.documentElement.scrollWidth")
        page.goto(f"{(tmp_path / 'p.html').as_uri()}?narrow#loop-A")
        header = page.evaluate("document.querySelector('.code thead').offsetHeight")
        top_narrow, below_narrow = page.evaluate(
            "[document.getElementById('loop-A').getBoundingClientRect().top,"
            " document.querySelector('.code thead th').getBoundingClientRect().bottom]"
        )
        browser.close()
    assert max(heights) < 24, "pixels: letters of 12, and what is between lines"
    assert top >= below
    assert wide <= 480
    assert header < 30, "pixels: its words stay in one piece"
    assert top_narrow >= below_narrow
