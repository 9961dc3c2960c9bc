"""Sums of parts that wrap around: LLVM may not take them for sums that never do."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tvm import te, tirx
from tvm.tirx import BufferStore

import mfmadsl
from mfmadsl.passes.types.sums import wrapping_sums
from mfmadsl.schedule.workload.dense import product


def stored(dtype: str, at: int = 3, lanes: int = 1, turned: bool = False) -> str:
    """What is stored where `C[at] + A[5]`, or `A[5] + C[at]`, was stored in `C[3]`."""
    a, c = (tirx.decl_buffer([64], dtype, name) for name in "AC")

    def place(first: int) -> tirx.Expr:
        number = tirx.const(first, "int32")
        return tirx.Ramp(number, tirx.const(1, "int32"), lanes) if lanes > 1 else number

    sides = tirx.BufferLoad(c, [place(at)]), tirx.BufferLoad(a, [place(5)])
    value = sides[1] + sides[0] if turned else sides[0] + sides[1]
    function = tirx.PrimFunc([a, c], BufferStore(c, value, [place(3)]))
    body = wrapping_sums(function).body
    assert isinstance(body, BufferStore)
    return str(body.value)


@pytest.mark.parametrize(("dtype", "wide"), [("int32", "int64"), ("uint32", "uint64")])
def test_what_is_added_to_an_element_is_added_in_64_bits(dtype: str, wide: str) -> None:
    assert stored(dtype) == f'T.Cast("{dtype}", T.Cast("{wide}", C[3]) + T.Cast("{wide}", A[5]))'
    turned = stored(dtype, turned=True)
    assert turned == f'T.Cast("{dtype}", T.Cast("{wide}", A[5]) + T.Cast("{wide}", C[3]))'
    of_four = stored(dtype, lanes=4)
    assert of_four.startswith(f'T.Cast("{dtype}x4", T.Cast("{wide}x4", C[')


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32"])
def test_other_types_are_left(dtype: str) -> None:
    assert stored(dtype) == "C[3] + A[5]"


def test_a_sum_of_other_elements_is_left() -> None:
    assert stored("int32", at=4) == "C[4] + A[5]"


@pytest.mark.parametrize(("k_waves", "split_k"), [(2, 1), (1, 2)])
def test_llvm_does_not_take_the_sum_of_parts_for_one_that_never_wraps(
    k_waves: int, split_k: int
) -> None:
    """Its numbers are right in either case, as far as LLVM makes no use of what it is told."""
    a, b, total = product((1, 16, 4096), ("int8", "int8", "int32"), (False, True))
    read = te.compute((1, 16), lambda i, j: total[i, j].astype("int64"), name="read")
    function = te.create_prim_func([a, b, read])
    tiling = mfmadsl.gemm_tiling(function, arch="gfx942")
    tiling = replace(tiling, k_waves=k_waves, split_k=split_k)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, arch="gfx942", tiling=tiling), "gfx942")
    text = (kernel if kernel.next is None else kernel.next).llvm_ir
    loaded = "|".join(map(re.escape, re.findall(r"(%[\w.]+) = load i32", text)))
    added = re.findall(rf"= (add .*)i32 (?:{loaded}), (?:{loaded})$", text, re.MULTILINE)
    assert set(added) == {"add "}
