"""Scaled products of floats, as people write them, in the emulator under the sanitizer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tvm import te, tirx
from tvm.script import from_source
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl import ScheduleError, SlowLoopWarning
from mfmadsl.backend import Kernel
from tests.cases import drawn
from tests.schedule.matrix_core.scaled.operands import BITS, GROUP, Scaled, packed, scaled

ARCH = "gfx950"
FP8, FP4, E8M0 = "float8_e4m3fn", "float4_e2m1fn", "float8_e8m0fnu"


@dataclass(frozen=True)
class Form:
    """How a scaled product is written: where its scales are multiplied, and what they are."""

    a_scales: str | None = E8M0
    b_scales: str | None = E8M0
    before: bool = False
    b_along_k: bool = True
    batch: int | None = None

    def workload(self, shape: tuple[int, int, int], types: tuple[str, str]) -> PrimFunc:
        m, n, k = shape
        lead = () if self.batch is None else (self.batch,)
        a = te.placeholder((*lead, m, k), types[0], "A")
        b_shape, groups = ((n, k), (n, k // GROUP)) if self.b_along_k else ((k, n), (k // GROUP, n))
        b = te.placeholder((*lead, *b_shape), types[1], "B")
        of_a: Any = self.a_scales and te.placeholder((*lead, m, k // GROUP), self.a_scales, "SA")
        of_b: Any = self.b_scales and te.placeholder((*lead, *groups), self.b_scales, "SB")

        def left(*place: Any) -> Any:
            *which, i, x = place
            value = a[place].astype("float32")
            return value * power(of_a[(*which, i, x // GROUP)]) if of_a is not None else value

        def right(*place: Any) -> Any:
            *which, j, x = place
            at, scale = ((j, x), (j, x // GROUP)) if self.b_along_k else ((x, j), (x // GROUP, j))
            value = b[(*which, *at)].astype("float32")
            return power(of_b[(*which, *scale)]) * value if of_b is not None else value

        if self.before:
            a_values = te.compute((*lead, m, k), left, "A_values")
            b_values = te.compute((*lead, n, k), right, "B_values")
        r = te.reduce_axis((0, k), "k")

        def element(*place: Any) -> Any:
            *which, i, j = place
            if self.before:
                product = a_values[(*which, i, r)] * b_values[(*which, j, r)]
            else:
                product = left(*which, i, r) * right(*which, j, r)
            return te.sum(product, axis=[r])

        c = te.compute((*lead, m, n), element, "C")
        given = [each for each in (a, of_a, b, of_b) if each is not None]
        return te.create_prim_func([*given, c])


def power(scale: Any) -> Any:
    if scale.dtype == "uint8":
        return tirx.reinterpret("float32", scale.astype("int32") << 23)
    return scale.astype("float32")


def turned(matrix: NDArray[np.uint8], form: Form) -> NDArray[np.uint8]:
    return matrix if form.b_along_k else np.ascontiguousarray(matrix.swapaxes(-1, -2))


def check(shape: tuple[int, int, int], types: tuple[str, str], form: Form, arch: str = ARCH) -> str:
    """Build it, compare it with float64, and give its assembly."""
    m, n, k = shape
    rng = np.random.default_rng(m + n + k)
    count = form.batch or 1
    a = [scaled(rng, m, k, types[0]) for _ in range(count)]
    b = [scaled(rng, n, k, types[1]) for _ in range(count)]
    kernel = built(form.workload(shape, types), arch)

    def whole(parts: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
        return parts[0] if form.batch is None else np.stack(parts)

    octets = {
        "A": whole([each.packed for each in a]), "SA": whole([each.scales for each in a]),
        "B": turned(whole([each.packed for each in b]), form),
        "SB": turned(whole([each.scales for each in b]), form),
    }  # fmt: skip
    *operands, result = kernel.arguments
    given = [octets[each.name].view(getattr(ml_dtypes, each.dtype, np.uint8)) for each in operands]
    c = np.full(result.shape, np.nan, np.float32)
    mfmadsl.sanitize(kernel, [*given, c])
    for found, left, right in zip(c.reshape(count, m, n), a, b, strict=True):
        x, y = of(left, form.a_scales), of(right, form.b_scales)
        assert (np.abs(found - x @ y.T) <= 2**-23 * k * (np.abs(x) @ np.abs(y).T)).all()
    assert ("v_mfma_scale_" in kernel.assembly) == (arch == ARCH)
    return str(kernel.assembly)


def built(workload: PrimFunc, arch: str) -> Kernel:
    """The kernel for a chip, which says so if it converts the elements."""
    schedule = mfmadsl.gemm_schedule(workload, arch=arch)
    if arch == ARCH:
        kernel = mfmadsl.build(schedule, arch)
        assert kernel.remarks == ()
        return kernel
    with pytest.warns(SlowLoopWarning, match=f"{arch} has no scaled instructions"):
        kernel = mfmadsl.build(schedule, arch)
    assert len(kernel.remarks) == 1
    return kernel


def of(operand: Scaled, scales: str | None) -> NDArray[np.float64]:
    if scales is not None:
        return operand.values
    powers = 2.0 ** (operand.scales.astype(np.float64) - 127)
    return operand.values / np.repeat(powers, GROUP, axis=1)


@pytest.mark.parametrize("types", drawn([(a, b) for a in BITS for b in BITS], 3))
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("shape", [(48, 64, 512), (33, 17, 96)], ids=str)
def test_elements_and_scales_of_their_own_types(
    shape: tuple[int, int, int], before: bool, types: tuple[str, str]
) -> None:
    check(shape, types, Form(before=before))


@pytest.mark.parametrize("form", [
    Form(a_scales="uint8", b_scales="uint8"), Form(a_scales="uint8"), Form(b_scales=None),
    Form(a_scales=None, before=True), Form(batch=3), Form(batch=2, before=True),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("types", [(FP8, FP8), (FP4, FP8), (FP4, FP4)], ids=str)
def test_other_scales_and_batches(types: tuple[str, str], form: Form) -> None:
    check((40, 33, 352), types, form)


@pytest.mark.parametrize("before", [False, True])
def test_a_b_of_columns(before: bool) -> None:
    check((40, 33, 352), (FP8, FP8), Form(b_along_k=False, before=before))


@pytest.mark.parametrize("types", [(FP8, FP8), (FP4, FP4)], ids=str)
def test_all_goes_straight_into_the_lds(types: tuple[str, str]) -> None:
    text = check((64, 64, 2048), types, Form())
    loads = [line for line in text.splitlines() if "buffer_load" in line]
    assert loads
    assert all(line.endswith(" lds") for line in loads)


def test_exp2_of_a_byte_is_a_scale() -> None:
    text = Form(a_scales="uint8", b_scales="uint8").workload((32, 32, 128), (FP8, FP8)).script()
    for name, row in (("SA", "v_i0"), ("SB", "v_i1")):
        old = f'T.reinterpret("float32", T.Cast("int32", {name}[{row}, v_k // 32]) << 23)'
        assert old in text
        octet = f'T.Cast("float32", {name}[{row}, v_k // 32])'
        text = text.replace(old, f"T.exp2({octet} - T.float32(127.0))")
    schedule = mfmadsl.gemm_schedule(from_source(text), arch=ARCH)
    assert "v_mfma_scale_" in mfmadsl.build(schedule, ARCH).assembly


@pytest.mark.parametrize(("old", "new", "said"), [
    ("SA[v_i0, v_k // 32]", "SA[v_i0, v_k // 16 % 4]", "is not of 32 neighbouring `v_k`"),
    ("SA[v_i0, v_k // 32]", "SA[v_i1, v_k // 32]", "more than one scale for `v_i1`"),
    ("SB[v_i1, v_k // 32]", "SB[0, v_k // 32]", "belongs to no row or column"),
    ("B[v_i1, v_k]", "B[v_i0, v_k]", "more than one element for `v_i0`"),
    ("T.float32(0.0)", "T.float32(1.0)", "does not start its sum from zero"),
    ("C[v_i0, v_i1] = C[v_i0, v_i1] +", "C[v_i1, v_i0] = C[v_i1, v_i0] +", "not by its own loops"),
], ids=str)  # fmt: skip
def test_what_no_instruction_does_is_refused(old: str, new: str, said: str) -> None:
    text = Form().workload((32, 32, 128), (FP8, FP8)).script()
    assert old in text
    with pytest.raises(ScheduleError, match=said):
        mfmadsl.gemm_schedule(from_source(text.replace(old, new)), arch=ARCH)


def test_a_matrix_times_itself() -> None:
    text = Form().workload((32, 32, 128), (FP4, FP4)).script()
    for old, new in (
        (f', B: T.Buffer((32, 128), "{FP4}"), SB: T.Buffer((32, 4), "{E8M0}")', ""),
        ("B[v_i1, v_k]", "A[v_i1, v_k]"),
        ("SB[v_i1", "SA[v_i1"),
    ):
        assert old in text
        text = text.replace(old, new)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(from_source(text), arch=ARCH), ARCH)
    a = scaled(np.random.default_rng(0), 32, 128, FP4)
    c = np.zeros((32, 32), np.float32)
    mfmadsl.sanitize(kernel, [a.packed, a.scales.view(ml_dtypes.float8_e8m0fnu), c])
    np.testing.assert_allclose(c, a.values @ a.values.T, rtol=1e-5, atol=1e-3)


def test_a_part_of_a_matrix() -> None:
    """Of 40 rows of 192 elements the first 32 of 128."""
    text = Form().workload((32, 32, 128), (FP4, FP4)).script()
    old = f'A: T.Buffer((32, 128), "{FP4}")'
    assert old in text
    text = text.replace(old, f'A: T.Buffer((40, 192), "{FP4}")')
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(from_source(text), arch=ARCH), ARCH)
    rng = np.random.default_rng(0)
    a, b = scaled(rng, 40, 192, FP4), scaled(rng, 32, 128, FP4)
    of_a = np.ascontiguousarray(a.scales[:32, :4])
    c = np.zeros((32, 32), np.float32)
    scales = [each.view(ml_dtypes.float8_e8m0fnu) for each in (of_a, b.scales)]
    mfmadsl.sanitize(kernel, [a.packed, scales[0], b.packed, scales[1], c])
    np.testing.assert_allclose(c, a.values[:32, :128] @ b.values.T, rtol=1e-5, atol=1e-3)


def test_a_block_before_it_that_reads_its_own_result_is_refused() -> None:
    text = Form(before=True).workload((32, 32, 128), (FP8, FP8)).script()
    old = 'A_values[v_i0, v_i1] = T.Cast("float32", A[v_i0, v_i1])'
    assert old in text
    with pytest.raises(ScheduleError):
        mfmadsl.gemm_schedule(
            from_source(text.replace(old, "A_values[v_i0, v_i1] = A_values[v_i0, v_i1]")),
            arch=ARCH,
        )


@pytest.mark.parametrize(("old", "new", "said"), [
    ("            T.writes(A_values", "            T.where(i1 < 64)\n            T.writes(A_values",
     "`A_values` runs under the condition"),
    ("T.grid(32, 128):\n        with T.sblock(\"A_values\")",
     "T.grid(32, 64):\n        with T.sblock(\"A_values\")", "`A_values`"),
], ids=["condition", "part"])  # fmt: skip
def test_a_block_before_it_that_leaves_elements_out_is_refused(
    old: str, new: str, said: str
) -> None:
    text = Form(before=True).workload((32, 32, 128), (FP8, FP8)).script()
    assert old in text
    with pytest.raises(ScheduleError, match=said):
        mfmadsl.gemm_schedule(from_source(text.replace(old, new)), arch=ARCH)


def test_small_elements_of_a_block_that_others_read_are_refused() -> None:
    text = Form(before=True).workload((32, 32, 32), (FP4, FP4)).script()
    own = 'C: T.Buffer((32, 32), "float32")'
    assert own in text
    text = text.replace(own, f'{own}, D: T.Buffer((32, 32), "float32")')
    text += """
    for i, j in T.grid(32, 32):
        with T.sblock("D"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            D[v_i, v_j] = C[v_i, v_j] + A_values[v_i, v_j]
"""
    with pytest.raises(ScheduleError, match="block `A_values` reads `A`, too"):
        mfmadsl.gemm_schedule(from_source(text), arch=ARCH)


def test_a_sum_over_a_part_of_a_group_is_refused() -> None:
    with pytest.raises(ScheduleError, match="sums over 48, which is no multiple of 32"):
        mfmadsl.gemm_schedule(Form().workload((32, 32, 48), (FP8, FP8)), arch=ARCH)


@pytest.mark.parametrize(("arch", "types"), drawn(
    [(arch, (a, b)) for arch in ("gfx908", "gfx90a", "gfx942") for a in BITS for b in BITS], 4
))  # fmt: skip
@pytest.mark.parametrize("form", [
    Form(), Form(before=True, a_scales="uint8"), Form(b_scales=None, batch=2),
], ids=str)  # fmt: skip
def test_a_chip_without_scaled_instructions_multiplies_bfloat16(
    arch: str, types: tuple[str, str], form: Form
) -> None:
    assert re.search(r"v_mfma_f32_\w*bf16", check((33, 17, 352), types, form, arch))


def test_of_converted_elements_a_nan_spoils_its_row_or_column_only() -> None:
    m, n, k = 20, 33, 96
    rng = np.random.default_rng(2)
    a, b = scaled(rng, m, k, FP4), scaled(rng, n, k, FP8)
    kernel = built(mfmadsl.scaled_matmul(m, n, k, FP4, FP8), "gfx942")
    a.scales[3, 1] = b.scales[7, 2] = 255  # NaN (OCP Microscaling Formats v1.0, 5.4.1)
    b.packed[9, 95] = 0x7F
    c = np.zeros((m, n), np.float32)
    mfmadsl.sanitize(kernel, [a.packed, b.packed, a.scales, b.scales, c])
    spoiled = np.zeros((m, n), bool)
    spoiled[3], spoiled[:, [7, 9]] = True, True
    np.testing.assert_array_equal(np.isnan(c), spoiled)
    wanted = (a.values @ b.values.T)[~spoiled]
    np.testing.assert_allclose(c[~spoiled], wanted, rtol=1e-5, atol=1e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("scale", [1, 64, 127, 190, 254])
def test_all_values_of_converted_elements_are_exact(scale: int) -> None:
    """Each code times a scale, in a row with zeros, times one: all bits of its value."""
    for dtype, bits in BITS.items():
        codes = np.arange(1 << bits, dtype=np.uint8)
        element = codes.view(getattr(ml_dtypes, dtype)).astype(np.float64)
        codes, element = codes[np.isfinite(element)], element[np.isfinite(element)]
        rows = np.zeros((len(codes), GROUP), np.uint8)
        rows[np.arange(len(codes)), np.arange(len(codes)) % GROUP] = codes
        scales = np.full((len(codes), 1), scale, np.uint8)
        ones = np.full((16, GROUP), 0x38, np.uint8)  # 1.0 in float8_e4m3fn
        kernel = built(mfmadsl.scaled_matmul(len(codes), 16, GROUP, dtype, FP8), "gfx942")
        c = np.zeros((len(codes), 16), np.float32)
        of_ones = np.full((16, 1), 127, np.uint8)
        mfmadsl.sanitize(kernel, [packed(rows, bits), ones, scales, of_ones, c])
        with np.errstate(over="ignore"):
            exact = (element * 2.0 ** (scale - 127)).astype(np.float32)
        expected = exact.astype(ml_dtypes.bfloat16).astype(np.float32)
        normal = np.abs(exact) >= 2.0**-126
        np.testing.assert_array_equal(c[normal], np.repeat(expected[normal, None], 16, axis=1))
        assert (np.abs(c[~normal] - exact[~normal, None]) <= 2.0**-133).all()


def test_without_scaled_instructions_groups_need_not_be_whole() -> None:
    """Nor is an extent a number, in elements of eight bits in blocks before the sum."""
    m = te.var("m")
    a, b = te.placeholder((m, 48), FP8, "A"), te.placeholder((32, 48), FP8, "B")
    of_a = te.placeholder((m, 3), E8M0, "SA")
    left = te.compute((m, 48), lambda i, k: a[i, k].astype("float32") * power(of_a[i, k // 16]))
    right = te.compute((32, 48), lambda j, k: b[j, k].astype("float32"))
    k = te.reduce_axis((0, 48))
    c = te.compute((m, 32), lambda i, j: te.sum(left[i, k] * right[j, k], axis=[k]), "C")
    kernel = mfmadsl.build(
        mfmadsl.gemm_schedule(te.create_prim_func([a, of_a, b, c]), arch="gfx942"), "gfx942"
    )
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((rows, 48)).astype(ml_dtypes.float8_e4m3fn) for rows in (20, 32))
    scales = rng.integers(124, 131, (20, 3)).astype(np.uint8)
    result = np.zeros((20, 32), np.float32)
    mfmadsl.sanitize(kernel, [x, scales.view(ml_dtypes.float8_e8m0fnu), y, result])
    powers = np.repeat(2.0 ** (scales.astype(np.float64) - 127), 16, axis=1)
    wanted = (x.astype(np.float64) * powers) @ y.astype(np.float64).T
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-4)
