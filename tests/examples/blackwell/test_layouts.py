"""The layouts of NVIDIA's registers and tensor memory, beside those that TVM has of them."""

from __future__ import annotations

from importlib import import_module
from itertools import product
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from tvm.tirx.layout import TileLayout, tcgen05_atom_layout, tmem_datapath_layout

from mfmadsl.language import load_entries
from mfmadsl.model import Fragment

FOLDER = Path(__file__).parents[3] / "examples" / "blackwell_gemm"
FRAGMENTS: dict[str, Fragment] = {
    fragment.name: fragment
    for path in sorted(FOLDER.glob("*.mfma"))
    for fragment in load_entries(path).fragments
}
Slots = dict[tuple[int, int], tuple[int, int]]


def slots(name: str) -> Slots:
    """(lane, register) of each element."""
    rows, columns = FRAGMENTS[name].operand.shape
    layout = FRAGMENTS[name].operand.layout
    return {(r, c): layout.slot(r, c) for r, c in product(range(rows), range(columns))}


def some(rows: int, columns: int) -> list[tuple[int, int]]:
    """Those that tell each bit of a row and of a column apart, and any others."""
    generator = Random(128)
    basis = [(1 << bit, 0) for bit in range(rows.bit_length() - 1)]
    basis += [(0, 1 << bit) for bit in range(columns.bit_length() - 1)]
    drawn = [(generator.randrange(rows), generator.randrange(columns)) for _ in range(100)]
    return [(0, 0), *basis, *drawn, (rows - 1, columns - 1)]


def agree(found: Slots, expected: Slots) -> bool:
    """Whether the places of all that are expected are those."""
    return expected == {at: found[at] for at in expected}


def theirs(layout: TileLayout, shape: tuple[int, int], lane: str, register: str) -> Slots:
    """The same of a layout of TVM, along two of its axes, which takes it a while: of some."""
    found = {}
    for row, column in some(*shape):
        place = layout.apply(row, column, shape=list(shape))
        found[row, column] = int(place.get(lane, 0)), int(place.get(register, 0))
    return found


@pytest.fixture(scope="module")
def cuda() -> ModuleType:
    """TVM's intrinsics, which it parses as they are imported: seconds, for all who only collect."""
    return import_module("tvm.s_tir.tensor_intrin.cuda")


def test_a_of_mma_sync_is_what_ldmatrix_brings(cuda: ModuleType) -> None:
    assert slots("mma_m16n8k16_a") == {
        place: cuda.shared_16x16_to_ldmatrix_32x8_layout(*place)
        for place in product(range(16), range(16))
    }


def test_b_of_mma_sync_is_the_first_half_of_what_ldmatrix_brings_of_its_transpose(
    cuda: ModuleType,
) -> None:
    """`ldmatrix.x2` brings two of the four 8 x 8 tiles: rows of B's columns, 8 k at a time."""
    found = {}
    for k, j in product(range(16), range(8)):
        lane, register = cuda.shared_16x16_to_ldmatrix_32x8_layout(j, k)
        found[k, j] = lane, register // 4 * 2 + register % 2
    assert slots("mma_m16n8k16_b") == found


def test_c_of_mma_sync_is_that_of_two_of_them_side_by_side(cuda: ModuleType) -> None:
    found = {}
    for lane, register in product(range(32), range(4)):
        row, column = cuda.ldmatrix_32x8_to_shared_16x16_layout(lane, register)
        found[row, column] = lane, register
    assert slots("mma_m16n8k16_c") == found


@pytest.mark.parametrize(
    ("name", "letter"), [("tcgen05_sums_m128", "D"), ("tcgen05_sums_m128_pair", "B")]
)
def test_sums_in_tensor_memory(name: str, letter: str) -> None:
    rows, columns = shape = FRAGMENTS[name].operand.shape
    layout = tmem_datapath_layout(letter, rows, columns)
    assert agree(slots(name), theirs(layout, shape, "TLane", "TCol"))


def test_sums_of_two_ctas_are_those_of_each() -> None:
    both = slots("tcgen05_sums_m256")
    each = theirs(tmem_datapath_layout("A", 128, 256), (128, 256), "TLane", "TCol")
    for (row, column), (lane, register) in each.items():
        assert both[row, column] == (lane, register)
        assert both[row + 128, column] == (lane + 128, register)


def test_a_in_tensor_memory_has_two_halves_a_column() -> None:
    operand = FRAGMENTS["tcgen05_a_m128"].operand
    layout = tmem_datapath_layout("D", 128, 16)
    for row, column in some(128, 16):
        place, at = operand.location(row, column), layout.apply(row, column, shape=[128, 16])
        assert place.lane == at["TLane"]
        assert place.register * 2 + place.low // 16 == at["TCol"]


def test_loads_from_tensor_memory() -> None:
    """Of TVM's warpgroups the first warp."""
    rows = theirs(tcgen05_atom_layout("32x32b", (128, 32), "float32"), (128, 32), "tid_in_wg", "m")
    assert agree(slots("tcgen05_ld_32x32b_x32"), {at: s for at, s in rows.items() if at[0] < 32})
    quads = theirs(tcgen05_atom_layout("16x256b", (64, 16), "float32"), (64, 16), "laneid", "m")
    assert agree(slots("tcgen05_ld_16x256b_x2"), {at: s for at, s in quads.items() if at[0] < 16})
