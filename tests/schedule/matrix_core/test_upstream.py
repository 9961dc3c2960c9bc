"""TVM's own MFMA intrinsics through our schedule: TVM's schedule, and right numbers."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import tirx

import mfmadsl
from mfmadsl.language import find
from mfmadsl.schedule import matmul, mfma_schedule

# The import takes TVM half a minute: the tests of this module share one worker.
pytestmark = pytest.mark.xdist_group("upstream")

CASES = [
    ("mfma_f32_16x16x16_f16", False),
    ("mfma_f32_16x16x16_f16", True),
    ("mfma_f32_16x16x4_f32", False),
    ("mfma_f32_16x16x4_f32", True),
    ("mfma_i32_16x16x16_i8", False),
    ("mfma_i32_16x16x16_i8", True),
]
SHAPE = (128, 128, 128)


def constant(place: tuple[Any, ...]) -> tuple[Any, ...]:
    """A place as TVM takes it: it refuses the plain 0 that its own map for f32 gives."""
    return tuple(tirx.IntImm("int32", x) if isinstance(x, int) else x for x in place)


def arguments(name: str, b_transposed: bool) -> tuple[Any, ...]:
    """What TVM's own tests pass to TVM's own function, for the same instruction."""
    from tvm.s_tir.tensor_intrin import rocm

    intrinsic = find(name)
    k, in_dtype, out_dtype = intrinsic.k, intrinsic.a.type.name, intrinsic.c.type.name
    layouts = {
        4: (rocm.shared_16x4_to_local_64x1_layout_A, rocm.shared_4x16_to_local_64x1_layout_B),
        16: (rocm.shared_16x16_to_local_64x4_layout_A, rocm.shared_16x16_to_local_64x4_layout_B),
    }
    of_a, of_b = layouts[k]
    if b_transposed:
        of_b = of_a

    def index_map_a(i: Any, j: Any) -> tuple[Any, ...]:
        return i // 16, j // k, *constant(of_a(i % 16, j % k))

    def index_map_b(i: Any, j: Any) -> tuple[Any, ...]:
        rows, columns = (16, k) if b_transposed else (k, 16)
        return i // rows, j // columns, *constant(of_b(i % rows, j % columns))

    def index_map_c(i: Any, j: Any) -> tuple[Any, ...]:
        place = rocm.shared_16x16_to_local_64x4_layout_C(i % 16, j % 16)
        return i // 16, j // 16, *place

    short = {"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32"}
    a, c = short[in_dtype], short[out_dtype]
    load_a, load_b = f"rocm_mfma_load_16x{k}_a_shared_{a}", f"rocm_mfma_load_b_16x{k}_shared_{a}"
    return (
        matmul(*SHAPE, in_dtype, out_dtype, b_transposed),
        k,
        in_dtype,
        b_transposed,
        [1, 2, 2, 2, 1],
        [1, 1, 2, 4, 1],
        [SHAPE[2] // k // 8, 4, 2],
        index_map_a,
        index_map_b,
        index_map_c,
        load_a,
        load_a if b_transposed else load_b,  # a column of B then lies as a row of A does
        f"rocm_mfma_{a}{a}{c}",
        f"ROCM_mfma_fill_16x16_{out_dtype[0]}32",
        f"rocm_mfma_store_16x16_{c}",
    )


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "b_transposed"), CASES)
def test_tvms_intrinsics_are_scheduled_as_tvm_does_and_compute_the_product(
    name: str, b_transposed: bool
) -> None:
    from tvm.testing.tir import mfma_schedule as tvms_schedule

    given = arguments(name, b_transposed)
    ours, theirs = mfma_schedule(*given), tvms_schedule(*given)
    theirs.annotate(theirs.get_loops(theirs.get_sblock("C_o_update"))[3], "mfmadsl.pipeline", 1)
    tvm.ir.assert_structural_equal(ours.mod, theirs.mod)
    gemm = mfmadsl.Gemm(find(name), "gfx90a", *SHAPE, b_transposed, "shared")
    assert gemm.check(mfmadsl.build(ours, "gfx90a")).agrees


def test_a_map_may_give_plain_integers() -> None:
    """As TVM's own does for f32, though TVM refuses them."""
    given = list(arguments("mfma_f32_16x16x4_f32", True))
    expected = mfma_schedule(*given)
    given[7] = given[8] = lambda i, j: (i // 16, j // 4, j % 4 * 16 + i % 16, 0)
    tvm.ir.assert_structural_equal(mfma_schedule(*given).mod, expected.mod)
