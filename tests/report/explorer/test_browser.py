"""The explorer in Chromium, by pointer and keys; its layouts are those of Python."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mfmadsl.export import FORMATS
from mfmadsl.language import library, load, microkernels
from mfmadsl.model import Modifiers
from mfmadsl.report.layout import layout_json
from mfmadsl.report.microkernel import vectors_json
from mfmadsl.report.picture.operand import element_grids, register_grids
from tests.cases import SEED
from tests.cli.command import run, spec

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
# A package of the system, which only root can install: `make test` does so, or says that it cannot.
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt install chromium"),
    pytest.mark.xdist_group("browser"),
]
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
HALF = "mfma_f32_16x16x16_f16"
SMALL = "mfma_f32_4x4x4_16b_f16"
CLIPBOARD = """
if (navigator.clipboard) navigator.clipboard.writeText = async (text) => { window.copied = text };
"""
Page = Any


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    assert run("explore", "-o", path).exit_code == 0
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Page]:
    """A page that must neither complain nor ask anybody for anything."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    made = context.new_page()
    problems: list[str] = []
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.on("console", lambda message: problems.append(message.text))
    made.on("request", lambda request: requests.append(request.url))
    requests: list[str] = []
    made.add_init_script(CLIPBOARD)
    made.goto(address)
    yield made
    assert problems == []
    assert all(url.startswith(("file:", "about:")) for url in requests)
    context.close()


def at(page: Page, address: str, **state: object) -> None:
    """Go where the address says."""
    page.goto("about:blank")
    page.goto(f"{address}#" + "&".join(f"{key}={value}" for key, value in state.items()))


def labels(page: Page) -> list[list[list[str]]]:
    """The texts of the cells of the first pane, by table and row."""
    found: list[list[list[str]]] = page.evaluate(
        "[...document.querySelector('.pane').querySelectorAll('.grid table')].map(t =>"
        " [...t.tBodies[0].rows].map(r => [...r.cells].slice(1).map(c => c.textContent)))"
    )
    return found


def modifiers_of(name: str) -> list[Modifiers]:
    intrinsic = library()[name]
    found = [Modifiers()]
    if "cbsz_abid" in intrinsic.modifiers and not intrinsic.sparse:
        found.append(Modifiers(cbsz=1, abid=1))
    if "cbsz_abid" in intrinsic.modifiers and intrinsic.sparse:
        found.append(Modifiers(abid=1))
    if "blgp" in intrinsic.modifiers:
        found += [Modifiers(blgp=blgp) for blgp in range(1, 8)]
    return found


@pytest.mark.thorough
def test_every_layout_is_pythons(page: Page) -> None:
    """All instructions, all operands, under all kinds of modifiers, element by element."""
    told = (
        "([name, operand, modifiers]) => { const entry = ENTRIES.get(name);"
        " return JSON.stringify(layoutJson(entry,"
        " entry.operands.find((o) => o.name === operand), modifiers)) }"
    )
    for name, intrinsic in library().items():
        for modifiers in modifiers_of(name)[:: 1 if name == HALF else 3]:
            for operand in intrinsic.operands.values():
                found = page.evaluate(told, [name, operand.name, vars(modifiers)])
                assert json.loads(found) == layout_json(intrinsic, operand, modifiers), name
    for name, kernel in microkernels().items():
        for vectors in kernel.operands.values():
            found = page.evaluate(told, [name, vectors.name, vars(Modifiers())])
            assert json.loads(found) == vectors_json(kernel, vectors), name


