"""The site of the documentation: built without a warning, whole, and complete in itself."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

import mfmadsl
from scripts.site.contents import sections

ROOT = Path(__file__).parent.parent
INDEX = (ROOT / "docs/index.md").read_text()
pytestmark = pytest.mark.xdist_group("site")


class Page(HTMLParser):
    """What a page refers to, what it takes along, and what others can refer to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") not in ("index", "search", "next", "prev"):
            self.resources.append(given["href"])
        self.resources += [given["src"]] if "src" in given else []
        if tag == "meta" and given.get("http-equiv") == "refresh":
            self.links.append(given["content"].partition("url=")[2])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made by the command of `make docs` where no network can be reached."""
    folder = tmp_path_factory.mktemp("site").resolve()
    (line,) = re.findall(r"python (-m sphinx .*)", (ROOT / "Makefile").read_text())
    assert {"-W", "--keep-going"} <= set(shlex.split(line))
    command = [sys.executable, *shlex.split(line.replace("docs/_build/html", str(folder)))]
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **nowhere}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def local(page: Path, reference: str) -> tuple[Path, str] | None:
    """The file and the anchor of a reference that leads to the site itself."""
    if urlsplit(reference).scheme or reference.startswith("//"):
        return None
    target, anchor = urldefrag(reference)
    target = target.partition("?")[0]
    path = (page.parent / unquote(target)).resolve() if target else page
    return path, unquote(anchor)


def test_every_page_of_docs_is_in_the_table_of_contents() -> None:
    told = [path for entries in sections(INDEX).values() for _, path in entries]
    assert len(told) == len(set(told))
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    missing = pages - set(told)
    assert not missing, f"docs/index.md wants a line for each of {sorted(missing)}"


def test_every_link_and_anchor_is_there(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for reference in page.links:
            found = local(path, reference)
            if found is not None:
                file, anchor = found
                assert file.exists(), f"{path.name}: {reference}"
                if anchor and file in pages:
                    assert anchor in pages[file].ids, f"{path.name}: {reference}"


def test_every_page_is_reached_from_the_first(site: Path, pages: dict[Path, Page]) -> None:
    def reached(start: Path) -> Iterator[Path]:
        left, seen = [start], set()
        while left:
            path = left.pop()
            if path in pages and path not in seen:
                seen.add(path)
                yield path
                left += [each[0] for link in pages[path].links if (each := local(path, link))]

    found = set(reached(site / "index.html"))
    assert set(pages) - found == {site / "search.html"}  # which the form of the search leads to
    assert len(found) > 25


def test_nothing_is_taken_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for reference in page.resources:
            found = local(path, reference)
            assert found is not None or reference.startswith("data:"), f"{path.name}: {reference}"
            assert found is None or found[0].exists(), f"{path.name}: {reference}"
    for path in site.rglob("*.css"):
        text = path.read_text()
        assert not re.search(r"url\(\s*['\"]?(?:https?:)?//|@import", text), path


def test_the_search_has_its_index_beside_it(site: Path) -> None:
    index = (site / "searchindex.js").read_text()
    assert '"accumul"' in index or '"accumulator"' in index
    assert 'src="searchindex.js"' in (site / "search.html").read_text()


def test_the_page_of_python_has_every_public_name(site: Path, pages: dict[Path, Page]) -> None:
    ids = pages[site / "docs/api.html"].ids
    named = {n for n in mfmadsl.__all__ if not inspect.ismodule(getattr(mfmadsl, n))}
    missing = {name for name in named if f"mfmadsl.{name}" not in ids}
    assert not missing, f"docs/api.md wants a line for each of {sorted(missing)}"
    assert "module-mfmadsl.relax" in ids


def test_pieces_of_the_language_have_colours(site: Path) -> None:
    page = (site / "docs/language.html").read_text()
    assert re.search(r'highlight-mfma.*?<span class="k">intrinsic</span>', page, re.DOTALL)
