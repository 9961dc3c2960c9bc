"""What is made of two neighbouring columns of a product, in its kernel: gates and rotations.

The factors are small numbers, whole or multiples of a power of two, so that sums are exact in
float32 whatever their order, and each names its row or column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import te, tirx
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl import ScheduleError
from mfmadsl.backend import Kernel
from mfmadsl.error import ArgumentError
from mfmadsl.schedule.product.group_output import group_output
from mfmadsl.schedule.workload.activation import ACTIVATIONS
from tests.conftest import FEW_EXAMPLES

Array = npt.NDArray[Any]
Pairs = Callable[[te.Tensor, Any, Any], Any]
CHIPS = ["gfx908", "gfx90a", "gfx942", "gfx950"]
GATES = list(zip(ACTIVATIONS, ("float16", "bfloat16", "float32"), strict=True))
SHAPES = [(16, 32, 64), (75, 98, 128), (200, 256, 160), (1, 512, 1024)]


def factors(m: int, n: int, k: int) -> tuple[Array, Array]:
    generator = np.random.default_rng(m + n + k)
    a = generator.integers(-2, 3, (m, k)) * 2.0 ** generator.integers(-3, 2, (m, 1))
    b = generator.integers(-2, 3, (n, k)) * 2.0 ** generator.integers(-3, 2, (n, 1))
    return a, b


def gate_of(sums: Array, activation: str = "silu") -> Array:
    """In float64, of columns that are gate and up in turn."""
    gate, up = sums[..., ::2], sums[..., 1::2]
    made = {
        "silu": lambda x: x / (1 + np.exp(-x)),
        "gelu": lambda x: 0.5 * x * (1 + np.vectorize(erf)(x * 0.5**0.5)),
        "relu": lambda x: np.maximum(x, 0),
    }
    found: Array = made[activation](gate) * up
    return found


def built(workload: PrimFunc, arch: str, **changes: Any) -> Kernel:
    tiling = None
    if changes:
        tiling = replace(mfmadsl.gemm_tiling(workload, arch=arch), **changes)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch, tiling=tiling), arch)
    assert not kernel.remarks
    return kernel


def check(kernel: Kernel, arguments: list[Array], wanted: Array, launches: int = 1) -> None:
    """Run it under the sanitizer; all of it is one launch, where K is not split."""
    result = np.full(wanted.shape, np.nan, str(kernel.arguments[-1].dtype))
    assert len(kernel.launches([*arguments, result])) == launches
    mfmadsl.sanitize(kernel, [*arguments, result])
    bound = {"float32": 2**-18, "float16": 2**-10, "bfloat16": 2**-7}[str(result.dtype)]
    np.testing.assert_allclose(result.astype("float64"), wanted, rtol=bound, atol=bound)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("b_transposed", [True, False])
@pytest.mark.parametrize(("activation", "dtype"), GATES)
def test_a_gate_and_what_it_gates(
    arch: str, shape: tuple[int, int, int], b_transposed: bool, activation: str, dtype: str
) -> None:
    m, n, k = shape
    plain = mfmadsl.matmul(m, n, k, "float16", "float32", b_transposed)
    kernel = built(mfmadsl.gated(plain, activation, dtype), arch)
    a, b = factors(m, n, k)
    arguments = [a.astype("float16"), (b if b_transposed else b.T.copy()).astype("float16")]
    check(kernel, arguments, gate_of(a @ b.T, activation))


@pytest.mark.parametrize(
    ("arch", "changes"),
    [
        ("gfx942", {"block": (64, 64), "waves": (1, 1), "k_waves": 1, "k_step": 64}),
        ("gfx942", {"block": (32, 64), "waves": (1, 2), "k_waves": 2, "k_step": 128}),
        ("gfx942", {"block": (32, 32), "waves": (1, 1), "k_waves": 1, "split_k": 3,
                    "k_step": 64}),
        ("gfx942", {"block": (64, 160), "waves": (4, 1), "k_waves": 1, "k_step": 64}),
        ("gfx950", {"block": (256, 128), "waves": (2, 2), "k_waves": 1, "k_step": 64}),
        ("gfx950", {"block": (64, 64), "waves": (1, 1), "k_waves": 1, "persistent": True}),
        ("gfx950", {"block": (32, 64), "waves": (2, 1), "k_waves": 1,
                    "instruction": "mfma_f32_16x16x32_f16"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("made", ["gate", "rotation"])
def test_each_way_to_hold_a_pair(arch: str, changes: dict[str, Any], made: str) -> None:
    m, n, k = 100, 320, 768
    a, b = factors(m, n, k)
    arguments = [a.astype("float16"), b.astype("float16")]
    if made == "gate":
        workload, wanted = plain_with(m, n, k, gate), (a @ b.T)[:, ::2] * (a @ b.T)[:, 1::2] + 1
    else:
        workload, wanted = rotated(m, n, k), turned(a @ b.T)
        arguments.append(angles(m, n))
    kernel = built(workload, arch, stages=1, **changes)
    check(kernel, arguments, wanted, 1 if changes.get("split_k", 1) == 1 else 2)


def plain_with(m: int, n: int, k: int, pairs: Pairs, columns: int | None = None) -> PrimFunc:
    """A product, and a result of as many columns as it has pairs."""
    r = te.reduce_axis((0, k), "r")
    x, w = te.placeholder((m, k), "float16", "x"), te.placeholder((n, k), "float16", "w")
    sums = te.compute(
        (m, n),
        lambda i, j: te.sum(x[i, r].astype("float32") * w[j, r].astype("float32"), axis=[r]),
        "sums",
    )
    made = te.compute((m, columns or n // 2), lambda i, j: pairs(sums, i, j), "made")
    return te.create_prim_func([x, w, made])


def gate(sums: te.Tensor, i: Any, g: Any) -> Any:
    return sums[i, g * 2] * sums[i, g * 2 + 1] + 1.0


def rotated(m: int, n: int, k: int) -> PrimFunc:
    """A product in float16, of which each pair of columns is turned by an angle of its row."""
    r = te.reduce_axis((0, k), "r")
    x, w = te.placeholder((m, k), "float16", "x"), te.placeholder((n, k), "float16", "w")
    table = te.placeholder((2, m, n // 2), "float32", "table")
    sums = te.compute(
        (m, n),
        lambda i, j: te.sum(x[i, r].astype("float32") * w[j, r].astype("float32"), axis=[r]),
        "sums",
    )
    scaled = te.compute((m, n), lambda i, j: sums[i, j] * 0.5, "scaled")

    def element(i: Any, j: Any) -> Any:
        other = tirx.Select(j % 2 < 1, -scaled[i, j + 1], scaled[i, j - 1])
        return scaled[i, j] * table[0, i, j // 2] + other * table[1, i, j // 2]

    made = te.compute((m, n), element, "made")
    return te.create_prim_func([x, w, table, made])


def angles(m: int, n: int) -> Array:
    angle = np.arange(m)[:, None] * 10000.0 ** (-np.arange(n // 2) / (n // 2))
    return np.stack([np.cos(angle), np.sin(angle)]).astype("float32")


def turned(sums: Array) -> Array:
    """Pairs as complex numbers, times those of the angles."""
    cosine, sine = angles(*sums.shape).astype("float64")
    found = (sums[:, ::2] + 1j * sums[:, 1::2]) * 0.5 * (cosine + 1j * sine)
    return np.stack([found.real, found.imag], axis=-1).reshape(sums.shape)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_rotation(arch: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = factors(m, n, k)
    arguments = [a.astype("float16"), b.astype("float16"), angles(m, n)]
    check(built(rotated(m, n, k), arch), arguments, turned(a @ b.T))


def test_several_results_of_pairs_and_of_elements() -> None:
    m, n, k = 40, 64, 96
    r = te.reduce_axis((0, k), "r")
    x, w = te.placeholder((m, k), "float16", "x"), te.placeholder((n, k), "float16", "w")
    bias = te.placeholder((n,), "float32", "bias")
    sums = te.compute(
        (m, n),
        lambda i, j: te.sum(x[i, r].astype("float32") * w[j, r].astype("float32"), axis=[r]),
        "sums",
    )
    y = te.compute((m, n), lambda i, j: sums[i, j] + bias[j], "y")
    total = te.compute((m, n // 2), lambda i, g: y[i, 2 * g] + y[i, 2 * g + 1], "total")
    swapped = te.compute((m, n), lambda i, j: y[i, j + 1 - j % 2 * 2] * bias[j], "swapped")
    kernel = built(te.create_prim_func([x, w, bias, total, swapped]), "gfx942")
    a, b = factors(m, n, k)
    add = np.arange(n).astype("float32")
    found = [np.zeros((m, n // 2), "float32"), np.zeros((m, n), "float32")]
    arguments = [a.astype("float16"), b.astype("float16"), add, *found]
    assert len(kernel.launches(arguments)) == 1
    mfmadsl.sanitize(kernel, arguments)
    exact = a @ b.T + add
    np.testing.assert_array_equal(found[0], (exact[:, ::2] + exact[:, 1::2]).astype("float32"))
    other = exact.reshape(m, n // 2, 2)[:, :, ::-1].reshape(m, n)
    np.testing.assert_array_equal(found[1], (other * add).astype("float32"))


@pytest.mark.parametrize("used", ["behind the product alone", "before it, too"])
def test_what_other_blocks_compute_is_read_as_well(used: str) -> None:
    m, n, k = 40, 64, 64
    r = te.reduce_axis((0, k), "r")
    x, w = te.placeholder((m, k), "float16", "x"), te.placeholder((n, k), "float16", "w")
    scale = te.placeholder((n,), "float32", "scale")
    twice = te.compute((n,), lambda j: scale[j] * 2.0, "twice")
    weights = w
    if used == "before it, too":
        weights = te.compute((n, k), lambda j, r: w[j, r] * twice[j].astype("float16"), "weights")
    sums = te.compute(
        (m, n),
        lambda i, j: te.sum(x[i, r].astype("float32") * weights[j, r].astype("float32"), axis=[r]),
        "sums",
    )
    made = te.compute(
        (m, n // 2),
        lambda i, g: sums[i, 2 * g] * twice[2 * g] + sums[i, 2 * g + 1] * twice[2 * g + 1],
        "made",
    )
    workload = te.create_prim_func([x, w, scale, made])
    assert group_output(workload) is not None
    a, b = factors(m, n, k)
    factor = 2.0 ** (np.arange(n) % 5 - 2)
    sums_of = (a @ b.T) * (2 * factor) ** (1 if used == "behind the product alone" else 2)
    arguments = [a.astype("float16"), b.astype("float16"), factor.astype("float32")]
    check(built(workload, "gfx942"), arguments, sums_of[:, ::2] + sums_of[:, 1::2])


def test_sums_of_other_blocks_are_read_by_a_kernel_of_its_own() -> None:
    m, n, k = 40, 64, 64
    r, s = te.reduce_axis((0, k), "r"), te.reduce_axis((0, k), "s")
    x, w = te.placeholder((m, k), "float16", "x"), te.placeholder((n, k), "float16", "w")
    sums = te.compute(
        (m, n),
        lambda i, j: te.sum(x[i, r].astype("float32") * w[j, r].astype("float32"), axis=[r]),
        "sums",
    )
    of_rows = te.compute((m,), lambda i: te.sum(x[i, s].astype("float32"), axis=[s]), "of_rows")
    made = te.compute(
        (m, n // 2), lambda i, g: sums[i, 2 * g] * of_rows[i] + sums[i, 2 * g + 1], "made"
    )
    assert group_output(te.create_prim_func([x, w, made])) is None


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
    workload = mfmadsl.gated(te.create_prim_func([x, w, y]), "relu")
    a, b = factors(m, n, k)
    kernel = built(workload, arch)
    check(kernel, [a.astype("float16"), b.astype("float16")], gate_of(a @ b.T, "relu"))


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_experts(arch: str) -> None:
    m, n, k = 75, 128, 128
    a, b = factors(m, 3 * n, k)
    ends, start, exact = np.array([10, 10, m], "int32"), 0, np.zeros((m, n))
    for group, end in enumerate(ends):
        exact[start:end] = a[start:end] @ b.reshape(3, n, k)[group].T
        start = end
    plain = mfmadsl.grouped_matmul(m, n, k, 3, "float16", "float32")
    arguments = [a.astype("float16"), ends, b.reshape(3, n, k).astype("float16")]
    check(built(mfmadsl.gated(plain, "relu", "float16"), arch), arguments, gate_of(exact, "relu"))


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("m", [1, 40])
def test_weights_of_few_bits(arch: str, m: int) -> None:
    n, k = 128, 256
    generator = np.random.default_rng(m)
    q = generator.integers(-8, 8, (n, k)).astype("int8")
    scales = (2.0 ** generator.integers(-4, 0, n)).astype("float16")
    a, _ = factors(m, n, k)
    kernel = built(mfmadsl.gated(mfmadsl.quantised_matmul(m, n, k, "int8"), "silu"), arch)
    exact = a @ (q * scales[:, None].astype("float64")).T
    check(kernel, [a.astype("float16"), q, scales], gate_of(exact))


def test_operands_with_scales() -> None:
    m, n, k = 70, 160, 256
    generator = np.random.default_rng(2)
    arguments, values = [], []
    for rows in (m, n):
        elements = generator.integers(-3, 4, (rows, k)).astype("float8_e4m3fn")
        scales = generator.integers(126, 129, (rows, k // 32), "uint8")
        arguments.append((elements.view("uint8"), scales))
        values.append(elements.astype("float64") * np.repeat(2.0 ** (scales - 127.0), 32, axis=-1))
    (a, scale_a), (b, scale_b) = arguments
    kernel = built(mfmadsl.gated(mfmadsl.scaled_matmul(m, n, k, "fp8"), "relu"), "gfx950")
    check(kernel, [a, b, scale_a, scale_b], gate_of(values[0] @ values[1].T, "relu"))


PLACES = {
    "the next pair's": lambda s, i, g: s[i, g * 2] + s[i, (g * 2 + 2) % s.shape[1]],
    "the other half's": lambda s, i, g: s[i, g] + s[i, g + s.shape[1] // 2],
    "from one on": lambda s, i, g: s[i, g * 2 + 1] + s[i, (g * 2 + 2) % s.shape[1]],
    "another row's": lambda s, i, g: s[i, g * 2] + s[(i + 1) % s.shape[0], g * 2 + 1],
    "backwards": lambda s, i, g: s[i, s.shape[1] - 1 - g * 2] + s[i, g],
}


@pytest.mark.parametrize("place", PLACES)
def test_other_places_are_read_by_a_kernel_of_their_own(place: str) -> None:
    m, n, k = 40, 64, 96
    workload = plain_with(m, n, k, PLACES[place])
    assert group_output(workload) is None
    a, b = factors(m, n, k)
    sums = a @ b.T
    i, g = np.arange(m)[:, None], np.arange(n // 2)[None]
    wanted = {
        "the next pair's": lambda: sums[i, g * 2] + sums[i, (g * 2 + 2) % n],
        "the other half's": lambda: sums[i, g] + sums[i, g + n // 2],
        "from one on": lambda: sums[i, g * 2 + 1] + sums[i, (g * 2 + 2) % n],
        "another row's": lambda: sums[i, g * 2] + sums[(i + 1) % m, g * 2 + 1],
        "backwards": lambda: sums[i, n - 1 - g * 2] + sums[i, g],
    }
    arguments = [a.astype("float16"), b.astype("float16")]
    check(built(workload, "gfx942"), arguments, wanted[place](), launches=2)


@pytest.mark.thorough
@FEW_EXAMPLES
@given(data=st.data())
def test_whatever_is_made_of_a_pair_is_right(data: st.DataObject) -> None:
    """Sums of both elements, by weights that name their place, and a result of either kind."""
    m, pairs, k = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40)), 32
    n = pairs * 2
    weights = [data.draw(st.sampled_from([-3, -2, 1, 2, 4])) for _ in range(4)]
    of_pair = data.draw(st.booleans())
    arch = data.draw(st.sampled_from(CHIPS))

    def made(sums: te.Tensor, i: Any, j: Any) -> Any:
        if of_pair:
            return sums[i, 2 * j] * float(weights[0]) + sums[i, 2 * j + 1] * float(weights[1])
        base = j // 2 * 2
        even = sums[i, base] * float(weights[0]) + sums[i, base + 1] * float(weights[1])
        odd = sums[i, base] * float(weights[2]) + sums[i, base + 1] * float(weights[3])
        return tirx.if_then_else(j % 2 < 1, even, odd) + j.astype("float32")

    a, b = factors(m, n, k)
    sums = a @ b.T
    even, odd = sums[:, ::2], sums[:, 1::2]
    first = even * weights[0] + odd * weights[1]
    second = even * weights[2] + odd * weights[3]
    both = np.stack([first, second], axis=-1).reshape(m, n) + np.arange(n)
    workload = plain_with(m, n, k, made, pairs if of_pair else n)
    kernel = built(workload, arch)
    arguments = [a.astype("float16"), b.astype("float16")]
    result = np.full((m, pairs if of_pair else n), np.nan, "float32")
    mfmadsl.sanitize(kernel, [*arguments, result])
    np.testing.assert_array_equal(result, (first if of_pair else both).astype("float32"))


def test_what_a_gate_is_not_made_of_is_refused() -> None:
    plain = mfmadsl.matmul(16, 32, 32, "float16", "float32")
    with pytest.raises(ArgumentError, match="activation"):
        mfmadsl.gated(plain, "tanh")
    with pytest.raises(ArgumentError, match="out_dtype"):
        mfmadsl.gated(plain, "silu", "int4")
    with pytest.raises(ScheduleError, match="is made of float32"):
        mfmadsl.gated(mfmadsl.matmul(16, 32, 32, "int8", "int32"))
    with pytest.raises(ScheduleError, match="have 33 elements, which is no multiple of 2"):
        mfmadsl.gated(mfmadsl.matmul(16, 33, 32, "float16", "float32"))
    with pytest.raises(ScheduleError, match="it writes `C` and `SCALE_C`"):
        mfmadsl.gated(mfmadsl.mx_output(plain, "fp8"))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("m", "b_transposed", "changes", "launches"),
    [
        (32, True, {}, 1),
        (1, True, {"block": (16, 64), "split_k": 4, "one_launch": True}, 1),  # a lane has a column
        (32, True, {"block": (32, 64), "split_k": 2}, 2),
        (200, False, {}, None),  # in one launch, where tiles may take columns in turn
    ],
)
def test_a_gate_in_an_mx_format(
    arch: str, m: int, b_transposed: bool, changes: dict[str, Any], launches: int | None
) -> None:
    n, k = 128, 512
    plain = mfmadsl.matmul(m, n, k, "float16", "float32", b_transposed)
    a, b = factors(m, n, k)
    arguments = [a.astype("float16"), (b if b_transposed else b.T.copy()).astype("float16")]
    elements, scales = np.zeros((m, n // 2), "uint8"), np.zeros((m, n // 64), "uint8")
    elements = elements.view("float8_e4m3fn")
    if changes:
        changes = {"waves": (1, 1), "k_waves": 1, "k_step": 64, "stages": 1, **changes}
    kernel = built(mfmadsl.mx_output(mfmadsl.gated(plain, "relu"), "fp8"), arch, **changes)
    if launches is not None:
        assert len(kernel.launches([*arguments, elements, scales])) == launches
    mfmadsl.sanitize(kernel, [*arguments, elements, scales])
    exact = gate_of(a @ b.T, "relu")
    found = elements.astype("float64") * np.repeat(2.0 ** (scales - 127.0), 32, axis=1)
    largest = np.repeat(np.abs(exact.reshape(m, -1, 32)).max(axis=2), 32, axis=1)
    assert (np.abs(found - exact) <= largest * 2**-3).all()  # cut to the largest of fp8
    assert np.abs(found).max() > 0


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_lanes_of_the_last_workgroup_that_store_nothing_give_their_columns(arch: str) -> None:
    m, n, k = 1, 128, 512
    a, b = factors(m, n, k)
    workload = mfmadsl.gated(mfmadsl.matmul(m, n, k, "float16", "float32", True), "relu")
    changes = {"block": (16, 64), "waves": (1, 1), "k_waves": 1, "k_step": 64, "stages": 1}
    kernel = built(workload, arch, **changes, split_k=4, one_launch=True)
    check(kernel, [a.astype("float16"), b.astype("float16")], gate_of(a @ b.T, "relu"))
