"""Products of eight-bit floats in scaled blocks, in the emulator under the sanitizer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tvm import te, tirx

import mfmadsl
from mfmadsl.backend import Kernel
from tests.schedule.matrix_core.scaled.blocks import CHIPS, FLOATS, Blocks, built, check


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", [(128, 192, 384), (33, 50, 200), (1, 300, 128), (257, 1, 64)])
def test_deepseeks_blocks(shape: tuple[int, int, int], arch: str) -> None:
    types = FLOATS[arch][:1] * 2
    kernel = built(Blocks().workload(shape, types), arch)
    check(kernel, Blocks(), shape, types)
    assert "_fp8_fp8" in kernel.assembly or "f8f6f4" in kernel.assembly


FORMS = {
    "in one block": Blocks(before=False),
    "scales of A by columns": Blocks(turned="SA"),
    "scales of B by columns": Blocks(turned="SB"),
    "B as K x N": Blocks(turned="B"),
    "A as K x M": Blocks(turned="A SA"),
    "both in rows of 128": Blocks(b=(1, 128)),
    "A alone": Blocks(b=None),
    "B alone": Blocks(a=None),
    "of a row and of blocks": Blocks(a=(1, 1 << 20)),
    "of rows and of columns": Blocks(a=(1, 1 << 20), b=(1, 1 << 20), before=False),
    "of a tensor": Blocks(a=(1 << 20, 1 << 20), b=None),
    "blocks of 64": Blocks(a=(1, 64), b=(64, 64)),
    "blocks of 32": Blocks(a=(1, 32), b=(16, 32)),
    "blocks of 256": Blocks(a=(1, 256), b=(96, 256)),
    "blocks of two sizes": Blocks(a=(1, 64), b=(128, 128)),
    "bfloat16": Blocks(dtype="bfloat16"),
    "float16 before": Blocks(dtype="float16", before=False),
    "batches": Blocks(batch=3),
}


@pytest.mark.parametrize("name", FORMS)
def test_each_form(name: str) -> None:
    arch = CHIPS[list(FORMS).index(name) % 2]
    types, shape = FLOATS[arch], (70, 90, 320)
    check(built(FORMS[name].workload(shape, types), arch), FORMS[name], shape, types)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("block", "waves"), [((16, 16), (1, 1)), ((128, 64), (2, 2)), ((64, 128), (1, 4))]
)
def test_a_tiling_of_ones_own(block: tuple[int, int], waves: tuple[int, int], arch: str) -> None:
    types, shape = FLOATS[arch], (150, 140, 520)
    workload = Blocks().workload(shape, types)
    first = mfmadsl.gemm_tiling(workload, arch=arch)
    for stages in (1, 2):
        tiling = replace(first, block=block, waves=waves, stages=stages)
        check(built(workload, arch, tiling), Blocks(), shape, types)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("blocks", [Blocks(), Blocks(turned="SA", batch=2)])
def test_workgroups_share_k(blocks: Blocks, arch: str) -> None:
    """Of 11 groups three parts have four, which is one more than there are."""
    types, shape = FLOATS[arch], (40, 70, 1300)
    workload = blocks.workload(shape, types)
    tiling = replace(mfmadsl.gemm_tiling(workload, arch=arch), split_k=3)
    kernel = built(workload, arch, tiling)
    assert len(list(kernel.chain())) == 2
    check(kernel, blocks, shape, types)


def test_k_is_split_where_compute_units_would_idle() -> None:
    workload = Blocks().workload((16, 256, 4096), FLOATS["gfx942"])
    assert mfmadsl.gemm_tiling(workload, arch="gfx942").split_k > 1


def test_a_tile_of_32_columns() -> None:
    types, shape = FLOATS["gfx942"], (70, 100, 300)
    workload = Blocks().workload(shape, types)
    schedule = mfmadsl.gemm_schedule(workload, "mfma_f32_32x32x16_fp8_bf8", "gfx942")
    kernel = mfmadsl.build(schedule, "gfx942")
    check(kernel, Blocks(), shape, types)
    assert "v_mfma_f32_32x32x16_fp8_bf8" in kernel.assembly


@pytest.mark.parametrize("arch", CHIPS)
def test_what_follows_is_computed_where_it_is_stored(arch: str) -> None:
    m, n, k, (dtype, _) = 40, 72, 256, FLOATS[arch]
    blocks = Blocks()
    a, sa = te.placeholder((m, k), dtype, "A"), te.placeholder((m, 2), "float32", "SA")
    b, sb = te.placeholder((n, k), dtype, "B"), te.placeholder((1, 2), "float32", "SB")
    bias = te.placeholder((n,), "float32", "bias")
    r = te.reduce_axis((0, k), "k")

    def product(i: Any, j: Any) -> Any:
        left = a[i, r].astype("float32") * sa[i, r // 128]
        return te.sum(left * b[j, r].astype("float32") * sb[j // 128, r // 128], axis=[r])

    c = te.compute((m, n), product, "C")
    d = te.compute((m, n), lambda i, j: tirx.max(c[i, j] + bias[j], 0).astype("bfloat16"), "D")
    kernel = built(te.create_prim_func([a, sa, b, sb, bias, d]), arch)
    assert len(list(kernel.chain())) == 1
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((rows, k)).astype(getattr(ml_dtypes, dtype)) for rows in (m, n))
    of_x, of_y = (rng.uniform(0.5, 2, shape).astype(np.float32) for shape in ((m, 2), (1, 2)))
    added = rng.standard_normal(n).astype(np.float32)
    result = np.zeros((m, n), ml_dtypes.bfloat16)
    mfmadsl.sanitize(kernel, [x, of_x, y, of_y, added, result])
    left = x.astype(np.float64) * of_x.repeat(128, 1)
    right = y.astype(np.float64) * of_y.repeat(128, 1)
    wanted = np.maximum(left @ right.T + added, 0)
    bound = 2.0**-22 * k * (np.abs(left) @ np.abs(right).T) + wanted * 2.0**-8
    assert (np.abs(result.astype(np.float64) - wanted) <= bound).all()
    assert blocks.a == (1, 128)


@pytest.mark.parametrize("arch", CHIPS)
def test_the_workload_of_the_package(arch: str) -> None:
    types, shape = FLOATS[arch], (30, 130, 300)
    for order in ("rows", "columns"):
        workload = mfmadsl.block_scaled_matmul(*shape, *types, scale_order=order)
        kernel = built(workload, arch)
        named = {"SCALE_A": "SA", "SCALE_B": "SB"}
        assert [named.get(each.name, each.name) for each in kernel.arguments] == [
            "A", "SA", "B", "SB", "C",
        ]  # fmt: skip
        blocks = Blocks(turned="SA" if order == "columns" else "")
        assert [each.shape for each in kernel.arguments] == [
            each.shape for each in built(blocks.workload(shape, types), arch).arguments
        ]


def test_a_tiling_that_takes_too_many_registers_is_refused() -> None:
    workload = Blocks().workload((256, 256, 256), FLOATS["gfx950"])
    tiling = replace(
        mfmadsl.gemm_tiling(workload, arch="gfx950"), block=(256, 256), waves=(4, 2), stages=1
    )
    with pytest.raises(mfmadsl.ScheduleError, match="registers a lane, more than the 256"):
        mfmadsl.gemm_schedule(workload, arch="gfx950", tiling=tiling)


@pytest.mark.parametrize("instruction", ["mfma_f32_16x16x16_f16", "smfmac_f32_16x16x64_fp8_fp8"])
def test_an_instruction_for_other_operands_is_refused(instruction: str) -> None:
    workload = Blocks().workload((64, 64, 128), FLOATS["gfx942"][:1] * 2)
    with pytest.raises(mfmadsl.ScheduleError, match=r"does not multiply .* with scales of 128"):
        mfmadsl.gemm_schedule(workload, instruction, "gfx942")


REFUSED: dict[str, tuple[Any, str]] = {
    "a scale of a place": (lambda i, j, k: (i, j), "depends on rows and on columns"),
    "a scale of each k": (lambda i, j, k: (i, k), "not the same for 32 neighbouring k"),
    "a scale of 16 k": (lambda i, j, k: (i, k // 16), "not the same for 32 neighbouring k"),
    "a scale that starts in a group": (
        lambda i, j, k: (i, (k + 5) // 128), "not the same for 32 neighbouring k",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_group_shares_is_no_scale(name: str) -> None:
    place, reason = REFUSED[name]
    m, n, k = 32, 48, 256
    a, b = (te.placeholder((rows, k), "float8_e4m3fnuz", x) for x, rows in (("A", m), ("B", n)))
    scale = te.placeholder((64, 256), "float32", "S")
    r = te.reduce_axis((0, k), "k")

    def product(i: Any, j: Any) -> Any:
        both = a[i, r].astype("float32") * b[j, r].astype("float32")
        return te.sum(both * scale[place(i, j, r)], axis=[r])

    function = te.create_prim_func([a, b, scale, te.compute((m, n), product, "C")])
    with pytest.raises(mfmadsl.ScheduleError, match=f"block `C` has a factor .*{reason}: compute"):
        mfmadsl.gemm_schedule(function, arch="gfx942")


def test_without_instructions_factors_are_to_be_computed_before() -> None:
    types = FLOATS["gfx950"][:1] * 2
    inside = Blocks(before=False).workload((32, 48, 128), types)
    with pytest.raises(mfmadsl.ScheduleError, match="for which gfx90a has no matrix instructions"):
        mfmadsl.gemm_schedule(inside, arch="gfx90a")


@pytest.mark.parametrize(
    ("block", "reason"), [(16, "not the same for 32 neighbouring k"), (100, "not the same for 32")]
)
def test_what_becomes_float32_is_told(block: int, reason: str) -> None:
    shape, types = (40, 50, 200), FLOATS["gfx950"][:1] * 2
    blocks = Blocks(a=(1, block), b=(block, block))
    schedule = mfmadsl.gemm_schedule(blocks.workload(shape, types), arch="gfx950")
    with pytest.warns(mfmadsl.SlowLoopWarning, match=f"{reason}.*A and B become float32"):
        kernel = mfmadsl.build(schedule, "gfx950")
    check(kernel, blocks, shape, types)


def test_extents_that_are_symbols_are_told() -> None:
    m = tirx.Var("m", "int32")
    schedule = mfmadsl.gemm_schedule(Blocks().workload((m, 64, 256), FLOATS["gfx942"]))
    with pytest.warns(mfmadsl.SlowLoopWarning, match="has an extent that is a symbol"):
        mfmadsl.build(schedule)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 16, 512), (16, 32, 64), (32, 16, 130)])
def test_small_products(shape: tuple[int, int, int], arch: str) -> None:
    types = FLOATS[arch]
    check(built(Blocks().workload(shape, types), arch), Blocks(), shape, types)


@pytest.mark.parametrize("arch", CHIPS)
def test_a_sum_over_groups_and_the_k_of_each(arch: str) -> None:
    m, n, groups = 40, 72, 3
    a, b = (te.placeholder((rows, 384), dtype, x)
            for x, rows, dtype in zip("AB", (m, n), FLOATS[arch], strict=True))  # fmt: skip
    sa, sb = te.placeholder((m, 3), "float32", "SA"), te.placeholder((1, 3), "float32", "SB")
    g, r = te.reduce_axis((0, groups), "g"), te.reduce_axis((0, 128), "r")

    def product(i: Any, j: Any) -> Any:
        left = a[i, g * 128 + r].astype("float32") * sa[i, g]
        return te.sum(left * b[j, g * 128 + r].astype("float32") * sb[j // 128, g], axis=[g, r])

    function = te.create_prim_func([a, sa, b, sb, te.compute((m, n), product, "C")])
    check(built(function, arch), Blocks(), (m, n, 384), FLOATS[arch])


@dataclass
class Written:
    """DeepSeek's product with blocks of float32, of which others read something, too."""

    m: int = 40
    n: int = 50
    k: int = 300

    def __post_init__(self) -> None:
        m, n, k, fp8 = self.m, self.n, self.k, FLOATS["gfx942"][0]
        self.a, self.b = te.placeholder((m, k), fp8, "A"), te.placeholder((n, k), fp8, "B")
        self.sa, self.sb = (te.placeholder((x, 3), "float32", s) for x, s in ((m, "SA"), (1, "SB")))
        self.exp = te.compute((m, 3), lambda i, g: tirx.exp(self.sa[i, g]), "exp")
        self.double = te.compute((m, 3), lambda i, g: self.exp[i, g] * 2.0, "double")
        self.left = te.compute(
            (m, k), lambda i, x: self.a[i, x].astype("float32") * self.double[i, x // 128], "left"
        )
        self.right = te.compute(
            (n, k),
            lambda j, x: self.b[j, x].astype("float32") * self.sb[j // 128, x // 128],
            "right",
        )
        r = te.reduce_axis((0, k), "k")
        self.c = te.compute(
            (m, n),
            lambda i, j: te.sum(self.exp[i, r // 128] * self.left[i, r] * self.right[j, r], [r]),
            "C",
        )

    def run(self, *results: Any) -> tuple[Kernel, list[NDArray[np.float32]], dict[str, Any]]:
        """The kernel, its results, and the values of what is computed."""
        given = [self.a, self.sa, self.b, self.sb]
        kernel = built(te.create_prim_func([*given, *results]), "gfx942")
        rng = np.random.default_rng(2)
        fp8 = getattr(ml_dtypes, FLOATS["gfx942"][0])
        a, b = (rng.standard_normal((rows, self.k)).astype(fp8) for rows in (self.m, self.n))
        sa, sb = (rng.uniform(0.5, 1, (x, 3)).astype(np.float32) for x in (self.m, 1))
        c = [np.zeros(each.shape, np.float32) for each in kernel.arguments[4:]]
        mfmadsl.sanitize(kernel, [a, sa, b, sb, *c])
        groups = np.arange(self.k) // 128
        exp = np.exp(sa.astype(np.float64))
        left = a.astype(np.float64) * 2 * exp[:, groups]
        product = (exp[:, groups] * left) @ (
            b.astype(np.float64) * sb.astype(np.float64)[:, groups]
        ).T
        return kernel, c, {"exp": exp, "left": left, "C": product}


def test_blocks_that_compute_factors_of_each_other() -> None:
    kernel, (c,), wanted = _of(lambda w: w.c)
    np.testing.assert_allclose(c, wanted["C"], rtol=1e-4, atol=1e-2)
    assert "_fp8_fp8" in kernel.assembly


@pytest.mark.parametrize("name", ["exp", "left"])
def test_a_factor_that_is_used_behind_the_product(name: str) -> None:
    def result(w: Written) -> Any:
        other = getattr(w, name)
        return te.compute((w.m, w.n), lambda i, j: w.c[i, j] + other[i, 0], "D")

    kernel, (d,), wanted = _of(result)
    np.testing.assert_allclose(d, wanted["C"] + wanted[name][:, :1], rtol=1e-4, atol=1e-2)
    assert "_fp8_fp8" in kernel.assembly


def _of(result: Any) -> Any:
    written = Written()
    return written.run(result(written))


@pytest.mark.parametrize("arch", CHIPS)
def test_two_scales_whose_product_is_no_number(arch: str) -> None:
    m, n, k = 40, 50, 300
    workload = mfmadsl.block_scaled_matmul(m, n, k, FLOATS[arch][0])
    a, b = (np.full((rows, k), 2.0**-6, getattr(ml_dtypes, FLOATS[arch][0])) for rows in (m, n))
    of_a, of_b = 2.0**66, 2.0**65
    scales = [np.full((rows, 3), x, np.float32) for rows, x in ((m, of_a), (1, of_b))]
    c = np.zeros((m, n), np.float32)
    mfmadsl.sanitize(built(workload, arch), [a, scales[0], b, scales[1], c])
    np.testing.assert_allclose(c, k * (2.0**-6 * of_a) * (2.0**-6 * of_b), rtol=1e-6)


def test_turned_tiles_fit_the_lds() -> None:
    """Their rows lie in a power of two: 224 of A by columns take those of 256."""
    blocks = Blocks(turned="A")
    workload = blocks.workload((4096, 4096, 512), FLOATS["gfx942"][1:] * 2)
    kernel = built(workload, "gfx942")
    assert kernel.lds_bytes <= 65536


@pytest.mark.parametrize("arch", CHIPS)
def test_groups_of_64_spill_nothing(arch: str) -> None:
    blocks = Blocks(a=(1, 64), b=(64, 64), turned="SA SB")
    kernel = built(blocks.workload((4096, 4096, 1024), FLOATS[arch][:1] * 2), arch)
    assert kernel.registers.spilled == 0
