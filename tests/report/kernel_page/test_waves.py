"""The picture of a kernel in time: what it shows, and that it says where it ends."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from mfmadsl.emulator.profiler import Profile, profile
from mfmadsl.report.kernel_page.waves import waves_svg
from tests.emulator.waves import kernel
from tests.report.kernel_page.test_listing import LOOP

SVG = "{http://www.w3.org/2000/svg}"


def drawn(found: Profile) -> tuple[ElementTree.Element, list[tuple[float, float, float, str]]]:
    """The picture, and of each bar its left and right end, its row, and what it says."""
    root = ElementTree.fromstring(waves_svg(found))
    bars = []
    for box in root.iter(f"{SVG}rect"):
        x, y, width = (float(box.get(each, "")) for each in ("x", "y", "width"))
        bars.append((x, x + width, y, box.findtext(f"{SVG}title", "")))
    return root, bars


def test_two_turns_of_the_loop_are_seen() -> None:
    root, bars = drawn(profile(LOOP, [np.zeros(64, np.uint32)], (1,), (64,)))
    wave = max(y for _, _, y, _ in bars)
    reads = [tip for *_, y, tip in bars if y == wave and "ds_read" in tip]
    assert len(reads) == 2
    rows = {tip.split(": ")[1].split()[0]: y for *_, y, tip in bars if y != wave}
    assert len({rows["ds_write_b32"], rows["s_sub_u32"]}) == 2, "units have rows of their own"
    right = float(root.get("viewBox", "").split()[2])
    assert all(96 <= left < end <= right + 1 for left, end, *_ in bars)


def test_a_loop_of_two_turns_is_seen_with_what_is_around_it() -> None:
    short = LOOP.replace("s_mov_b32 s6, 6", "s_mov_b32 s6, 2")
    found = profile(short, [np.zeros(64, np.uint32)], (1,), (64,))
    assert found.loop is not None
    tips = [tip for *_, tip in drawn(found)[1]]
    for told in ("s_mov_b32 s6, 2", "ds_read_b32", "global_store_dword"):
        assert any(told in tip for tip in tips), told


def test_a_long_kernel_is_cut_where_the_axis_says() -> None:
    text = kernel("	v_add_u32_e32 v3, v0, v0\n" * 4000)
    found = profile(text, [np.zeros(1, np.uint32)], (1,), (256,))
    root, bars = drawn(found)
    assert max(end for _, end, *_ in bars) > 1080, "what is drawn fills the picture"
    last = [each.text or "" for each in root.iter(f"{SVG}text")][-1]
    assert last.startswith("cycle ")
    assert int(last.split()[1]) < found.timing.cycles


def test_what_a_line_says_is_escaped() -> None:
    text = kernel("	v_mov_b32_e32 v3, v0 ; <b>&")
    assert "<b>" not in waves_svg(profile(text, [np.zeros(1, np.uint32)], (1,), (64,)))
