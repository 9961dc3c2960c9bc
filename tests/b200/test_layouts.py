"""Where elements are is where TVM's own layouts say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.tirx.layout import R, S, TCol, TileLayout, TLane, tid_in_wg

from b200.layouts import positions
from b200.report import NotUnderstood

SHAPE = (2, 128, 64)
LAYOUTS = {
    **{
        mode.name: mma_shared_layout("float16", mode, SHAPE)
        for mode in (
            SwizzleMode.SWIZZLE_128B_ATOM,
            SwizzleMode.SWIZZLE_64B_ATOM,
            SwizzleMode.SWIZZLE_32B_ATOM,
        )
    },
    "tensor memory": TileLayout(S[(2, 128, 64) : (64 @ TCol, 1 @ TLane, 1 @ TCol)]),
    "registers": TileLayout(S[(2, 128, 64) : (64, 1 @ tid_in_wg, 1)]),
}


@pytest.mark.parametrize("name", LAYOUTS)
@given(
    place=st.tuples(*(st.integers(0, extent - 1) for extent in SHAPE)),
)
def test_positions_are_those_of_tvm(name: str, place: tuple[int, int, int]) -> None:
    layout: Any = LAYOUTS[name]
    expected = {axis: int(value) for axis, value in layout.apply(*place, shape=list(SHAPE)).items()}
    found = positions(SHAPE, layout)
    assert {axis: int(found[axis][place]) for axis in found} == expected


@pytest.mark.parametrize("name", LAYOUTS)
def test_no_two_elements_are_in_one_place(name: str) -> None:
    found = positions(SHAPE, LAYOUTS[name])
    together = np.stack([found[axis].reshape(-1) for axis in sorted(found)])
    assert np.unique(together, axis=1).shape[1] == np.prod(SHAPE)


def test_without_a_layout_elements_are_row_by_row() -> None:
    np.testing.assert_array_equal(positions((2, 3), None)["m"], [[0, 1, 2], [3, 4, 5]])


def test_elements_that_are_in_several_places_are_not_understood() -> None:
    with pytest.raises(NotUnderstood, match="the layout"):
        positions((32, 4), TileLayout(S[(32, 4) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]))
