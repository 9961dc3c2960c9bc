"""A result in an MX format: each bit of its elements and scales, beside OCP's text in NumPy.

The factors are small whole numbers, so that sums are exact whatever their order: what is stored
leaves no room for a tolerance.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import tvm_ffi
from tvm import te, tirx
from tvm.s_tir import SBlock
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl import ScheduleError
from mfmadsl.backend import Kernel
from mfmadsl.cli.gemm_options import OUTPUTS
from mfmadsl.error import ArgumentError, SlowLoopWarning
from mfmadsl.gemm.tolerance import Tolerance
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings
from mfmadsl.schedule.workload import mx_output
from tests.cases import FIRST
from tests.schedule.matrix_core.test_pairs import gate_of

Array = npt.NDArray[Any]
TYPES = {"fp8": "float8_e4m3fn", "bf8": "float8_e5m2", "fp4": "float4_e2m1fn"}
COMPARED = [
    "bfloat16", *(f"float{n}" for n in (16, 32, 64)),
    *(f"{kind}{n}" for kind in ("int", "uint") for n in (8, 16, 32, 64)),
]  # fmt: skip
CHIPS = ["gfx908", "gfx90a", "gfx942", "gfx950"]


def quantised(exact: Array, kind: str) -> tuple[Array, Array]:
    """Elements and scales of groups of 32 (OCP Microscaling Formats v1.0, 6.3), one at a time."""
    number = ml_dtypes.finfo(numpy_type(TYPES[kind]))
    of_largest = int(np.floor(np.log2(float(number.max))))
    elements = np.zeros(exact.shape, numpy_type(TYPES[kind]))
    scales = np.zeros((*exact.shape[:-1], exact.shape[-1] // 32), np.uint8)
    for place in np.ndindex(scales.shape):
        *rows, group = place
        row = exact[tuple(rows)][group * 32 : group * 32 + 32].astype(np.float64)
        largest = np.abs(row).max()
        if not np.isfinite(largest):
            scales[place] = 255
            continue
        power = -127 if largest == 0 else int(np.floor(np.log2(largest)))
        shared = max(power - of_largest, -127)
        scales[place] = shared + 127
        with np.errstate(over="ignore"):
            scaled = np.clip(row * 2.0**-shared, -float(number.max), float(number.max))
        elements[tuple(rows)][group * 32 : group * 32 + 32] = scaled.astype(elements.dtype)
    return elements, scales


def factors(m: int, n: int, k: int) -> tuple[Array, Array]:
    """Numbers that name their place, of very different sizes from row to row and group to group."""
    generator = np.random.default_rng(m + n + k)
    a = generator.integers(-4, 5, (m, k)) * 2.0 ** generator.integers(-3, 4, (m, 1))
    b = generator.integers(-4, 5, (n, k)) * 2.0 ** generator.integers(-3, 4, (n, 1))
    b[: n // 32 * 32 // 3] = 0  # whole groups of zeros among them
    return a, b


def outputs(kind: str, shape: tuple[int, ...]) -> tuple[Array, Array]:
    *rows, n = shape
    of_groups = np.full((*rows, n // 32), 7, np.uint8)
    if kind == "fp4":
        return np.full((*rows, n // 2), 7, np.uint8), of_groups
    return np.full(shape, 7, np.uint8).view(numpy_type(TYPES[kind])), of_groups


def check(kernel: Kernel, kind: str, given: list[Array], exact: Array) -> None:
    """Run it under the sanitizer, and compare bits."""
    elements, scales = outputs(kind, exact.shape)
    mfmadsl.sanitize(kernel, [*given, elements, scales])
    wanted, wanted_scales = quantised(exact, kind)
    np.testing.assert_array_equal(scales, wanted_scales)
    known = np.repeat(scales != 255, 32, axis=-1)
    found = elements.view(np.uint8)
    if kind == "fp4":
        found = np.stack([found & 15, found >> 4], axis=-1).reshape(exact.shape)
    codes = wanted.view(np.uint8) & (15 if kind == "fp4" else 255)
    np.testing.assert_array_equal(found[known], codes[known])


def built(workload: PrimFunc, arch: str, **changes: Any) -> Kernel:
    tiling = None
    if changes:
        tiling = replace(mfmadsl.gemm_tiling(workload, arch=arch), **changes)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch, tiling=tiling), arch)
    assert not kernel.remarks
    assert kernel.code_object
    return kernel


def test_the_command_line_has_the_same_types() -> None:
    assert OUTPUTS == mx_output.TYPES == tuple(TYPES.values())


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("shape", [(16, 32, 64), (75, 96, 128), (200, 256, 160), (1, 512, 1024)])
@pytest.mark.parametrize("b_transposed", [True, False])
def test_each_bit(arch: str, kind: str, shape: tuple[int, int, int], b_transposed: bool) -> None:
    m, n, k = shape
    plain = mfmadsl.matmul(m, n, k, "float16", "float32", b_transposed)
    kernel = built(mfmadsl.mx_output(plain, kind), arch)
    a, b = factors(m, n, k)
    given = [a.astype("float16"), (b if b_transposed else b.T.copy()).astype("float16")]
    check(kernel, kind, given, a @ b.T)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arch", "changes"),
    [
        ("gfx942", {"block": (64, 64), "waves": (1, 1), "k_waves": 1}),
        ("gfx942", {"block": (32, 64), "waves": (1, 2), "k_waves": 2, "k_step": 128}),
        ("gfx942", {"block": (32, 32), "waves": (1, 1), "k_waves": 1, "split_k": 3}),
        ("gfx942", {"block": (64, 160), "waves": (4, 1), "k_waves": 1, "k_step": 64}),
        ("gfx950", {"block": (256, 128), "waves": (2, 2), "k_waves": 1, "k_step": 64}),
        ("gfx950", {"block": (64, 64), "waves": (1, 1), "k_waves": 1, "persistent": True}),
        ("gfx950", {"block": (32, 64), "waves": (2, 1), "k_waves": 1,
                    "instruction": "mfma_f32_16x16x32_f16"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["fp8", "fp4"])
def test_each_way_to_hold_a_group(arch: str, changes: dict[str, Any], kind: str) -> None:
    m, n, k = 100, 320, 768
    workload = mfmadsl.mx_output(mfmadsl.matmul(m, n, k, "float16", "float32", True), kind)
    a, b = factors(m, n, k)
    kernel = built(workload, arch, stages=1, **changes)
    check(kernel, kind, [a.astype("float16"), b.astype("float16")], a @ b.T)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("kind", TYPES)
def test_what_is_no_number_and_what_is_large(arch: str, kind: str) -> None:
    """A sum that is infinite or NaN spoils its group's scale, and no other group."""
    m, n, k = 20, 128, 64
    workload = mfmadsl.mx_output(mfmadsl.matmul(m, n, k, "float32", "float32", True), kind)
    a, b = np.ones((m, k), "float32"), np.zeros((n, k), "float32")
    b[:, 0] = np.arange(1, n + 1)
    a[3, 1], b[40, 1] = np.inf, 1  # NaN in all of row 3 but where B is not 0
    a[5] *= np.float32(2.0**120)
    a[6] *= np.float32(2.0**-140)
    a[7] = 0
    b[100] = np.nan
    with np.errstate(all="ignore"):
        exact = (a.astype("float64") @ b.T.astype("float64")).astype("float32")
    check(built(workload, arch), kind, [a, b], exact)


