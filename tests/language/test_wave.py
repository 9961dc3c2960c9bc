"""Entries for chips with waves of another size: model, language and layouts of an invented one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mfmadsl.codegen import module_text
from mfmadsl.language import load_source
from mfmadsl.language.diagnostic import Source
from mfmadsl.language.library import library
from mfmadsl.model import (
    ARCHITECTURES,
    CDNA,
    BitMatrix,
    Intrinsic,
    Layout,
    lane_sources,
    packed,
    source_lane,
)
from mfmadsl.report.layout import layout_json
from mfmadsl.report.picture import element_grids, grid_text
from tests.cli.command import run
from tests.language.entries import diagnostics, only

INVENTED = """\
/// A lane holds eight consecutive k of a row of A or a column of B; both halves of K, two groups.
layout half_wave(x, k) {
  lane     = x + X * (k / 8)
  register = k % 8
}

/// A lane holds every second row of a column.
layout rows(i, j) {
  lane     = j + J * (i % 2)
  register = i / 2
}

/// Invented, in waves of 32.
intrinsic wmma_f32_16x16x16_f16 {
  shape   m=16 n=16 k=16
  a       float16[i, k]  at  half_wave(i, k)
  b       float16[k, j]  at  half_wave(j, k)
  c       float32[i, j]  at  rows(i, j)
  call    "llvm.amdgcn.wmma.invented" unknown
  cycles  invented32=16
}
"""
OF_64 = """\
layout of_64(x, k) {
  lane     = x + X * (k / 4)
  register = k % 4
}

"""


@pytest.fixture(autouse=True)
def _chip(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chip with waves of 32 lanes, each of which has 256 registers, stands beside the others."""
    invented = replace(CDNA, name="invented32", family="invented", wave_size=32, registers=256)
    monkeypatch.setitem(ARCHITECTURES, "invented32", invented)


@pytest.fixture
def intrinsic() -> Intrinsic:
    (found,) = load_source(Source("invented.mfma", INVENTED))
    assert isinstance(found, Intrinsic)
    return found


def spoiled(old: str, new: str) -> str:
    assert INVENTED.count(old) == 1, old
    return INVENTED.replace(old, new)


def mistakes(text: str) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in diagnostics(text)]


def test_operands_lie_in_the_lanes_of_its_wave(intrinsic: Intrinsic) -> None:
    assert (intrinsic.wave_size, intrinsic.chips) == (32, ("invented32",))
    held = {
        name: (operand.layout.lanes, operand.layout.elements_per_lane, operand.register_count)
        for name, operand in intrinsic.operands.items()
    }
    assert held == {"a": (32, 8, 4), "b": (32, 8, 4), "c": (32, 8, 8)}
    assert intrinsic.a.location(3, 13) == (19, 2, 16, 31)
    assert intrinsic.c.location(5, 2) == (18, 2, 0, 31)


def test_the_inverse_after_the_map_is_the_identity(intrinsic: Intrinsic) -> None:
    for operand in intrinsic.operands.values():
        layout = operand.layout
        slots = set()
        for row in range(layout.rows):
            for column in range(layout.columns):
                slot = layout.slot(row, column)
                assert layout.element(*slot) == (0, row, column)
                assert inverse(layout, *slot) == (row, column)
                slots.add(slot)
        assert slots == {(lane, r) for lane in range(32) for r in range(8)}
        assert isinstance(layout.matrix, BitMatrix)
        assert layout.matrix.inverse() @ layout.matrix == layout.matrix @ layout.matrix.inverse()


def inverse(layout: Layout, lane: int, register: int) -> tuple[int, int]:
    """By the closed forms of the inverse map, as generated modules have them."""
    place = {"lane": lane, "register": register}
    _, row, column = layout.inverse("lane", "register")
    return tuple(
        form.constant + sum(d.value(place[d.variable]) for d in form.digits)
        for form in (row, column)
    )  # type: ignore[return-value]


def test_layouts_are_shown_with_its_lanes(intrinsic: Intrinsic) -> None:
    shown = layout_json(intrinsic, intrinsic.a)
    assert shown["wave"] == 32
    assert {e["lane"] for e in shown["elements"]} == set(range(32))
    first, last = (grid_text(element_grids(intrinsic.c)[0]).splitlines()[line] for line in (2, -1))
    assert first.split()[:3] == ["0", "|", "0:0"]
    assert last.split()[-1] == "31:7"


