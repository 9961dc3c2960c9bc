"""How large the explorer's page is, and how long Chromium takes until it can be used.

    python benchmarks/explorer.py

Needs Chromium and the Python package playwright. The time is the browser's own, from the start of
the navigation until everything is drawn: the median of several openings.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

RUNS = 7
_DRAWN = (
    "new Promise((done) => requestAnimationFrame(() =>"
    " setTimeout(() => done(performance.now()), 0)))"
)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit("there is no playwright: pip install '.[test]'")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("there is no Chromium: apt install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder, "page.html")
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mfmadsl", "explore", "-o", str(path)], check=True)
        written = time.perf_counter() - start
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        opened = []
        for _ in range(RUNS):
            page = browser.new_page()
            page.goto(path.as_uri())
            opened.append(page.evaluate(_DRAWN) / 1e3)
            page.close()
        browser.close()
        print("| the page | |\n| --- | --- |")
        print(f"| megabytes | {path.stat().st_size / 1e6:.2f} |")
        print(f"| seconds to write it | {written:.1f} |")
        print(f"| seconds until it is drawn | {median(opened):.2f} |")


if __name__ == "__main__":
    main()