@pytest.mark.parametrize(
    ("name", "operand", "modifiers"),
    [
        (HALF, "b", Modifiers(blgp=3)),
        (SMALL, "a", Modifiers(cbsz=2, abid=3)),
        (SMALL, "a", Modifiers(cbsz=4, abid=15)),
        ("smfmac_i32_16x16x64_i8", "index", Modifiers(abid=1)),
        ("smfmac_f32_16x16x32_f16", "index", Modifiers(abid=2)),
        ("mfma_f64_16x16x4_f64", "c", Modifiers()),
        ("mfma_scale_f32_32x32x64_f8f6f4_fp6_fp4", "a", Modifiers()),
    ],
)
def test_cells_say_what_the_pictures_say(
    page: Page, address: str, name: str, operand: str, modifiers: Modifiers
) -> None:
    described = library()[name].operand(operand)
    for view, draw in (("elements", element_grids), ("lanes", register_grids)):
        at(page, address, entry=name, operand=operand, view=view, **vars(modifiers))
        grids = draw(described, modifiers)
        assert labels(page) == [[[c.label for c in row] for row in g.cells] for g in grids]


@pytest.mark.parametrize("name", [HALF, "mfma_f32_32x32x8_f16"])
def test_colours_by_register_are_those_of_the_pictures(page: Page, address: str, name: str) -> None:
    at(page, address, entry=name, operand="c", colour="register")
    hues = page.evaluate(
        "[...document.querySelectorAll('.grid td')].map(c => c.style.getPropertyValue('--hue'))"
    )
    (grid,) = element_grids(library()[name].c, shading="register")
    shades = [cell.shade or 0 for row in grid.cells for cell in row]
    assert [float(hue) for hue in hues] == [
        pytest.approx(306 * shade / grid.shades) for shade in shades
    ]


@pytest.mark.parametrize(
    ("name", "count"), [("smfmac_f32_16x16x32_f16", 4), ("smfmac_i32_16x16x64_i8", 2)]
)
def test_a_sparse_one_offers_the_sets_that_its_index_has(
    page: Page, address: str, name: str, count: int
) -> None:
    """CDNA3 ISA, section 7.1.5: indices of 16 bits are of two sets, of eight bits of four."""
    at(page, address, entry=name)
    assert page.locator("[data-modifier=abid] option").count() == count


def test_the_pointer_on_an_element_tells_its_place_and_its_lane(page: Page, address: str) -> None:
    at(page, address, entry=HALF)
    page.locator("td", has_text=re.compile(r"^19:0\[16:31\]$")).hover()
    told = page.locator(".told").inner_text()
    assert told.startswith("A[3, 5]: lane 19, register 0, bits 16 to 31")
    assert told.endswith("lane 19 holds A[3, 4], A[3, 5], A[3, 6], A[3, 7]")
    assert page.locator("td.same").all_inner_texts() == [
        "19:0[0:15]", "19:0[16:31]", "19:1[0:15]", "19:1[16:31]",
    ]  # fmt: skip
    page.locator("#search").hover()
    assert page.locator(".told").inner_text() == ""


def test_the_pointer_on_a_lane_tells_its_elements(page: Page, address: str) -> None:
    at(page, address, entry=HALF, operand="c", view="lanes")
    page.locator("tbody th").nth(17).hover()
    told = page.locator(".told").inner_text()
    assert told == "lane 17 holds C[4, 1], C[5, 1], C[6, 1], C[7, 1]"
    assert page.locator("td.same").count() == 4


@pytest.mark.parametrize(
    ("words", "some", "every"),
    [
        ("16x16x16 f16", HALF, "16x16x16"),
        ("smfmac gfx950", "smfmac_f32_16x16x64_f16", "smfmac"),
        ("scale float4", "mfma_scale_f32_16x16x128_f8f6f4_fp4_fp4", "mfma_scale"),
        ("vpdpbusd", "vnni_u8i8_4x16", "vnni"),
    ],
)
def test_the_search_goes_by_shape_type_chip_and_call(
    page: Page, words: str, some: str, every: str
) -> None:
    page.keyboard.press("/")
    page.keyboard.type(words)
    names = page.locator("#list b").all_inner_texts()
    assert some in names
    assert all(every in name for name in names)
    assert page.locator("#count").inner_text().startswith(f"{len(names)} ")


