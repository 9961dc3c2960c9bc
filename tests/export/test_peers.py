"""What IREE and CK Tile say, and who is right where they say something else than the library.

The witnesses are AMD's: its calculator's tables, and the CDNA4 ISA manual (`tests/cdna4.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest

from mfmadsl import ExportError, diff_layouts
from mfmadsl.export import DIFFERENT, EQUAL, PEERS, REORDERED
from mfmadsl.export.peers import ck_name, constants, iree_name
from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic, Layout, unscaled
from tests.cdna4 import held
from tests.conftest import DATA

ENTRIES = list(library().values())
EIGHT = [i for i in ENTRIES if i.scales and i.a.type.bits == i.b.type.bits == 8]
ALL = [*ENTRIES, *map(unscaled, EIGHT)]


def said_of(peer: str, intrinsics: list[Intrinsic]) -> list[Intrinsic]:
    """Those of which the project says something."""
    found = []
    for intrinsic in intrinsics:
        try:
            PEERS[peer].layouts(intrinsic, None)
        except ExportError:
            continue
        found.append(intrinsic)
    return found


@pytest.mark.parametrize(
    ("peer", "names", "name_of"),
    [("iree", "intrinsics", iree_name), ("ck", "instructions", ck_name)],
)
def test_all_that_is_kept_of_a_project_is_of_an_entry(
    peer: str, names: str, name_of: object
) -> None:
    assert callable(name_of)
    assert {name_of(i) for i in said_of(peer, ALL)} == set(constants(peer)[names])


@pytest.mark.parametrize("peer", ["iree", "ck"])
def test_where_a_project_says_nothing_it_is_told_at_which_commit(peer: str) -> None:
    name = "mfma_scale_f32_16x16x128_f8f6f4_fp6_bf6"
    with pytest.raises(ExportError, match=rf"says nothing of {name} \(https.* at [0-9a-f]{{12}}"):
        diff_layouts(find(name), peer)


@pytest.mark.parametrize("peer", ["iree", "ck"])
def test_it_is_kept_where_the_constants_were_read(peer: str) -> None:
    told = constants(peer)
    assert told["repository"].startswith("https://github.com/")
    assert told["sources"]
    assert all(re.fullmatch(r"[0-9a-f]{40}", commit) for commit in told["sources"].values())


def scaled_eight_bits(intrinsic: Intrinsic) -> bool:
    return bool(intrinsic.scales) and 8 in (intrinsic.a.type.bits, intrinsic.b.type.bits)


@pytest.mark.parametrize("intrinsic", said_of("iree", ENTRIES), ids=lambda i: i.name)
def test_iree_differs_in_the_eight_bit_operands_of_scaled_instructions_only(
    intrinsic: Intrinsic,
) -> None:
    found = {each.operand: each.verdict for each in diff_layouts(intrinsic, "iree").operands}
    expected = dict.fromkeys(intrinsic.operands, EQUAL)
    for operand in (intrinsic.a, intrinsic.b):
        if intrinsic.scales and operand.type.bits == 8:
            expected[operand.name] = DIFFERENT
    assert found == expected


@pytest.mark.parametrize("intrinsic", said_of("ck", ENTRIES), ids=lambda i: i.name)
def test_ck_differs_in_the_same_only(intrinsic: Intrinsic) -> None:
    found = [each.verdict for each in diff_layouts(intrinsic, "ck").operands]
    wrong = DIFFERENT if scaled_eight_bits(intrinsic) else EQUAL
    assert found == [wrong, wrong, EQUAL]


@pytest.mark.parametrize("peer", ["iree", "ck"])
def test_without_scales_they_only_have_k_in_another_order(peer: str) -> None:
    plain = said_of(peer, [unscaled(i) for i in EIGHT])
    assert len(plain) == {"iree": 8, "ck": 4}[peer]
    for intrinsic in plain:
        verdicts = [each.verdict for each in diff_layouts(intrinsic, peer).operands]
        assert verdicts == [REORDERED, REORDERED, EQUAL], intrinsic.name


def k_of_row_0(layouts: Mapping[str, Layout], rows: int) -> dict[int, list[int]]:
    layout = layouts["a"]
    return {
        lane: [layout.element(lane, register)[2] for register in range(layout.elements_per_lane)]
        for lane in range(0, layout.lanes, rows)
    }


@pytest.mark.parametrize("peer", ["iree", "ck"])
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8", 16),
        ("mfma_scale_f32_32x32x64_f8f6f4_fp8_fp8", 32),
    ],
)
def test_amds_manual_is_on_our_side(peer: str, name: str, rows: int) -> None:
    intrinsic = find(name)
    manual = held("f8f6f4", rows, 8)
    assert k_of_row_0({"a": intrinsic.a.layout}, rows) == manual
    theirs = k_of_row_0(PEERS[peer].layouts(intrinsic, None), rows)
    assert theirs != manual
    assert theirs == {lane: [*range(32 * n, 32 * n + 32)] for n, lane in enumerate(manual)}


TABLES = {path.stem: path for path in (DATA / "register_layouts").glob("*.json")}


@pytest.mark.parametrize("peer", ["iree", "ck"])
def test_of_all_else_they_say_what_amds_calculator_says(peer: str) -> None:
    """Read straight from their constants; the library has no part in it but the names."""
    compared = 0
    for intrinsic in said_of(peer, [i for i in ENTRIES if not i.sparse]):
        theirs = PEERS[peer].layouts(intrinsic, None)
        for stem, path in TABLES.items():
            if stem.partition(".")[2] in intrinsic.mnemonics:
                reference = json.loads(path.read_text())["layout"]
                for name in "abc":
                    bits = intrinsic.operand(name).type.bits
                    found = [
                        [e * bits // 32, e * bits % 32, lane] for lane, e in theirs[name].slots
                    ]
                    expected = [
                        [r, low, lane]
                        for r, low, _, lane in reference["d" if name == "c" else name]
                    ]
                    assert found == expected, (intrinsic.name, name)
                compared += 1
    assert compared >= 30


def test_how_many_they_say_something_of() -> None:
    """What docs/exports.md counts."""
    assert len(ENTRIES) == 139
    said = {peer: said_of(peer, ENTRIES) for peer in ("iree", "ck")}
    assert {peer: len(each) for peer, each in said.items()} == {"iree": 65, "ck": 99}
    wrong = {
        peer: sum(diff_layouts(i, peer).verdict == DIFFERENT for i in each)
        for peer, each in said.items()
    }
    assert wrong == {"iree": 16, "ck": 4}


def tilelang_place(i: int, j: int) -> tuple[int, int]:
    """(lane, element) of its map of a B of 64 k and 16 columns."""
    return i + 16 * (j // 16), j % 16


def tilelang_element(lane: int, element: int) -> tuple[int, int]:
    """Its partner: (k, column)."""
    return element + lane // 16 * 16, lane % 16


def test_tilelangs_maps_of_b_are_not_each_others_inverse() -> None:
    """Until row and column are exchanged; then they are, and those of the instruction."""
    places = [(lane, element) for lane in range(64) for element in range(16)]
    assert any(tilelang_place(*tilelang_element(*place)) != place for place in places)
    b = find("mfma_i32_16x16x64_i8").b.layout
    for place in places:
        k, column = tilelang_element(*place)
        assert tilelang_place(column, k) == place == b.slot(k, column)


@pytest.mark.parametrize("name", ["mfma_f32_32x32x4_2b_f16", "mfma_f32_32x32x1_2b_f32"])
def test_irees_two_blocks_are_right_if_registers_count_by_dimension(name: str) -> None:
    """And would be wrong if all outer pieces counted before all elements."""
    intrinsic = find(name)
    theirs = PEERS["iree"].layouts(intrinsic, None)["c"]
    assert theirs == intrinsic.c.layout
    outer, thread, _, element = constants("iree")["intrinsics"][iree_name(intrinsic)]["c"]
    assert (outer, thread, element) == ([1, 4, 1], [1, 2, 32], [2, 4, 1])
    other = [
        (piece * 2 + block) * 4 + row
        for block in range(2)
        for piece in range(4)
        for row in range(4)
    ]
    ours = [
        intrinsic.c.layout.slot(8 * piece + row, 0, block)[1]
        for block in range(2)
        for piece in range(4)
        for row in range(4)
    ]
    assert ours == list(range(32)) != other