@pytest.mark.parametrize("kind", TYPES)
def test_halves_are_rounded_to_even(kind: str) -> None:
    """All numbers between neighbours of a type, quarters of the step among them."""
    of_type = np.arange(256 if kind != "fp4" else 16, dtype=np.uint8).view(numpy_type(TYPES[kind]))
    exact = of_type.astype(np.float64)
    exact = np.unique(exact[np.isfinite(exact)])
    steps = np.diff(exact, append=exact[-1] * 1.125)
    values = np.concatenate([exact + steps * part for part in (0, 0.25, 0.5, 0.75)])
    m, n = -(-len(values) // 31), 32
    rows = np.zeros((m, 31))
    rows.flat[: len(values)] = values
    largest = np.full((m, 1), float(ml_dtypes.finfo(numpy_type(TYPES[kind])).max))
    a = np.hstack([rows, largest]).astype("float32")  # the largest of each group is the type's
    workload = mfmadsl.mx_output(mfmadsl.matmul(m, n, 32, "float32", "float32", True), kind)
    check(built(workload, "gfx942"), kind, [a, np.eye(32, dtype="float32")], a.astype("float64"))


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_the_next_layer_reads_it(arch: str) -> None:
    """Two products with relu between them: what the first stores is what the second takes."""
    m, n, k, last = 70, 128, 256, 64
    r = te.reduce_axis((0, k), "r")
    x, w = te.placeholder((m, k), "float16", "x"), te.placeholder((n, k), "float16", "w")
    y = te.compute(
        (m, n),
        lambda i, j: te.sum(x[i, r].astype("float32") * w[j, r].astype("float32"), axis=[r]),
        "y",
    )
    z = te.compute((m, n), lambda i, j: tirx.max(y[i, j], 0.0), "z")
    first = built(mfmadsl.mx_output(te.create_prim_func([x, w, z]), "fp4"), arch)
    a, b = factors(m, n, k)
    elements, scales = outputs("fp4", (m, n))
    mfmadsl.sanitize(first, [a.astype("float16"), b.astype("float16"), elements, scales])

    second = mfmadsl.scaled_matmul(m, last, n, "fp4", "fp8")
    with pytest.warns(SlowLoopWarning) if arch == "gfx942" else nullcontext():
        kernel = mfmadsl.build(mfmadsl.gemm_schedule(second, arch=arch), arch)
    v = np.random.default_rng(1).integers(-8, 9, (last, n)).astype("float8_e4m3fn")
    c = np.zeros((m, last), "float32")
    ones = np.full((last, n // 32), 127, np.uint8)
    mfmadsl.emulate(kernel, [elements, v.view("uint8"), scales, ones, c])
    wanted, of_groups = quantised(np.maximum(a @ b.T, 0), "fp4")
    values = wanted.astype("float64") * np.repeat(2.0 ** (of_groups - 127.0), 32, axis=1)
    np.testing.assert_allclose(c, values @ v.astype("float64").T, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(
    ("kind", "shape"), [("fp8", (75, 128, 128)), ("fp4", (40, 192, 64)), ("fp4", (9, 64, 64))]
)
@pytest.mark.parametrize("is_gated", [False, True])
def test_experts(arch: str, kind: str, shape: tuple[int, int, int], is_gated: bool) -> None:
    """Of a wave's columns as well as of more than a wave has; with a gate in the same kernel."""
    m, n, k = shape
    a, b = factors(m, 3 * n, k)
    ends = np.array([m // 7, m // 7, m], "int32")
    expert = (ends[:-1] <= np.arange(m)[:, None]).sum(axis=1)
    exact = np.einsum("ik,ijk->ij", a, b.reshape(3, n, k)[expert])
    workload = mfmadsl.grouped_matmul(m, n, k, 3, "float16", "float32")
    if is_gated:
        workload, exact = mfmadsl.gated(workload, "relu"), gate_of(exact, "relu")
    if is_gated and n == 64:  # all columns are one group: its tiles cannot take them in turn
        with pytest.raises(ScheduleError, match="compare that in groups of a row of several"):
            mfmadsl.gemm_schedule(mfmadsl.mx_output(workload, kind), arch=arch)
        return
    given = [a.astype("float16"), ends, b.reshape(3, n, k).astype("float16")]
    check(built(mfmadsl.mx_output(workload, kind), arch), kind, given, exact)


@pytest.mark.thorough
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("m", [1, 16, 17, 300])
def test_any_m(arch: str, m: int) -> None:
    rows, (n, k) = te.var("m"), (128, 256)
    r = te.reduce_axis((0, k), "r")
    x, w = te.placeholder((rows, k), "float16", "x"), te.placeholder((n, k), "float16", "w")
    y = te.compute(
        (rows, n),
        lambda i, j: te.sum(x[i, r].astype("float32") * w[j, r].astype("float32"), axis=[r]),
        "y",
    )
    workload = mfmadsl.mx_output(te.create_prim_func([x, w, y]), "fp8")
    assert len(mfmadsl.gemm_cases(workload, arch=arch)) > 1
    a, b = factors(m, n, k)
    kernel = built(workload, arch)
    check(kernel, "fp8", [a.astype("float16"), b.astype("float16")], a @ b.T)


@pytest.mark.parametrize(("kind", "bits"), [("fp8", 8), ("fp6", 6), ("fp4", 4)])
@pytest.mark.parametrize("batch", [None, 2])
def test_scaled_operands(kind: str, bits: int, batch: int | None) -> None:
    m, n, k = 70, 160, 256
    plain = mfmadsl.scaled_matmul(m, n, k, kind, batch=batch)
    generator = np.random.default_rng(2)
    dtype = numpy_type({"fp6": "float6_e2m3fn", **TYPES}[kind])
    lead = () if batch is None else (batch,)
    given, values = [], []
    for rows in (m, n):
        elements = generator.integers(-3, 4, (*lead, rows, k)).astype(dtype)
        scales = generator.integers(126, 129, (*lead, rows, k // 32), "uint8")
        each = elements.view("uint8")[..., None] >> np.arange(bits, dtype="uint8") & 1
        octets = np.packbits(each.reshape(*lead, rows, -1), axis=-1, bitorder="little")
        given.append((octets, scales))
        values.append(elements.astype("float64") * np.repeat(2.0 ** (scales - 127.0), 32, axis=-1))
    (a, scale_a), (b, scale_b) = given
    exact = values[0] @ values[1].swapaxes(-1, -2)
    check(built(mfmadsl.mx_output(plain, "fp4"), "gfx950"), "fp4", [a, b, scale_a, scale_b], exact)


def as_written(n: int = 128, width: int = 32, spoiled: str = "") -> PrimFunc:
    """Groups of columns as people may write them: another reduction, in blocks of their own."""
    m, k = 70, 64
    r, c = te.reduce_axis((0, k), "r"), te.reduce_axis((0, width), "c")
    x, w = te.placeholder((m, k), "float16", "x"), te.placeholder((n, k), "float16", "w")
    bias = te.placeholder((n,), "float32", "bias")
    y = te.compute(
        (m, n),
        lambda i, j: te.sum(x[i, r].astype("float32") * w[j, r].astype("float32"), axis=[r]),
        "y",
    )
    z = te.compute((m, n), lambda i, j: y[i, j] + bias[j], "z")
    size = te.compute((m, n), lambda i, j: tirx.abs(z[i, j]), "size")
    weighed = bias if spoiled == "weights" else None
    groups = n // width - (1 if spoiled == "rest" else 0)
    shift = 1 if spoiled == "place" else 0
    top = te.compute(
        (m, groups),
        lambda i, g: te.max(
            size[i, (g + shift) % (n // width) * width + c]
            * (1.0 if weighed is None else weighed[g * width + c]),
            axis=[c],
        ),
        "top",
    )
    if spoiled == "turned":
        c = te.reduce_axis((0, width), "c")
        top = te.compute((n // width, m), lambda g, i: te.max(z[i, g * width + c], axis=[c]), "top")
        whole = te.compute((m, n), lambda i, j: z[i, j] - top[j // width, i], "ratio")
        return te.create_prim_func([x, w, bias, whole, top])
    ratio = te.compute((m, n), lambda i, j: z[i, j] / (top[i, j // width] + 1.0) * bias[j], "ratio")
    results = [ratio, top]
    if spoiled == "part":
        results[0] = te.compute((m, n), lambda i, j: z[i, j] * top[i, j // width], "ratio")
        results.append(te.compute((m, 64), lambda i, j: top[i, j // width] * 2.0, "part"))
    if spoiled == "nibbles":
        few = te.compute((m, n), lambda i, j: z[i, j].astype("float6_e2m3fn"), "few")
        results.append(few)
    if spoiled == "read":
        few = te.compute((m, n), lambda i, j: z[i, j].astype("float4_e2m1fn"), "few")
        results[0] = te.compute(
            (m, n), lambda i, j: few[i, j].astype("float32") * top[i, j // width], "ratio"
        )
    if spoiled == "none":
        results = [top]
    if spoiled == "sum":
        results.append(y)
    if spoiled == "other group":
        results[0] = te.compute(
            (m, n), lambda i, j: z[i, j] - top[i, (j // width + 1) % (n // width)], "ratio"
        )
    if spoiled == "second":
        d = te.reduce_axis((0, width), "d")
        results.append(
            te.compute((m, n // width), lambda i, g: te.min(z[i, g * width + d], axis=[d]), "low")
        )
    return te.create_prim_func([x, w, bias, *results])


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("width", [2, 4, 16, 32])
def test_other_groups_of_columns(arch: str, width: int) -> None:
    """Any maximum of neighbours that results are made of: here of float32, in float32."""
    kernel = built(as_written(width=width), arch)
    a, b = factors(70, 128, 64)
    bias = np.arange(128, dtype="float32") - 60
    ratio, top = np.zeros((70, 128), "float32"), np.zeros((70, 128 // width), "float32")
    mfmadsl.sanitize(kernel, [a.astype("float16"), b.astype("float16"), bias, ratio, top])
    exact = a @ b.T + bias
    largest = np.abs(exact).reshape(70, -1, width).max(-1)
    np.testing.assert_array_equal(top, largest)
    wanted = exact / (np.repeat(largest, width, axis=1) + 1) * bias
    np.testing.assert_allclose(ratio, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("spoiled", "message"),
    [
        ("place", "block `top` reads `z"),
        ("none", "block `top` compares columns, and no result has an element for each"),
        ("sum", "compares columns of a product, of which other results are made"),
        ("other group", r"block `ratio` reads `top"),
        ("second", "compares columns of a product, as another block does"),
        ("weights", "compares what is made of more than an element: compute that in a block"),
        ("rest", "makes 3 groups of 32 of rows of 128 columns: each column has to be in one"),
        ("turned", "block `top` does not have the groups of a row one after the other"),
        ("part", "block `part` makes a result that has neither the shape of C nor one of groups"),
        ("nibbles", "block `few` makes a result of float6_e2m3fn"),
        ("read", "block `ratio` reads numbers of float4_e2m1fn, which kernels store"),
    ],
)
def test_what_only_looks_like_it_is_refused(spoiled: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        mfmadsl.gemm_schedule(as_written(spoiled=spoiled), arch="gfx942")


@pytest.mark.parametrize("spoiled", ["axis", "load", "elsewhere", "other buffer"])
def test_groups_that_start_from_no_constant_are_refused(spoiled: str) -> None:
    function = as_written()

    def changed(block: SBlock) -> SBlock:
        if block.name_hint != "top":
            return block
        store, axis = block.init, block.iter_vars[0].var
        assert isinstance(store, tirx.BufferStore)
        to, value, indices = store.buffer, store.value, list(store.indices)
        match spoiled:
            case "axis":
                value = axis.astype("float32")
            case "load":
                value = tirx.BufferLoad(function.params[2], [axis])
            case "elsewhere":
                indices[1] = indices[1] + 1
            case "other buffer":
                to = function.params[3]
        init = tirx.BufferStore(to, value, indices)
        return SBlock(
            block.iter_vars, block.reads, block.writes, "top", block.body, init,
            block.alloc_buffers, block.match_buffers, block.annotations,
        )  # fmt: skip

    body = tvm_ffi.structural_map(function.body, (SBlock, changed))
    with pytest.raises(ScheduleError, match="`top` compares columns with no constant to start"):
        mfmadsl.gemm_schedule(function.with_body(body), arch="gfx942")


def compared_as(dtype: str) -> PrimFunc:
    """What columns are above the largest of their groups, which are compared in a type."""
    m, n, k = 70, 128, 64
    r, c = te.reduce_axis((0, k), "r"), te.reduce_axis((0, 32), "c")
    x, w = te.placeholder((m, k), "float32", "x"), te.placeholder((n, k), "float32", "w")
    y = te.compute((m, n), lambda i, j: te.sum(x[i, r] * w[j, r], axis=[r]), "y")
    z = te.compute((m, n), lambda i, j: y[i, j].astype(dtype), "z")
    top = te.compute((m, n // 32), lambda i, g: te.max(z[i, g * 32 + c], axis=[c]), "top")
    above = te.compute((m, n), lambda i, j: z[i, j] - top[i, j // 32], "above")
    return te.create_prim_func([x, w, above, top])


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("dtype", COMPARED)
def test_groups_are_compared_in_each_type(arch: str, dtype: str) -> None:
    """Lanes exchange words of 32 bits: parts of one, and two of them, are put together again."""
    m, n, k = 70, 128, 64
    rng = np.random.default_rng(3)
    a, b = np.zeros((m, k), "float32"), rng.permutation(n * k).reshape(n, k).astype("float32")
    a[np.arange(m), np.arange(m) % k] = 1  # so that each row is a column of B
    b %= 120
    if not dtype.startswith("uint"):
        b -= 60
    if dtype == "int64":
        a[::2] *= np.float32(2.0**40)  # what the low words alone do not tell
    exact = (a.astype("float64") @ b.T.astype("float64")).astype(numpy_type(dtype))
    largest = exact.reshape(m, -1, 32).max(-1)
    above, top = np.zeros_like(exact), np.zeros_like(largest)
    mfmadsl.sanitize(built(compared_as(dtype), arch), [a, b, above, top])
    np.testing.assert_array_equal(top, largest)
    np.testing.assert_array_equal(above, exact - np.repeat(largest, 32, axis=1))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_groups_that_are_compared_in_eight_bits_are_refused(dtype: str) -> None:
    with pytest.raises(ScheduleError, match=f"compares columns as {dtype}"):
        mfmadsl.gemm_schedule(compared_as(dtype), arch="gfx950")


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_extents_of_64_bits(arch: str, symbolic: bool) -> None:
    m, n, k = 70, 128, 64
    columns, inner = (tirx.IntImm("int64", each) for each in (n, k))
    rows = te.var("m", "int64") if symbolic else tirx.IntImm("int64", m)
    r = te.reduce_axis((0, inner), "r")
    x, w = te.placeholder((rows, inner), "float16", "x"), te.placeholder((n, k), "float16", "w")
    y = te.compute(
        (rows, columns),
        lambda i, j: te.sum(x[i, r].astype("float32") * w[j, r].astype("float32"), axis=[r]),
        "y",
    )
    z = te.compute((rows, columns), lambda i, j: y[i, j] + i.astype("float32"), "z")
    workload = mfmadsl.mx_output(te.create_prim_func([x, w, z]), "fp4")
    a, b = factors(m, n, k)
    given = [a.astype("float16"), b.astype("float16")]
    check(built(workload, arch), "fp4", given, a @ b.T + np.arange(m)[:, None])


@pytest.mark.parametrize("width", [3, 64, 128])
def test_groups_of_other_widths_are_refused(width: int) -> None:
    n = 128 if width != 3 else 129
    with pytest.raises(ScheduleError, match="other columns of a product than 2, 4, 8, 16 or 32"):
        mfmadsl.gemm_schedule(as_written(n, width), arch="gfx942")


@pytest.mark.parametrize(
    "changes",
    [
        {"block": (64, 16), "waves": (1, 1), "k_waves": 1},
        {"block": (64, 64), "waves": (1, 4), "k_waves": 1},
        {"block": (64, 48), "waves": (1, 1), "k_waves": 1},
    ],
)
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_tilings_that_take_groups_apart_are_refused(changes: dict[str, Any], arch: str) -> None:
    workload = mfmadsl.mx_output(mfmadsl.matmul(64, 192, 64, "float16", "float32", True), "fp8")
    name = next(
        each
        for each in ("mfma_f32_16x16x32_f16", "mfma_f32_16x16x16_f16")
        if arch in mfmadsl.find(each).chips
    )
    tiling = replace(
        mfmadsl.gemm_tiling(workload, arch=arch),
        **changes, instruction=name, stages=1, k_step=64, k_pack=1,
    )  # fmt: skip
    with pytest.raises(ScheduleError, match="32 neighbouring columns"):
        mfmadsl.gemm_schedule(workload, arch=arch, tiling=tiling)


def test_workloads_that_cannot_be_quantised_are_refused() -> None:
    matmul = mfmadsl.matmul(32, 64, 64, "float16", "float32", True)
    with pytest.raises(ArgumentError, match="element_type"):
        mfmadsl.mx_output(matmul, "fp6")
    with pytest.raises(ScheduleError, match="is float16: an MX output is made of float32"):
        mfmadsl.mx_output(mfmadsl.matmul(32, 64, 64, "float16", "float16", True), "fp8")
    with pytest.raises(ScheduleError, match="is no multiple of 32"):
        mfmadsl.mx_output(mfmadsl.matmul(32, 40, 64, "float16", "float32", True), "fp8")
    with pytest.raises(ScheduleError, match="made of one result"):
        mfmadsl.mx_output(mfmadsl.mx_output(matmul, "fp8"), "fp8")


FORMS: dict[str, dict[str, Any]] = {
    "halves": {"dtypes": ("float16", None, None)},
    "bfloats": {"dtypes": ("bfloat16", None, None)},
    "floats": {"dtypes": ("float32", None, None)},
    "scaled": {"form": "scaled", "dtypes": ("float4_e2m1fn", "float8_e5m2", None)},
    "blocks": {"form": "blocks"},
    "sparse": {"form": "sparse", "dtypes": ("bfloat16", None, None)},
    "gptq": {"weights": "gptq", "group": 32},
    "mxfp4": {"weights": "mxfp4"},
    "experts": {"dtypes": ("bfloat16", None, None), "experts": 3},
    "experts of blocks": {"form": "blocks", "experts": 2},
    "experts of gptq": {"weights": "gptq", "group": 32, "experts": 3},
}


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 120))
def test_a_random_product(seed: int) -> None:
    """Any form, tiling and epilogue, under the sanitizer: as close to float64 as the type is."""
    rng = np.random.default_rng(seed)
    arch, form = rng.choice(["gfx942", "gfx950"]), str(rng.choice(list(FORMS)))
    options = dict(FORMS[form])
    if options.get("form") == "blocks":
        options["dtypes"] = (f"float8_e4m3fn{'uz' if arch == 'gfx942' else ''}", None, None)
    gemm = mfmadsl.Gemm(
        None, str(arch), int(rng.integers(1, 140)), 32 * int(rng.integers(1, 8)),
        32 * int(rng.integers(1, 12)),
        b_transposed="weights" not in options
        and (form not in ("halves", "floats", "sparse") or bool(rng.random() < 0.5)),
        batch=2 if not options.keys() & {"weights", "experts"} and rng.random() < 0.2 else None,
        epilogue=("bias", "relu") if rng.random() < 0.3 else (),
        mx_output=str(rng.choice(list(TYPES.values()))), **options,
    )  # fmt: skip
    workload = gemm.workload()
    offered = gemm_tilings(workload, arch=str(arch))
    tiling = offered[int(len(offered) * rng.random() ** 2)]
    said = f"{gemm.name} on {arch}: {tiling}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowLoopWarning)
        schedule = mfmadsl.gemm_schedule(workload, arch=str(arch), tiling=tiling)
        kernel = mfmadsl.build(schedule, str(arch))
    arrays = gemm.operands()
    mfmadsl.sanitize(kernel, list(arrays))
    parts = tiling.split_k * tiling.k_waves
    found = Tolerance(gemm, parts).compare(*arrays)
    assert found.agrees, f"{said}: {found}"
