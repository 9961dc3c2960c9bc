"""Any product takes one form, by primitives that replay; what is no product is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.memory import Memory
from mfmadsl.schedule.product.normalise import Product, normalise, product_block
from mfmadsl.schedule.product.prepare import prepared
from mfmadsl.schedule.product.sum_of_products import product_nest, sum_of_products
from tests.schedule.plain_builder import plain_schedule, schedule_block
from tests.schedule.random_workloads import check, random_workload
from tests.schedule.spoiled import SPOILS

M, N, K = 8, 9, 16
Element = Callable[..., Any]


def f32(x: Any) -> Any:
    return x.astype("float32")


def placeholders(*shapes: tuple[Any, ...], dtype: str = "float16") -> list[Any]:
    names = "ABDE"
    return [te.placeholder(s, name=names[n], dtype=dtype) for n, s in enumerate(shapes)]


def summed(shape: tuple[Any, ...], element: Element, k: Any = K, name: str = "C") -> Any:
    r = te.reduce_axis((0, k), name="k")
    return te.compute(shape, lambda *place: te.sum(element(*place, r), axis=[r]), name=name)


def matrices(m: Any = M, n: Any = N, k: Any = K) -> PrimFunc:
    a, b = placeholders((m, k), (n, k))
    c = summed((m, n), lambda i, j, r: f32(a[i, r]) * f32(b[j, r]), k)
    return te.create_prim_func([a, b, c])


def gathered() -> PrimFunc:
    a, b = placeholders((M, K), (N, K))
    at = te.placeholder((M,), name="at", dtype="int32")
    c = summed((M, N), lambda i, j, r: f32(a[at[i], r]) * f32(b[j, r]))
    return te.create_prim_func([a, b, at, c])


def by_columns() -> PrimFunc:
    a, b = placeholders((M, K), (N, K))
    c = summed((N, M), lambda j, i, r: f32(a[i, r]) * f32(b[j, r]))
    return te.create_prim_func([a, b, c])


def vector() -> PrimFunc:
    a, x = placeholders((M, K), (K,))
    return te.create_prim_func([a, x, summed((M,), lambda i, r: f32(a[i, r]) * f32(x[r]))])


def itself(sum_type: str = "float32") -> PrimFunc:
    (a,) = placeholders((M, K))
    c = summed((M, M), lambda i, j, r: a[i, r].astype(sum_type) * a[j, r].astype(sum_type))
    return te.create_prim_func([a, c])


def one_batch_for_all() -> PrimFunc:
    a, b = placeholders((3, M, K), (N, K))
    c = summed((3, M, N), lambda z, i, j, r: f32(a[z, i, r]) * f32(b[j, r]))
    return te.create_prim_func([a, b, c])


def dequantised() -> PrimFunc:
    (a,) = placeholders((M, K))
    q, s = (te.placeholder(x, name=n, dtype=d)
            for x, n, d in (((N, K), "Q", "int8"), ((N,), "S", "float16")))  # fmt: skip
    b = te.compute((N, K), lambda j, k: q[j, k].astype("float16") * s[j], name="deq")
    c = summed((M, N), lambda i, j, r: f32(a[i, r]) * f32(b[j, r]))
    return te.create_prim_func([a, q, s, c])


def operands(function: PrimFunc) -> list[Any]:
    generator = np.random.default_rng(1)
    return [
        generator.integers(0, 4, [int(e) for e in p.shape]).astype(str(p.dtype))
        for p in function.params
    ]


def run(function: PrimFunc) -> list[Any]:
    tensors = [tvm.runtime.tensor(array) for array in operands(function)]
    tvm.compile(function, target="llvm")(*tensors)
    return [tensor.numpy() for tensor in tensors]


def normalised(function: PrimFunc) -> tuple[Schedule, Product]:
    sch = Schedule(function)
    return sch, normalise(sch, product_block(sch))


@pytest.mark.parametrize(
    ("function", "extents"),
    [
        (matrices(), (1, 8, 9, 16)), (matrices(1, 1, 1), (1, 1, 1, 2)), (gathered(), (1, 8, 9, 16)),
        (by_columns(), (1, 9, 8, 16)), (vector(), (1, 1, 8, 16)), (itself(), (1, 8, 8, 16)),
        (itself("float16"), (1, 8, 8, 16)), (one_batch_for_all(), (1, 24, 9, 16)),
        (dequantised(), (1, 8, 9, 16)),
    ],
)  # fmt: skip
def test_the_form(function: PrimFunc, extents: tuple[int, ...]) -> None:
    ready = prepared(function)
    sch, product = normalised(ready)
    assert product.extents == extents
    assert product.types == ("float16", "float16", "float32")
    for mine, wanted in zip(run(sch.mod["main"]), run(function), strict=True):
        np.testing.assert_array_equal(mine, wanted)
    fresh = Schedule(ready)
    sch.trace.apply_to_schedule(fresh, remove_postproc=False)
    tvm.ir.assert_structural_equal(sch.mod, fresh.mod)
    block = sch.get(product.block)
    names = [axis.var for axis in block.iter_vars]
    read = [[part.min for part in region.region][1:] for region in (*block.reads, *block.writes)]
    for mine, axes in zip(read, ((1, 3), (2, 3), (1, 2)), strict=True):
        assert all(place.same_as(names[axis]) for place, axis in zip(mine, axes, strict=True))


def test_factors_that_are_rounded_stay_so_where_the_sum_becomes_a_wide_one() -> None:
    a, b = placeholders((M, K), (N, K), dtype="float32")
    half = "float16"
    c = summed((M, N), lambda i, j, r: a[i, r].astype(half) * b[j, r].astype(half))
    product = normalised(prepared(te.create_prim_func([a, b, c])))[1]
    assert product.types == ("float16", "float16", "float32")


def test_variables_as_extents() -> None:
    m, n, k = (te.var(name) for name in "mnk")
    _, product = normalised(matrices(m, n, k))
    assert [str(extent) for extent in product.extents] == ["1", "m", "n", "k"]
    assert product.memory[2].axis == "j"


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        ((4, 8), "iijk"),
        (("m", 9), "iijk"),
        (("m", 8), "sijk"),
        ((8, "m"), "sijk"),
        (("m", "n"), "iijk"),
    ],
)
def test_rows_along_two_axes_are_fused_where_tvm_can(rows: tuple[Any, Any], kinds: str) -> None:
    """Otherwise the outer one is a batch: of a length that varies, only tiles of an odd number."""
    i0, i1 = (te.var(extent) if isinstance(extent, str) else extent for extent in rows)
    a, b = placeholders((i0, i1, K), (N, K))
    c = summed((i0, i1, N), lambda i, p, j, r: f32(a[i, p, r]) * f32(b[j, r]))
    function = te.create_prim_func([a, b, c])
    assert "".join(sum_of_products(product_nest(function)).kinds) == kinds
    assert len(normalised(function)[1].extents) == 4


def test_where_the_operands_lie() -> None:
    assert normalised(matrices())[1].memory == (
        Memory("k", 16, 16, 2), Memory("k", 16, 16, 2), Memory("j", 9, 9, 4)
    )  # fmt: skip
    assert normalised(by_columns())[1].memory[2] == Memory("i", 8, 8, 4)
    assert normalised(prepared(by_columns()))[1].memory[2] == Memory("j", 8, 8, 4)
    assert normalised(dequantised())[1].memory[1] == Memory("k", 16, 16, 1, computed=True)
    x, w = placeholders((2, 10, 11, 4), (5, 3, 3, 4))
    rs = [te.reduce_axis((0, e), name=n) for e, n in ((3, "rh"), (3, "rw"), (4, "rc"))]
    c = te.compute(
        (2, 8, 9, 5),
        lambda z, h, v, f: te.sum(
            f32(x[z, h + rs[0], v + rs[1], rs[2]]) * f32(w[f, rs[0], rs[1], rs[2]]), axis=rs
        ),
        name="C",
    )
    convolution = normalised(te.create_prim_func([x, w, c]))[1]
    assert convolution.extents == (1, 144, 5, 36)
    assert convolution.memory[0] == Memory("k", None, 12, 2)  # a row of the window at a stretch


def test_a_product_among_other_blocks_of_a_schedule() -> None:
    a, b, d = placeholders((40, 33), (35, 33), (40, 21))
    first = summed((40, 35), lambda i, j, r: f32(a[i, r]) * f32(b[j, r]), 33, "first")
    second = summed((40, 35), lambda i, j, r: f32(d[i, r]) * f32(d[j, r]), 21, "second")
    function = te.create_prim_func([a, b, d, first, second])
    sch = Schedule(function)
    with pytest.raises(ScheduleError, match=r"there are: `first`, `second`"):
        product_block(sch)
    schedule_block(sch, product_block(sch, "first"))
    assert "mfma.f32.32x32x8f16" in sch.mod.script()
    with pytest.raises(ScheduleError, match="block `second` reads both factors from `D`"):
        normalise(sch, product_block(sch, "second"))


@pytest.mark.parametrize("name", sorted(set(SPOILS) - {"the sum comes last"}))
def test_what_is_no_product(name: str) -> None:
    spoiled = SPOILS[name](matrices())
    if "after" in name:
        return
    with pytest.raises(ScheduleError, match=r"^block `C` [^\n]*$"):
        normalised(spoiled)


def test_factors_that_are_no_elements() -> None:
    a, b = placeholders((M, K), (N, K))
    elements: dict[str, Element] = {
        "adds": lambda i, j, r: f32(a[i, r] * b[j, r]),
        "multiplies `T.Cast": lambda i, j, r: f32(a[i, r].astype("int8")) * f32(b[j, r]),
        "which is no product": lambda i, j, r: tirx.Select(r < i, f32(a[i, r]), f32(b[j, r])),
    }
    for reason, element in elements.items():
        function = te.create_prim_func([a, b, summed((M, N), element)])
        with pytest.raises(ScheduleError, match=reason):
            normalised(function)


def test_a_factor_that_is_a_result_or_a_sum() -> None:
    a, b = placeholders((M, K), (N, K))
    total = summed((M,), lambda i, r: f32(a[i, r]), name="total")
    c = summed((M, N), lambda i, j, r: total[i] * f32(b[j, r]) * 1.0)
    sch = Schedule(te.create_prim_func([a, b, c]))
    with pytest.raises(ScheduleError, match="block `C`"):
        normalise(sch, product_block(sch, "C"))
    twice = te.compute((M, K), lambda i, k: a[i, k] + a[i, k], name="twice")
    c = summed((M, N), lambda i, j, r: f32(twice[i, r]) * f32(b[j, r]))
    with pytest.raises(ScheduleError, match="computes `twice`, a factor, which is a result"):
        normalised(te.create_prim_func([a, b, twice, c]))


def with_strides(*strides: int, offset: int = 0) -> PrimFunc:
    """A product whose A says by itself how far its rows and columns are apart, and where the first
    one begins."""
    a = tirx.decl_buffer(
        (M, K), "float16", "A", strides=list(strides), elem_offset=tirx.const(offset, "int32")
    )
    plain = matrices()
    body = tvm_ffi.structural_map(
        plain.body, (tirx.Var, lambda v: a if v.same_as(plain.params[0]) else v)
    )
    return PrimFunc([a, *plain.params[1:]], body, plain.ret_type, plain.attrs)


@pytest.mark.parametrize("strides", [(2 * K, 1), (1, M), (K, 2)])
def test_arguments_that_are_parts_or_lie_otherwise(strides: tuple[int, int]) -> None:
    with pytest.raises(ScheduleError, match="argument `A` has strides or an offset of its own"):
        normalised(with_strides(*strides))


def test_an_argument_that_begins_in_the_middle_is_refused() -> None:
    with pytest.raises(ScheduleError, match="argument `A` has strides or an offset of its own"):
        normalised(with_strides(K, 1, offset=K))


def test_strides_that_are_those_of_the_shape() -> None:
    _, product = normalised(with_strides(K, 1))
    a, _, _ = product.memory
    assert (a.axis, a.distance, a.run) == ("k", K, K)


@pytest.mark.parametrize("seed", [*range(40), 211, 573, 743])
def test_random_workloads(seed: int) -> None:
    check(random_workload(seed, ("float16", "float16", "int8", "float32")), plain_schedule)
