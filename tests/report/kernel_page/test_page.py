"""The pages of `profile --report`, `sanitize --report` and `gemm --report`."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.cli.command import SMALL, run
from tests.emulator.waves import kernel

RACE = kernel(
    """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_xor_b32_e32 v2, 0x100, v1
	ds_write_b32 v1, v0 ; <script>
	s_waitcnt lgkmcnt(0)
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v5, 0
	ds_read_b32 v3, v2
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[4:5]""",
    lds=512,
)
LAUNCH = ("--grid", "1", "--block", "128", "--arg", "uint32[128]=0")


class Structure(HTMLParser):
    """Tags that are open, and what any of them would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.fetched += [
            str(value)
            for name, value in attributes
            if name in ("src", "href") and not str(value).startswith("#")
        ]


def checked(path: Path) -> str:
    """The text of a page, which fetches nothing and runs nothing."""
    text = path.read_text()
    structure = Structure()
    structure.feed(text)
    assert structure.fetched == []
    assert structure.scripts == 0
    assert not re.search(r"@import|url\(", text)
    return text


@pytest.fixture
def race(tmp_path: Path) -> Path:
    path = tmp_path / "race.s"
    path.write_text(RACE)
    return path


def test_a_profile_says_all_in_one_page(race: Path, tmp_path: Path) -> None:
    done = run("profile", race, *LAUNCH, "--report", tmp_path / "p.html")
    assert done.exit_code == 0
    assert done.stdout.startswith("kernel ")
    text = checked(tmp_path / "p.html")
    for title in ("The figures", "What limits it", "The roofline", "In time", "The machine code"):
        assert f"<h2>{title}</h2>" in text
    assert "There are no matrix instructions." in text
    assert "1 x 1 x 1 workgroups of 128 x 1 x 1 threads" in text
    assert "MI300X (gfx942): 8 dies with 304 compute units in all" in text
    assert "ds_write_b32 v1, v0 ; &lt;script&gt;" in text


def test_two_kernels_are_put_side_by_side(tmp_path: Path) -> None:
    small, swizzled = tmp_path / "small", tmp_path / "plain"
    run(*SMALL, "--emit", "asm", "--emit", "json", "-o", small)
    run(*SMALL, "--tiling", "swizzle=no", "--emit", "asm", "--emit", "json", "-o", swizzled)
    done = run(
        "profile", f"{small}.json", "--against", f"{swizzled}.json", "--report",
        tmp_path / "p.html",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    text = checked(tmp_path / "p.html")
    assert text.count('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1100') == 2
    assert text.count("<circle") == 2 * len(("HBM", "MALL", "L2"))
    assert "modelled" in text
    assert "B / A" in text
    assert re.search(r"<th>launches<td[^>]*>1<td[^>]*>1<td[^>]*>1\.00", text)
    assert text.count("<th>tile<td>") == 2
    assert text.count(", without a swizzle") == 1, "of the second one alone"
    assert "<th>chosen<td>the fastest by the formula" in text
    assert "<th>chosen<td>as asked for" in text


@pytest.mark.parametrize(
    "wrong",
    [{"tiling": []}, {"tiling": {}}, {"tiling": {"block": [0, 1]}}, {"remarks": 1}],
)
def test_json_with_another_tiling_is_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    run(*SMALL, "--emit", "asm", "--emit", "json", "-o", tmp_path / "k")
    path = tmp_path / "k.json"
    facts = json.loads(path.read_text())
    without = {name: value for name, value in facts.items() if name not in ("tiling", "remarks")}
    path.write_text(json.dumps(without))
    assert run("profile", path).exit_code == 0, "an older one says neither"
    if isinstance(tiling := wrong.get("tiling"), dict) and tiling:
        wrong = {"tiling": {**facts["tiling"], **tiling}}
    path.write_text(json.dumps({**facts, **wrong}))
    done = run("profile", path)
    assert done.exit_code == 1
    assert "is not what `mfmadsl gemm --emit json` writes" in done.stderr


def test_against_an_assembly_text_the_launch_is_the_same(race: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.s"
    other.write_text(RACE.replace("	v_mov_b32_e32 v4, 0\n", "	s_barrier\n"))
    done = run("profile", race, *LAUNCH, "--against", other, "--report", tmp_path / "p.html")
    assert done.exit_code == 0, done.stderr
    assert "s_barrier" in checked(tmp_path / "p.html")


def test_each_fault_is_at_its_line_with_what_it_collides_with(race: Path, tmp_path: Path) -> None:
    done = run("sanitize", race, *LAUNCH, "--report", tmp_path / "f.html")
    assert done.exit_code == 1
    text = checked(tmp_path / "f.html")
    lines = RACE.splitlines()
    read = 1 + next(i for i, line in enumerate(lines) if "ds_read" in line)
    write = 1 + next(i for i, line in enumerate(lines) if "ds_write" in line)
    assert f"</span> in line {read}" in text
    assert re.search(rf'class="fault"><td class="number">{read}<td>\s*ds_read_b32 v3, v2', text)
    assert re.search(rf'class="earlier"><td class="number">{write}<td>\s*ds_write_b32 v1', text)
    assert "wave 1, before" in text
    assert text.count('<div class="code">') == 1, "their surroundings meet"


def test_without_a_fault_the_page_says_so(race: Path, tmp_path: Path) -> None:
    race.write_text(RACE.replace("	v_mov_b32_e32 v4, 0\n", "	s_barrier\n"))
    done = run("sanitize", race, *LAUNCH, "--report", tmp_path / "f.html")
    assert done.exit_code == 0
    assert "2 waves, no faults." in checked(tmp_path / "f.html")


def test_a_gemm_tells_its_tile(tmp_path: Path) -> None:
    done = run(
        *SMALL,
        "--report",
        tmp_path / "g.html",
        "--emulate",
        "--tiling",
        "block=32x16",
        "--tiling",
        "waves=1x1",
    )
    assert done.exit_code == 0, done.stderr
    text = checked(tmp_path / "g.html")
    assert "<th>tile<td>32 x 16 of C by " in text
    assert "<th>instruction<td>mfma_f32_16x16x16_f16" in text
    assert "agrees with NumPy in float64" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--against", "x.s"], 2, "--against needs --report FILE"),
        (["--against", "x.s", "--report", "p.html"], 1, "x.s"),
        (["--report", "/"], 2, "/"),
    ],
)
def test_what_cannot_be_reported_is_refused(
    race: Path, arguments: list[str], code: int, message: str
) -> None:
    done = run("profile", race, *LAUNCH, *arguments)
    assert (done.exit_code, message in done.stderr) == (code, True), done.stderr