def test_a_word_begins_one_of_an_entrys(page: Page) -> None:
    """f16 is no bf16; a product is found by its name; Enter chooses the first."""
    page.locator("#search").fill("16x16x16 f16 mi300x")
    names = page.locator("#list b").all_inner_texts()
    assert HALF in names
    assert not any("bf16" in name for name in names)
    page.keyboard.press("Enter")
    assert page.locator("main h2").inner_text() == names[0]
    page.locator("#search").fill("v_mfma_f32_16x16x16f16")
    assert page.locator("#list b").all_inner_texts() == [HALF]


def test_the_search_finds_what_show_finds_by_any_name(page: Page) -> None:
    """Names as the manual, LLVM, Clang and our kernels print them, of the whole library."""
    asked = [
        name
        for each in library().values()
        for printed in (*each.spellings, *each.mnemonics)
        for name in (printed, f"v_{printed}".upper(), f"__builtin_amdgcn_{printed}", each.call)
    ]
    asked.append("llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.v8i32.v8i32")
    told = (
        "names => names.map(name => { state = { ...state, search: name };"
        " return wanted().map((each) => each.name) })"
    )
    for name, found in zip(asked, page.evaluate(told, asked), strict=True):
        called = {each.name for each in library().values() if each.is_called(name)}
        assert called <= set(found), name


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("V_MFMA_F32_16X16X16_F16", 1),
        ("__builtin_amdgcn_mfma_f32_16x16x16f16", 1),
        ("v_mfma_f32_16x16x128_f8f6f4", 25),
    ],
)
def test_a_link_to_a_name_of_the_manual_finds_it(
    page: Page, address: str, name: str, found: int
) -> None:
    at(page, address, search=name)
    assert page.locator("#list b").count() == found


def test_back_leads_to_the_entry_before(page: Page, address: str) -> None:
    at(page, address, entry=HALF)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("v")
    page.go_back()
    assert page.locator("main h2").inner_text() == HALF


def test_a_chip_leaves_what_it_has(page: Page) -> None:
    page.locator("#chips button", has_text="gfx908").click()
    names = page.locator("#list b").all_inner_texts()
    assert names == [each.name for each in library().values() if "gfx908" in each.chips]
    page.locator("#chips button", has_text="CPU").click()
    assert page.locator("#list b").all_inner_texts() == list(microkernels())


def test_nothing_is_found_and_said_so(page: Page) -> None:
    page.locator("#search").fill("no such thing")
    assert page.locator("#list li").count() == 0
    assert page.locator("#count").inner_text() == "0 entries"
    page.keyboard.press("ArrowDown")


def test_keys_choose_everything(page: Page, address: str) -> None:
    at(page, address, entry=HALF)
    names = page.locator("#list b").all_inner_texts()
    page.keyboard.press("ArrowDown")
    assert page.locator("main h2").inner_text() == names[names.index(HALF) + 1]
    page.keyboard.press("ArrowUp")
    assert page.locator("main h2").inner_text() == HALF
    page.keyboard.press("3")
    page.keyboard.press("v")
    page.keyboard.press("c")
    chosen = page.locator(".controls button[aria-pressed=true]").all_inner_texts()
    assert chosen == ["c", "lanes", "by register", "to the window"]
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    assert page.evaluate("document.activeElement.textContent") == "Close"
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()


def test_who_types_before_the_page_is_whole_keeps_the_search(page: Page) -> None:
    """Nothing else asks for the focus while the page loads: Chromium would complain."""
    page.add_init_script("""
        const early = new MutationObserver(() => document.getElementById("search")?.focus());
        early.observe(document, { childList: true, subtree: true });
    """)
    page.reload()
    page.keyboard.type("smfmac")
    assert page.locator("#search").input_value() == "smfmac"


