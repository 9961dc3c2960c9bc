"""Extents that only the size of a buffer is made of: the kernel is passed them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.tirx import Evaluate, Expr, PrimFunc, Var

import mfmadsl
from mfmadsl.backend.gpu.lower import split
from mfmadsl.backend.gpu.names import named_apart
from mfmadsl.model import architecture
from mfmadsl.passes.tir.expression import calls_of, name_of, variables_of
from mfmadsl.relax.lowering import lowered
from tests.schedule.product.multiples import product

n, m = te.var("n", "int32"), te.var("m", "int32")


def part(rows: Expr, row: Callable[[Expr], Expr]) -> PrimFunc:
    """The product of a part of A's n rows."""
    a = te.placeholder((n, 64), name="A", dtype="float16")
    b = te.placeholder((48, 64), name="B", dtype="float16")
    r = te.reduce_axis((0, 64), name="k")
    c = te.compute(
        (rows, 48),
        lambda i, j: te.sum(a[row(i), r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    return te.create_prim_func([a, b, c])


PARTS: dict[str, tuple[PrimFunc, slice]] = {
    "m of n": (part(m, lambda i: i), slice(0, 13)),
    "n - 2": (part(n - 2, lambda i: i + 2), slice(2, 40)),
    "n // 2": (part(n // 2, lambda i: 2 * i), slice(0, 40, 2)),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_the_rows(name: str) -> None:
    function, taken = PARTS[name]
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, arch="gfx942"), "gfx942")
    generator = np.random.default_rng(3)
    a, b = (generator.integers(-3, 4, (rows, 64)).astype(np.float16) for rows in (40, 48))
    wanted = a[taken].astype(np.float64) @ b.T.astype(np.float64)
    found = np.zeros(wanted.shape, np.float32)
    mfmadsl.sanitize(kernel, [a, b, found])
    assert (found == wanted).all()


def one_kernel(function: PrimFunc) -> tvm.IRModule:
    tiling = mfmadsl.gemm_tiling(function, arch="gfx942")
    return mfmadsl.gemm_schedule(function, arch="gfx942", tiling=tiling).mod


def kernel_of(function: PrimFunc) -> PrimFunc:
    scheduled = one_kernel(function)["main"]
    ((_, kernel),) = split(named_apart(scheduled), architecture("gfx942")).kernels
    return kernel


def test_the_kernel_takes_it_and_does_nothing_with_it() -> None:
    kernel = kernel_of(PARTS["m of n"][0])
    assert {"m", "n"} <= {str(parameter.name) for parameter in kernel.params}
    found: list[Evaluate] = []
    tvm_ffi.structural_walk(kernel.body, (Evaluate, found.append))
    assert not [each for each in found if isinstance(each.value, Var)]


def test_what_its_statements_name_is_passed_once() -> None:
    names = [str(parameter.name) for parameter in kernel_of(product(m, 48, 64)).params]
    assert names.count("m") == 1


def test_the_host_passes_it_as_well() -> None:
    scheduled = one_kernel(PARTS["m of n"][0])
    built = lowered(tirx.transform.BindTarget(mfmadsl.target("gfx942"))(scheduled))
    calls = [call for call in calls_of(built["main"].body) if name_of(call) == "call_ffi_kernel"]
    (names,) = ([v.name for each in call.args for v in variables_of(each)] for call in calls)
    assert {"m", "n"} <= set(names)