def test_the_figures_of_two_are_their_own_and_their_ratio(tmp_path: Path) -> None:
    """B / A; from L2 is not from HBM; the LDS is that of all workgroups of a compute unit."""
    for name, k in (("short", 32), ("long", 64)):
        run(
            "gemm", "--arch", "gfx942", "-m", "256", "-n", "256", "-k", k, "--trans-b", "--tiling",
            "block=64x64", "--emit", "asm", "--emit", "json", "-o", tmp_path / name,
        )  # fmt: skip
    for first, second in (("short", "long"), ("long", "short")):
        run("profile", tmp_path / f"{first}.json", "--against", tmp_path / f"{second}.json",
            "--report", tmp_path / "p.html")  # fmt: skip
        text = checked(tmp_path / "p.html")
        rows = dict(re.findall(r"<th>([^<]+)<td class=\"number\">(.*?)\n", text))
        for name, row in rows.items():
            a, b, *ratio = re.findall(r"[\d.,]+", row)
            if ratio and float(a.replace(",", "")) >= 10:
                found = float(b.replace(",", "")) / float(a.replace(",", ""))
                assert float(ratio[0]) == pytest.approx(found, abs=0.01), name
        assert rows["from L2, MB"] != rows["from HBM, MB"]
    told = json.loads(run("profile", tmp_path / "long.json", "--format", "json").stdout)
    used = told["lds_bytes"] * told["occupancy"]["workgroups"]
    assert f"{used:,} of 65,536 bytes a compute unit" in text


def test_kernels_of_two_chips_have_two_roofs(tmp_path: Path) -> None:
    for arch in ("gfx942", "gfx90a"):
        run("gemm", "--arch", arch, "-m", "32", "-n", "32", "-k", "32", "--emit", "asm", "--emit",
            "json", "-o", tmp_path / arch)  # fmt: skip
    run("profile", tmp_path / "gfx942.json", "--against", tmp_path / "gfx90a.json", "--report",
        tmp_path / "p.html")  # fmt: skip
    text = checked(tmp_path / "p.html")
    assert text.count('class="roofline"') == 2
    assert "matrix cores 1,307 TFLOP/s" in text
    assert "matrix cores 191 TFLOP/s" in text


def test_a_comment_of_slashes_hides_no_line(race: Path, tmp_path: Path) -> None:
    race.write_text(RACE.replace("ds_read_b32 v3, v2", "ds_read_b32 v3, v2 // here"))
    run("sanitize", race, *LAUNCH, "--report", tmp_path / "f.html")
    assert 'class="fault"' in checked(tmp_path / "f.html")
