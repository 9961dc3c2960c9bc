"""GEMMs of scaled operands, in the emulator under the sanitizer, against NumPy in float64."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
from numpy.typing import NDArray
from tvm.s_tir import Schedule
from tvm.script import from_source
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl import ArgumentError, ArgumentTypeError, ScheduleError, Tiling
from mfmadsl.backend import Kernel
from mfmadsl.model import Intrinsic
from tests.cases import drawn
from tests.schedule.matrix_core.scaled.operands import BITS, Scaled, by_words, scaled, shuffled

ARCH = "gfx950"
ENTRIES = sorted(
    name for name, each in mfmadsl.library().items() if isinstance(each, Intrinsic) and each.scales
)


def types_of(name: str) -> tuple[str, str]:
    found = mfmadsl.find(name)
    return found.a.type.name, found.b.type.name


def kernel_of(workload: PrimFunc, **options: Any) -> Kernel:
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=ARCH, **options), ARCH)
    assert kernel.remarks == ()
    return kernel


def test_batches() -> None:
    rng = np.random.default_rng(3)
    shape = m, n, k = 40, 33, 352
    a, b = ([scaled(rng, rows, k, FP4[0]) for _ in range(3)] for rows in (m, n))
    kernel = kernel_of(mfmadsl.scaled_matmul(*shape, *FP4, batch=3))
    c = np.zeros((3, m, n), np.float32)
    packed = (np.stack([each.packed for each in side]) for side in (a, b))
    scales = (np.stack([each.scales for each in side]) for side in (a, b))
    mfmadsl.sanitize(kernel, [*packed, *scales, c])
    alone = kernel_of(mfmadsl.scaled_matmul(*shape, *FP4))
    for found, left, right in zip(c, a, b, strict=True):
        np.testing.assert_array_equal(found, product(alone, left, right))


def product(kernel: Kernel, a: Scaled, b: Scaled) -> NDArray[np.float32]:
    c = np.full((len(a.packed), len(b.packed)), np.nan, np.float32)
    mfmadsl.sanitize(kernel, [a.packed, b.packed, a.scales, b.scales, c])
    return c


def check(shape: tuple[int, int, int], types: tuple[str, str], **options: Any) -> Kernel:
    m, n, k = shape
    rng = np.random.default_rng(m + n + k)
    a, b = scaled(rng, m, k, types[0]), scaled(rng, n, k, types[1])
    kernel = kernel_of(mfmadsl.scaled_matmul(m, n, k, *types), **options)
    # A sum of float32 is off by no more than each addition's rounding.
    bound = 2**-23 * k * (np.abs(a.values) @ np.abs(b.values).T)
    assert (np.abs(product(kernel, a, b) - a.values @ b.values.T) <= bound).all()
    return kernel


def test_the_library_has_both_tiles_of_all_pairs() -> None:
    assert {types_of(name) for name in ENTRIES} == {(a, b) for a in BITS for b in BITS}
    assert len(ENTRIES) == 50


@pytest.mark.parametrize("shape", [(32, 64, 256), (33, 17, 160)], ids=["whole", "ragged"])
@pytest.mark.parametrize("name", ENTRIES)
def test_each_entry_makes_a_gemm(name: str, shape: tuple[int, int, int]) -> None:
    kernel = check(shape, types_of(name), intrinsic=name)
    called = mfmadsl.find(name).name.removeprefix("mfma_scale_").rsplit("_", 2)[0]
    assert f"v_mfma_scale_{called}" in kernel.assembly


SHAPES = [(1, 128, 512), (128, 1, 32), (300, 270, 1056), (257, 96, 2080), (64, 48, 96)]


@pytest.mark.parametrize("types", drawn([(a, b) for a in BITS for b in BITS], 2))
@pytest.mark.parametrize("shape", SHAPES)
def test_any_shape(shape: tuple[int, int, int], types: tuple[str, str]) -> None:
    check(shape, types)


FP4 = "float4_e2m1fn", "float4_e2m1fn"
FP8 = "float8_e4m3fn", "float8_e4m3fn"
LARGE = Tiling((128, 128), 256, (2, 2), "mfma_scale_f32_16x16x128_f8f6f4_fp4_fp4", 1, stages=2)


OPTIONS: list[dict[str, Any]] = [
    {}, {"stages": 1}, {"stages": 3}, {"persistent": True}, {"swizzle": False}, {"group": 1},
    {"overlap": "nothing", "stages": 1}, {"overlap": "loads", "stages": 1},
    {"overlap": "fragments", "stages": 1},
    {"k_step": 512, "block": (64, 128)}, {"block": (128, 96), "waves": (2, 1)},
    {"split_k": 2}, {"split_k": 3, "stages": 1}, {"k_waves": 2, "k_step": 512, "block": (64, 64)},
]  # fmt: skip


@pytest.mark.parametrize("options", drawn(OPTIONS, 6), ids=str)
def test_any_tiling(options: dict[str, Any]) -> None:
    check((130, 200, 1056), FP4, tiling=replace(LARGE, **options))


@pytest.mark.parametrize(("options", "told"), [
    ({"stages": 3}, '"mfmadsl.pipeline": 3'),
    ({"persistent": True}, '"mfmadsl.grid.workgroups": 256'),
    ({"swizzle": False}, '"mfmadsl.swizzle": 0'),
    ({"group": 5}, '"mfmadsl.grid.group": 5'),
    ({"overlap": "loads", "stages": 1}, '"mfmadsl.overlap": "loads"'),
    ({}, '"mfmadsl.grid.dies": 8'),
    ({}, '"mfmadsl.edges": "A_shared SCALE_A_shared"'),
])  # fmt: skip
def test_the_passes_are_told(options: dict[str, Any], told: str) -> None:
    workload = mfmadsl.scaled_matmul(200, 256, 512, *FP4)
    tiling = replace(LARGE, **options)
    assert told in str(mfmadsl.gemm_schedule(workload, arch=ARCH, tiling=tiling).mod.script())


def test_whole_tiles_that_no_loop_counts_are_refused() -> None:
    workload = mfmadsl.scaled_matmul(2**31 - 1, 16, 32, *FP4)
    with pytest.raises(ScheduleError, match="loops count up to"):
        mfmadsl.gemm_schedule(workload, arch=ARCH)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", drawn(BITS, 3))
def test_what_is_known_goes_straight_into_the_lds_and_stays_in_registers(dtype: str) -> None:
    """Scales as well, by words; sums are not spilled at the edges of C."""
    for m in (4096, 4000):
        workload = mfmadsl.scaled_matmul(m, m, 4096, dtype)
        kernel = kernel_of(workload)
        assert kernel.registers.spilled < 16
        loads = [line for line in kernel.assembly.splitlines() if "buffer_load" in line]
        assert loads
        assert all(line.endswith(" lds") for line in loads)


@pytest.mark.parametrize("dtype", drawn(BITS, 2))
@pytest.mark.parametrize("shape", [(512, 512, 512), (64, 4096, 4096), (16, 256, 2048)])
def test_threads_that_have_nothing_to_copy_are_in_nobodys_way(
    shape: tuple[int, int, int], dtype: str
) -> None:
    """Scales of small tiles are fewer words than a workgroup has threads."""
    kernel = kernel_of(mfmadsl.scaled_matmul(*shape, dtype))
    loads = [line for line in kernel.assembly.splitlines() if "buffer_load" in line]
    assert loads
    assert all(line.endswith(" lds") for line in loads)


@pytest.mark.parametrize("shape", [(64, 64, 256), (100, 70, 384), (1, 300, 1152)])
@pytest.mark.parametrize("types", [FP4, ("float8_e4m3fn", "float6_e2m3fn")])
def test_scales_by_words(shape: tuple[int, int, int], types: tuple[str, str]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(k)
    a, b = scaled(rng, m, k, types[0]), scaled(rng, n, k, types[1])
    both = [mfmadsl.scaled_matmul(*shape, *types, order) for order in ("rows", "words")]
    tiling = mfmadsl.gemm_tiling(both[1], arch=ARCH)  # others add up in another order
    rows, words = (kernel_of(each, tiling=tiling) for each in both)
    c = np.zeros((m, n), np.float32)
    mfmadsl.sanitize(words, [a.packed, b.packed, by_words(a.scales), by_words(b.scales), c])
    np.testing.assert_array_equal(c, product(rows, a, b))


SHUFFLED = [
    ((256, 256, 1024), FP4), ((100, 70, 384), FP4), ((33, 47, 800), FP4), ((64, 64, 256), FP8),
    ((1, 300, 1152), ("float8_e4m3fn", "float6_e2m3fn")), ((100, 70, 96), FP8), ((16, 16, 32), FP8),
    ((130, 260, 1312), ("float4_e2m1fn", "float8_e5m2")),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "types"), SHUFFLED)
@pytest.mark.parametrize("batch", [None, 2])
def test_scales_that_are_shuffled(
    shape: tuple[int, int, int], types: tuple[str, str], batch: int | None
) -> None:
    """At any shape, the tiles' unused scales being NaN."""
    m, n, k = shape
    rng = np.random.default_rng(k)
    several = range(batch or 1)
    a, b = (
        [scaled(rng, rows, k, t) for _ in several] for rows, t in zip((m, n), types, strict=True)
    )
    workload = mfmadsl.scaled_matmul(*shape, *types, "shuffled", batch)

    def of(matrices: list[NDArray[Any]]) -> NDArray[Any]:
        return matrices[0] if batch is None else np.stack(matrices)

    operands = [
        of([each.packed for each in a]), of([each.packed for each in b]),
        of([shuffled(each.scales) for each in a]), of([shuffled(each.scales) for each in b]),
    ]  # fmt: skip
    c = np.zeros((*([] if batch is None else [batch]), m, n), np.float32)
    mfmadsl.sanitize(kernel_of(workload), [*operands, c])
    wanted = of([x.values @ y.values.T for x, y in zip(a, b, strict=True)])
    size = of([abs(x.values) @ abs(y.values).T for x, y in zip(a, b, strict=True)])
    assert (abs(c - wanted) <= 2**-23 * k * size).all()


