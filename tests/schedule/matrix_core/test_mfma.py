"""`mfma_schedule`: legal factors give right kernels, the others an error that says why."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm.target import Target

import mfmadsl
from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic
from mfmadsl.schedule import ScheduleError, load_intrinsic, matmul, mfma_schedule

COMMON = [
    library()[f"mfma_{name}"]
    for name in ("f32_16x16x4_f32", "f32_16x16x16_f16", "f32_32x32x8_f16", "i32_16x16x16_i8")
]
HALF = find("mfma_f32_16x16x16_f16")
LEGAL = {"i_factors": [2, 1, 2, 2, 1], "j_factors": [2, 1, 2, 2, 1], "k_factors": [2, 2, 1]}


def scheduled(
    intrinsic: Intrinsic,
    shape: tuple[int, int, int] = (128, 128, 64),
    b_transposed: bool = False,
    **changed: Any,
) -> Any:
    """The schedule of a matmul, with some arguments changed."""
    tile = load_intrinsic(intrinsic)
    arguments: dict[str, Any] = {
        "workload": matmul(*shape, tile.IN_DTYPE, tile.OUT_DTYPE, b_transposed),
        "k_inner": tile.K,
        "in_dtype": tile.IN_DTYPE,
        "b_transposed": b_transposed,
        **LEGAL,
        "index_map_A": tile.index_map_A,
        "index_map_B": tile.index_map_B_transposed if b_transposed else tile.index_map_B,
        "index_map_C": tile.index_map_C,
        "ldmatrix_a_intrin": tile.LOAD_A_SHARED,
        "ldmatrix_b_intrin": tile.LOAD_B_TRANSPOSED_SHARED if b_transposed else tile.LOAD_B_SHARED,
        "mfma_intrin": tile.COMPUTE,
        "mfma_fill_intrin": tile.FILL,
        "mfma_store_intrin": tile.STORE_GLOBAL,
    }
    return mfma_schedule(**{**arguments, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"i_factors": [1, 1, 2, 2, 1]},
         "i_factors: [1, 1, 2, 2, 1]: the product is 4, but M=128 has 8 tiles of 16"),
        ({"j_factors": [None, 1, 3, 1, 1]},
         "j_factors: [None, 1, 3, 1, 1]: the product 3 does not divide the 8 tiles of 16 in N=128"),
        ({"k_factors": [4]}, "k_factors: [4] has 1 factors, not 3"),
        ({"k_factors": [4, -1, -1]}, "k_factors: [4, -1, -1] must hold positive numbers"),
        ({"k_factors": [None, None, 1]}, "[None, None, 1] must hold positive numbers, and at most"),
        ({"workload": matmul(120, 128, 64, "float16", "float32")},
         "workload: M=120 is no multiple of the instruction's 16"),
        ({"workload": matmul(128, 128, 65, "float16", "float32")},
         "workload: K=65 is no multiple of the instruction's 16"),
        ({"k_inner": 8}, "k_inner: is 8, but mfma_f32_16x16x16_f16_compute has k=16"),
        ({"shared_scope": "local"}, "shared_scope: 'local' is neither 'shared' nor 'shared.dyn'"),
        ({"mfma_intrin": "nothing"}, "mfma_intrin: no TensorIntrin is registered as 'nothing'"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named_with_its_numbers(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ScheduleError) as error:
        scheduled(HALF, **changed)
    assert message in str(error.value)


def test_more_threads_than_a_workgroup_has() -> None:
    with pytest.raises(ScheduleError, match=r"8 x 4 waves of 64 lanes are 2048 threads.*1024"):
        scheduled(HALF, i_factors=[1, 1, 8, 1, 1], j_factors=[1, 1, 4, 2, 1])


def test_more_lds_than_the_chip_has() -> None:
    factors: dict[str, Any] = dict(LEGAL, i_factors=[1, 1, 4, 4, 1], j_factors=[1, 1, 4, 4, 1])
    factors["k_factors"] = [1, 8, 1]
    shape = (256, 256, 128)
    message = r"tiles of 256x128 and 256x128 float16 take 131072 bytes of LDS.*65536 of gfx942"
    target = Target({"kind": "rocm", "mcpu": "gfx942", "mtriple": "amdgcn-amd-amdhsa-hcc"})
    with target, pytest.raises(ScheduleError, match=message):
        scheduled(HALF, shape, **factors)
    assert mfmadsl.build(scheduled(HALF, shape, **factors), "gfx950").lds_bytes == 131072
    with pytest.raises(mfmadsl.LoweringError, match=r"131072 bytes of LDS.*65536 of gfx90a"):
        mfmadsl.build(scheduled(HALF, shape, **factors), "gfx90a")


def test_a_module_without_the_block_to_tensorize() -> None:
    other = matmul(128, 128, 64, "float16", "float32")
    module = tvm.IRModule({"main": other})
    assert scheduled(HALF, workload=module).mod["main"]
    renamed = tvm.ir.load_json(tvm.ir.save_json(other).replace('"C"', '"D"'))
    with pytest.raises(ScheduleError, match="workload: has no block `C`"):
        scheduled(HALF, workload=renamed)


def test_one_factor_may_be_left_open() -> None:
    open_factors: dict[str, Any] = {"i_factors": [None, 1, 2, 2, 1], "k_factors": [2, None, 1]}
    given_all, inferred = scheduled(HALF), scheduled(HALF, **open_factors)
    tvm.ir.assert_structural_equal(given_all.mod, inferred.mod)


def test_intrinsics_are_taken_as_objects_too() -> None:
    tile = load_intrinsic(HALF)
    names = {
        "ldmatrix_a_intrin": tile.LOAD_A_SHARED,
        "ldmatrix_b_intrin": tile.LOAD_B_SHARED,
        "mfma_intrin": tile.COMPUTE,
        "mfma_fill_intrin": tile.FILL,
        "mfma_store_intrin": tile.STORE_GLOBAL,
    }
    objects: dict[str, Any] = {k: tvm.s_tir.TensorIntrin.get(v) for k, v in names.items()}
    tvm.ir.assert_structural_equal(scheduled(HALF).mod, scheduled(HALF, **objects).mod)


@st.composite
def legal_factors(draw: st.DrawFn, intrinsic: Intrinsic) -> tuple[tuple[int, int, int], Any]:
    """A shape and factors of it that no limit forbids."""
    small = st.integers(1, 3)
    i = [draw(small) for _ in range(5)]
    j = [draw(small) for _ in range(5)]
    k = [draw(small) for _ in range(3)]
    shape = prod(i) * intrinsic.m, prod(j) * intrinsic.n, prod(k) * intrinsic.k
    depth = prod(k[1:]) * intrinsic.k * intrinsic.a.type.bits // 8
    lds = (prod(i[2:]) * intrinsic.m + prod(j[2:]) * intrinsic.n) * depth
    while i[2] * j[2] > 16 or lds > 65536 or prod(shape) > 1 << 22:
        return draw(legal_factors(intrinsic))
    return shape, {"i_factors": i, "j_factors": j, "k_factors": k}


@pytest.mark.thorough
@settings(max_examples=12, derandomize=True)
@given(st.data(), st.sampled_from(COMMON), st.booleans())
def test_any_legal_factors_give_the_right_numbers(
    data: st.DataObject, intrinsic: Intrinsic, b_transposed: bool
) -> None:
    shape, factors = data.draw(legal_factors(intrinsic))
    schedule = scheduled(intrinsic, shape, b_transposed, **factors)
    gemm = mfmadsl.Gemm(intrinsic, "gfx90a", *shape, b_transposed, "shared")
    assert gemm.check(mfmadsl.build(schedule, "gfx90a")).agrees