def test_the_command_line_checks_and_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.mfma").write_text(INVENTED)
    monkeypatch.chdir(tmp_path)
    assert run("check", "own.mfma").exit_code == 0
    shown = run("show", "wmma_f32_16x16x16_f16", "--spec", "own.mfma", "--operand", "b",
                "--format", "json")  # fmt: skip
    assert json.loads(shown.output)["wave"] == 32


def test_a_layout_of_other_waves_is_refused() -> None:
    text = OF_64 + spoiled("float16[i, k]  at  half_wave(i, k)", "float16[i, k]  at  of_64(i, k)")
    found = only(text)
    assert found.code == "lane"
    assert found.message == "A[0,8] falls on lane 32, but a wave has lanes 0 to 31"


def test_a_register_of_other_waves_is_refused() -> None:
    found = only(spoiled("i / 2", "i"))
    assert found.code == "register"
    assert found.message == (
        "C[8,0] falls on register 8, but 32 lanes hold the operand in registers 0 to 7"
    )


def test_elements_fill_its_lanes() -> None:
    text = INVENTED.replace("m=16 n=16 k=16", "m=3 n=16 k=16").replace("16x16x16", "3x16x16")
    assert ("lanes", "3x16 elements of A do not fill 32 lanes evenly") in mistakes(text)


def test_a_lane_has_the_registers_of_its_chip() -> None:
    text = INVENTED.replace("m=16 n=16 k=16", "m=128 n=128 k=16").replace("16x16x16", "128x128x16")
    assert ("registers", "a lane would hold 512 elements of C, more than 256") in mistakes(text)
    half = text.replace("n=128", "n=64").replace("128x128", "128x64")
    assert not any("more than 256" in message for _, message in mistakes(half))


def test_a_lane_has_the_registers_that_all_of_its_chips_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    larger = replace(ARCHITECTURES["invented32"], name="larger32", registers=512)
    monkeypatch.setitem(ARCHITECTURES, "larger32", larger)
    text = INVENTED.replace("m=16 n=16 k=16", "m=128 n=128 k=16").replace("16x16x16", "128x128x16")
    both = text.replace("cycles  ", "cycles  larger32=16 ")
    assert ("registers", "a lane would hold 512 elements of C, more than 256") in mistakes(both)


def test_chips_of_one_entry_have_waves_of_one_size() -> None:
    found = only(spoiled("cycles  invented32=16", "cycles  invented32=16 gfx942=16 gfx950=8"))
    assert found.code == "wave"
    assert found.message == "`gfx942` has waves of 64 lanes, but `invented32` of 32"
    assert found.hint == "a layout is of one size of waves: write an entry for each"


def test_groups_of_a_read_are_groups_of_its_wave() -> None:
    text = """
read exchanging {
  shape         bits=16 lanes=64 registers=4
  from_lane     lane
  from_element  register
  call          "llvm.amdgcn.ds.read.tr16.b64.v4i16"
  chips         invented32
}
"""
    assert ("shape", "lanes=64 is none of 2, 4, 8, 16 or 32") in mistakes(text)


def test_a_module_names_its_lanes(intrinsic: Intrinsic) -> None:
    text = module_text(intrinsic)
    assert "One wave of 32 lanes runs it" in text
    assert "T.launch_thread(lane, 32)" in text
    assert "64" not in text


def test_a_deeper_tile_has_its_lanes(intrinsic: Intrinsic) -> None:
    tile = packed(intrinsic, 2)
    assert (tile.a.layout.lanes, tile.k) == (32, 32)


@pytest.mark.parametrize("lanes", [32, 64])
def test_blgp_takes_halves_and_quarters(lanes: int) -> None:
    half, quarter = lanes // 2, lanes // 4
    for lane in range(lanes):
        assert [source_lane(lane, blgp, lanes) for blgp in range(8)] == [
            lane, lane % half, half + lane % half, (lane + quarter) % lanes,
            *(lane % quarter + n * quarter for n in range(4)),
        ]  # fmt: skip
        for source in lane_sources(lanes):
            assert eval(str(source), {"lane": lane}) == source.of(lane)


def test_the_library_is_of_waves_of_64() -> None:
    described = [i for i in library().values() if isinstance(i, Intrinsic)]
    assert {i.wave_size for i in described} == {64}