def test_a_table_is_walked_by_keys(page: Page, address: str) -> None:
    at(page, address, entry=HALF)
    page.locator("td[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert page.locator(".told b").inner_text().startswith("A[1, 2]: lane 1,")
    page.keyboard.press("Enter")
    assert "held=" in page.url
    page.locator("#search").hover()
    assert page.locator(".told b").inner_text().startswith("A[1, 2]: lane 1,")
    page.keyboard.press("Escape")
    assert "held=" not in page.url


def test_two_are_compared(page: Page, address: str) -> None:
    at(page, address, entry=HALF, operand="c")
    page.locator(".compare").click()
    page.locator(f"#list li[data-name={SMALL}]").click()
    assert page.locator("main h2").all_inner_texts() == [HALF, SMALL]
    assert page.locator("#list li[aria-selected=true] b").all_inner_texts() == sorted(
        [HALF, SMALL], key=list(library()).index
    )
    page.keyboard.press("v")
    assert page.locator(".pane .corner").all_inner_texts() == ["lane, register"] * 2
    page.locator("button[aria-label=Close]").click()
    assert page.locator("main h2").all_inner_texts() == [HALF]


def test_facts_are_told(page: Page, address: str) -> None:
    at(page, address, entry=HALF)
    speeds = [row.split("\t") for row in page.locator(".speeds tr").all_inner_texts()[1:]]
    assert ["gfx942", "16", "2,048"] in speeds
    facts = page.locator(".facts").first.inner_text()
    assert "16 \N{MULTIPLICATION SIGN} 16" in facts
    assert "a 2, b 2, c 4" in facts
    page.locator("summary").click()
    assert '"llvm.amdgcn.mfma.f32.16x16x16f16"' in page.locator("pre").inner_text()


def test_what_is_copied_is_what_the_command_prints(page: Page, address: str) -> None:
    at(page, address, entry=SMALL, operand="a", cbsz=1, abid=1)
    page.locator("[data-copy=json]").click()
    printed = run("show", SMALL, "--format", "json", "--cbsz", "1", "--abid", "1").stdout
    assert page.evaluate("window.copied") == printed
    page.locator("[data-copy=mfma]").click()
    assert f"intrinsic {SMALL} {{" in page.evaluate("window.copied")


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "json"])
@pytest.mark.parametrize("name", [HALF, SMALL, "smfmac_f32_16x16x32_f16"])
def test_every_export_is_copied_or_refused_as_the_command_does(
    page: Page, address: str, name: str, form: str
) -> None:
    at(page, address, entry=name)
    button = page.locator(f"[data-copy={form}]")
    told = run("export", name, "--as", form)
    if told.exit_code:
        assert button.is_disabled()
        assert told.stderr == f"error: {button.get_attribute('title')}\n"
    else:
        button.click()
        assert page.evaluate("window.copied") == told.stdout


def test_a_link_keeps_what_is_seen(page: Page, browser: Any) -> None:
    page.locator("#search").fill("16x16")
    page.locator("#chips button", has_text="gfx942").click()
    page.locator(f"#list li[data-name={HALF}]").click()
    page.locator("[data-choice='operand:b']").click()
    page.locator("[data-modifier=blgp]").select_option("2")
    page.locator("[data-choice='view:lanes']").click()
    page.locator("td").nth(33).click()
    again = browser.new_page(viewport={"width": 1400, "height": 900})
    again.goto(page.url)
    for seen in ("#list", "#panes", "#count"):
        assert again.locator(seen).inner_html() == page.locator(seen).inner_html()
    again.close()


def test_dark_and_light(page: Page) -> None:
    def back() -> list[int]:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return [int(part) for part in re.findall(r"\d+", colour)[:3]]

    page.emulate_media(color_scheme="dark")
    assert max(back()) < 60
    page.keyboard.press("t")
    assert min(back()) > 200
    page.reload()
    assert min(back()) > 200, "the choice is kept"
    page.locator("#theme").click()
    assert max(back()) < 60