STRAIGHT = [(FP4, (1024, 1024, 1024)), (FP8, (1024, 1024, 1024)), (FP8, (64, 512, 2048)),
            (FP8, (300, 1024, 1024))]  # fmt: skip


@pytest.mark.parametrize(("types", "shape"), STRAIGHT)
def test_shuffled_scales_go_straight_into_the_lds(
    types: tuple[str, str], shape: tuple[int, int, int]
) -> None:
    """As they lie, also where a step has fewer than there are threads."""
    kernel = kernel_of(mfmadsl.scaled_matmul(*shape, *types, "shuffled"))
    loads = [line for line in kernel.assembly.splitlines() if "buffer_load" in line]
    assert loads
    assert all(line.endswith(" lds") for line in loads)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("block", "waves", "stages"),
    [((32, 64), (1, 2), 2), ((64, 32), (2, 1), 2), ((64, 128), (1, 4), 3), ((96, 96), (2, 2), 3)],
)
def test_tiles_with_fewer_shuffled_scales_than_threads(
    block: tuple[int, int], waves: tuple[int, int], stages: int
) -> None:
    instruction = "mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8"
    tiling = Tiling(block, 256, waves, instruction, 1, stages=stages)
    shape = m, n, k = 192, 256, 1024
    rng = np.random.default_rng(0)
    a, b = (scaled(rng, rows, k, FP8[0]) for rows in (m, n))
    kernel = kernel_of(mfmadsl.scaled_matmul(*shape, *FP8, "shuffled"), tiling=tiling)
    loads = [line for line in kernel.assembly.splitlines() if "buffer_load" in line]
    assert all(line.endswith(" lds") for line in loads)
    c = np.zeros((m, n), np.float32)
    mfmadsl.sanitize(kernel, [a.packed, b.packed, shuffled(a.scales), shuffled(b.scales), c])
    rows = kernel_of(mfmadsl.scaled_matmul(*shape, *FP8), tiling=tiling)
    np.testing.assert_array_equal(c, product(rows, a, b))


def test_a_register_takes_two_shuffled_scales_at_a_time() -> None:
    """A's of rows 16 apart, which lie together."""
    kernel = kernel_of(mfmadsl.scaled_matmul(4096, 4096, 4096, *FP4, "shuffled"))
    assert "ds_read_u16" in kernel.assembly


@pytest.mark.parametrize("types", [FP4, FP8])
@pytest.mark.parametrize("size", [64, 512, 4096])
def test_tiles_have_whole_groups_of_shuffled_scales(types: tuple[str, str], size: int) -> None:
    workload = mfmadsl.scaled_matmul(size, size, size, *types, "shuffled")
    tiling = mfmadsl.gemm_tiling(workload, arch=ARCH)
    assert tiling.k_step % 256 == 0
    assert all(side % 32 == 0 for side in tiling.block)


def test_a_tile_with_fewer_words_of_scales_than_threads() -> None:
    tiling = Tiling((64, 32), 512, (2, 1), "mfma_scale_f32_16x16x128_f8f6f4_fp4_fp4", 1, stages=2)
    check((130, 70, 1536), FP4, tiling=tiling)


def test_each_scale_is_of_its_own_row_and_group() -> None:
    """Elements of one, and a scale for each row and group that names both."""
    m, n, k = 32, 48, 256
    one = np.uint8(0x38)  # 1.0 in float8_e4m3fn
    a, b = np.full((m, k), one), np.full((n, k), one)
    place = np.arange(k // 32)
    a_scales = (125 + (np.arange(m)[:, None] + 3 * place) % 7).astype(np.uint8)
    b_scales = (124 + (2 * np.arange(n)[:, None] + 5 * place) % 8).astype(np.uint8)
    kernel = kernel_of(mfmadsl.scaled_matmul(m, n, k, "float8_e4m3fn"))
    c = np.zeros((m, n), np.float32)
    mfmadsl.sanitize(kernel, [a, b, a_scales, b_scales, c])
    left, right = (2.0 ** (s.astype(np.float64) - 127) for s in (a_scales, b_scales))
    np.testing.assert_array_equal(c, (32 * left @ right.T).astype(np.float32))


def test_a_nan_spoils_its_row_or_column_only() -> None:
    """Also in the group behind which K ends, where zeros are."""
    m, n, k = 20, 33, 96
    rng = np.random.default_rng(2)
    a, b = (scaled(rng, rows, k, "float8_e4m3fn") for rows in (m, n))
    clean = product(kernel_of(mfmadsl.scaled_matmul(m, n, k, "float8_e4m3fn")), a, b)
    a.scales[3, 1] = b.scales[7, 2] = 255  # NaN (OCP Microscaling Formats v1.0, 5.4.1)
    b.packed[9, 95] = 0x7F
    c = product(kernel_of(mfmadsl.scaled_matmul(m, n, k, "float8_e4m3fn")), a, b)
    spoiled = np.zeros((m, n), bool)
    spoiled[3], spoiled[:, [7, 9]] = True, True
    np.testing.assert_array_equal(np.isnan(c), spoiled)
    np.testing.assert_array_equal(c[~spoiled], clean[~spoiled])


BIND = '            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])\n'
BACKWARDS = """
            v_i, v_j = T.axis.remap("SS", [i, j])
            v_k = T.axis.reduce(128, 127 - k)
"""
LOOPS = "for i, j, k in T.grid(64, 64, 128):"
UNRELATED = """
    for i, j in T.grid(64, 64):
        with T.sblock("other"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            D[v_i, v_j] = T.float32(1)
"""
AGAIN = 'C: T.Buffer((64, 64), "float32"), D: T.Buffer((64, 64), "float32")'


@pytest.mark.parametrize(("old", "new"), [
    ("SCALE_A: T.Buffer((64, 4)", "SCALE_A: T.Buffer((64, 5)"),
    ("v_k // 32", "v_k // 64"),
    ("+ 120 << 23", "+ 121 << 23"),
    ('A: T.Buffer((64, 128), "uint8")', 'A: T.Buffer((64, 128), "uint8", strides=(256, 1))'),
    (BIND, BIND + "            T.where(k < 96)\n"),
    (LOOPS, LOOPS.replace("128", "64")),
    (BIND, BACKWARDS),
    ("T.float32(0.0)", "T.float32(1.0)"),
], ids=str)  # fmt: skip
def test_what_only_looks_like_it_is_refused(old: str, new: str) -> None:
    """Other shapes, groups, biases, places, conditions and loops: right or refused."""
    text = mfmadsl.scaled_matmul(64, 64, 128, "float8_e4m3fn").script()
    assert old in text
    with pytest.raises(ScheduleError):
        mfmadsl.gemm_schedule(from_source(text.replace(old, new)), arch=ARCH)


def test_a_block_in_no_kernel_is_refused() -> None:
    text = mfmadsl.scaled_matmul(64, 64, 128, "float8_e4m3fn").script()
    other = text.replace('C: T.Buffer((64, 64), "float32")', AGAIN) + UNRELATED
    with pytest.raises(ScheduleError, match="block `other` is in no kernel"):
        mfmadsl.gemm_schedule(from_source(other), arch=ARCH)


def test_a_sum_of_four_numbers_is_no_scaled_product() -> None:
    numbers = ", ".join(f'{name}: T.Buffer((), "float32")' for name in "ABSU")
    source = f"""
@T.prim_func(s_tir=True)
def main({numbers}, C: T.Buffer((32, 32), "float32")):
    for i, j, k in T.grid(32, 32, 128):
        with T.sblock("C"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[v_i, v_j] = T.float32(0.0)
            C[v_i, v_j] = C[v_i, v_j] + A[()] * B[()] * S[()] * U[()]
"""
    with pytest.raises(ScheduleError):
        mfmadsl.gemm_schedule(from_source(source), arch=ARCH)


def test_what_follows_is_part_of_the_kernel() -> None:
    """A bias and a ReLU, written after the product."""
    text = mfmadsl.scaled_matmul(48, 40, 128, *FP4).script()
    own = 'C: T.Buffer((48, 40), "float32")'
    assert own in text
    text = text.replace(own, f'bias: T.Buffer((40,), "float32"), D{own[1:]}')
    root = '    # with T.sblock("root"):\n'
    assert root in text
    text = text.replace(root, root + "    C = T.sblock_alloc_buffer((48, 40))\n")
    text += """
    for i, j in T.grid(48, 40):
        with T.sblock("relu"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            D[v_i, v_j] = T.max(C[v_i, v_j] + bias[v_j], T.float32(0.0))
"""
    kernel = kernel_of(from_source(text))
    assert kernel.next is None
    rng = np.random.default_rng(5)
    a, b = (scaled(rng, rows, 128, FP4[0]) for rows in (48, 40))
    bias = rng.standard_normal(40).astype(np.float32)
    d = np.zeros((48, 40), np.float32)
    mfmadsl.sanitize(kernel, [a.packed, b.packed, a.scales, b.scales, bias, d])
    wanted = np.maximum(a.values @ b.values.T + bias, 0)
    np.testing.assert_allclose(d, wanted, rtol=1e-5, atol=1e-3 * np.abs(wanted).max())


LOOP = re.compile(r"^(\.LBB\w+):(.*?)s_cbranch_\w+ \1$", re.MULTILINE | re.DOTALL)


@pytest.mark.thorough
@pytest.mark.parametrize("types", drawn([(a, b) for a in BITS for b in BITS], 1))
@pytest.mark.parametrize("shape", [(8192, 8192, 8192), (8191, 7168, 4128), (300, 4096, 7168)])
def test_no_register_is_spilled_in_a_loop(
    shape: tuple[int, int, int], types: tuple[str, str]
) -> None:
    kernel = kernel_of(mfmadsl.scaled_matmul(*shape, *types))
    loops = [found[2] for found in LOOP.finditer(kernel.assembly)]
    assert any("v_mfma_scale" in loop for loop in loops)
    assert not any("scratch_" in loop for loop in loops)
    assert kernel.code_object is not None
    (code,) = mfmadsl.read_code_object(kernel.code_object, ARCH).kernels.values()
    assert code.metadata[".vgpr_spill_count"] == kernel.registers.spilled


def test_a_function_gets_its_own_name_and_parameters() -> None:
    kernel = kernel_of(mfmadsl.scaled_matmul(16, 16, 64, *FP4))
    assert [each.name for each in kernel.arguments] == ["A", "B", "SCALE_A", "SCALE_B", "C"]


def test_elements_in_place_of_their_bits_are_refused() -> None:
    kernel = kernel_of(mfmadsl.scaled_matmul(16, 16, 64, "fp8"))
    arrays = [np.zeros(each.shape, each.dtype) for each in kernel.arguments]
    arrays[0] = arrays[0].view(ml_dtypes.float8_e4m3fn)
    with pytest.raises(ArgumentError, match=r'give its bits, view\("uint8"\)'):
        mfmadsl.emulate(kernel, arrays)


def test_short_names_are_those_of_instructions() -> None:
    short, long = (
        mfmadsl.scaled_matmul(16, 16, 64, *t)
        for t in (("fp4", "bf6"), ("float4_e2m1fn", "float6_e3m2fn"))
    )
    tvm.ir.assert_structural_equal(short, long)


def test_a_tiling_of_no_instruction_is_refused() -> None:
    none: Any = None
    with pytest.raises(ArgumentTypeError, match=r"tiling\.instruction: is an intrinsic's name"):
        mfmadsl.gemm_schedule(
            mfmadsl.scaled_matmul(16, 16, 64, *FP4), arch=ARCH,
            tiling=replace(LARGE, instruction=none),
        )  # fmt: skip


def test_schedule_gemm_sends_to_gemm_schedule() -> None:
    sch = Schedule(mfmadsl.scaled_matmul(64, 64, 128, *FP4))
    with pytest.raises(ScheduleError, match=r"product of scaled operands: `gemm_schedule`"):
        mfmadsl.schedule_gemm(sch, sch.get_sblock("C"), arch=ARCH)


def test_tilings_are_offered() -> None:
    workload = mfmadsl.scaled_matmul(4096, 4096, 4096, *FP4)
    assert mfmadsl.gemm_tiling(workload, arch=ARCH).k_step == 256
    asked = mfmadsl.gemm_tiling(workload, "mfma_scale_f32_32x32x64_f8f6f4_fp4_fp4", ARCH)
    assert asked.instruction == "mfma_scale_f32_32x32x64_f8f6f4_fp4_fp4"


@pytest.mark.parametrize(("arguments", "said"), [
    ((16, 16, 48, "float8_e4m3fn"), "k: 48 is no multiple of 32"),
    ((16, 16, 0, "float8_e4m3fn"), "k"),
    ((16, 16, 32, "float16"), "a_type: there is no 'float16'"),
    ((16, 16, 64, "fp8", "fp8", "words"), "k: 64 is no multiple of 128"),
    ((16, 16, 128, "fp8", "fp8", "columns"), "scale_order: there is no 'columns'"),
    ((16, 16, 32, "float8_e4m3fn", "float8_e4m3fnuz"), "b_type: there is no 'float8_e4m3fnuz'"),
])  # fmt: skip
def test_a_workload_that_cannot_be_is_refused(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        mfmadsl.scaled_matmul(*arguments)


@pytest.mark.parametrize(("options", "said"), [
    ({"arch": "gfx942", "intrinsic": LARGE.instruction}, "gfx942"),
    ({"intrinsic": "mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8"}, "does not multiply scaled"),
    ({"intrinsic": "mfma_f32_16x16x16_f16"}, "does not multiply scaled"),
    ({"tiling": replace(LARGE, split_k=9)}, "split_k=9 is more than the 4 steps that K has"),
    ({"tiling": replace(LARGE, k_waves=2)}, "two register steps of mfma_scale"),
    ({"tiling": replace(LARGE, block=(256, 256), k_step=512)}, "bytes of LDS"),
    ({"tiling": replace(LARGE, block=(160, 160), stages=4)}, "rows of 136 bytes take"),
    ({"tiling": replace(LARGE, k_pack=2)}, "k_pack=2"),
    ({"tiling": LARGE, "intrinsic": "mfma_scale_f32_32x32x64_f8f6f4_fp4_fp4"},
     "but the tiling's is"),
])  # fmt: skip
def test_what_the_chip_or_builder_has_not_is_refused(options: dict[str, Any], said: str) -> None:
    workload = mfmadsl.scaled_matmul(256, 256, 1024, *FP4)
    with pytest.raises(ScheduleError, match=said):
        mfmadsl.gemm_schedule(workload, **{"arch": ARCH, **options})