@pytest.mark.parametrize(
    "state",
    [
        "entry=nothing", "operand=z", "view=upside&colour=down", "cbsz=9&abid=-1&blgp=x",
        "beside=nowhere", "chip=gfx1", "held=%00%3Cscript%3E", "=&&&=&%", "toString=1&__proto__=2",
        f"entry={HALF}&cbsz=3&abid=7", f"entry={SMALL}&cbsz=5",
        "blgp=8&cbsz=99", "search=%3Cimg%20onerror=1%3E",
    ],
)  # fmt: skip
def test_an_address_that_is_wrong_shows_something_right(
    page: Page, address: str, state: str
) -> None:
    page.goto("about:blank")
    page.goto(f"{address}#{state}")
    name = page.locator("main h2").first.inner_text()
    operand = page.locator(".controls button[aria-pressed=true]").first.inner_text()
    grids = element_grids(library()[name].operand(operand))
    assert labels(page) == [[[c.label for c in row] for row in g.cells] for g in grids]


def test_a_block_that_does_not_share_is_the_first(page: Page, address: str) -> None:
    at(page, address, entry=SMALL, cbsz=1, abid=3)
    grids = element_grids(library()[SMALL].a, Modifiers(cbsz=1))
    assert labels(page) == [[[c.label for c in row] for row in g.cells] for g in grids]


@pytest.mark.thorough
def test_no_keys_in_any_order_break_it(page: Page) -> None:
    draw = random.Random(SEED)
    keys = ["ArrowDown", "ArrowUp", "v", "c", "=", "t", "?", "Escape", "Tab", "Enter", "/", "x",
            *"123456", "ArrowLeft", "ArrowRight"]  # fmt: skip
    for _ in range(150):
        page.keyboard.press(draw.choice(keys))
    assert page.locator(".pane").count() in (1, 2)
    assert page.locator("td").count() > 0


def test_a_layout_that_is_no_matrix_of_bits_is_drawn(
    page: Page, address: str, tmp_path: Path
) -> None:
    """A turn of three lanes is no xor of bits; the page has its places one by one."""
    text = (
        "layout turned(i, k) { lane = (i + 3) % 16 + k / 4 * 16 register = k % 4 }\n"
        "intrinsic odd { shape m=16 n=16 k=16\n"
        " a float16[i, k] at turned(i, k)\n b float16[k, j] at turned(j, k)\n"
        " c float32[i, j] at turned(j, i)\n"
        ' call "llvm.amdgcn.mfma.f32.16x16x16f16"\n cycles gfx942=16 }\n'
    )
    path = spec(tmp_path, text)
    (odd,) = load(path)
    assert odd.a.layout.matrix is None
    assert run("explore", path, "-o", tmp_path / "page.html").exit_code == 0
    page.goto((tmp_path / "page.html").as_uri())
    assert labels(page) == [
        [[c.label for c in row] for row in g.cells] for g in element_grids(odd.a)
    ]


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ("mfma_f32_16x16x16_f16", "smaller"),
        ("mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8", "overview"),
        ("mfma_f32_4x4x4_16b_f16", None),
    ],
)
def test_a_matrix_fits_the_window_unless_its_full_size_is_asked_for(
    page: Page, address: str, entry: str, kind: str | None
) -> None:
    at(page, address, entry=entry)
    grid = page.locator(".pane .grid")
    beyond = "e => e.scrollWidth - e.clientWidth"
    assert grid.evaluate(beyond) <= 0
    classes = grid.evaluate("e => [...e.classList]")
    assert classes == ["grid", *([kind] if kind else [])]
    if kind:
        page.click('[data-choice="size:full"]')
        assert grid.evaluate("e => [...e.classList]") == ["grid"]
        assert grid.evaluate(beyond) > 0
        assert "size=full" in page.url
