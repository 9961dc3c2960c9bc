"""The whole path: every intrinsic, both orders of B, every chip that has it, run and compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mfmadsl import Gemm, emulate, find
from mfmadsl.epilogue import model
from mfmadsl.language import library
from mfmadsl.schedule import ScheduleError
from mfmadsl.sparsity import decompress
from tests.schedule.matrix_core.scaled.operands import values_of

PLAIN = [i for i in library().values() if not i.sparse and not i.scales and i.blocks == 1]
COMMON = ("f32_16x16x4_f32", "f32_16x16x16_f16", "f32_32x32x8_f16", "i32_16x16x16_i8")
CASES = [
    pytest.param(i, chip, transposed, id=f"{i.name}-{chip}-{'nk' if transposed else 'kn'}")
    for i in PLAIN
    for chip in (i.chips if i.name.removeprefix("mfma_") in COMMON else i.chips[-1:])
    for transposed in (False, True)
]
SCOPES = [pytest.param(None, id="pipelined"), pytest.param("shared", id="simple")]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(("intrinsic", "chip", "b_transposed"), CASES)
def test_the_product_is_numpys(
    intrinsic: Any, chip: str, b_transposed: bool, scope: str | None,
    llvm_intrinsics: dict[str, Any],
) -> None:  # fmt: skip
    common = intrinsic.name.removeprefix("mfma_") in COMMON
    extents = (256, 256, 256) if common else (64, 96, 128)
    gemm = Gemm(intrinsic, chip, *extents, b_transposed, scope)
    kernel = gemm.build()
    forms = llvm_intrinsics[intrinsic.call]["forms"]
    (mnemonic,) = (form["mnemonic"] for form in forms if chip in form["cpus"])
    assert f"\t{mnemonic} " in kernel.assembly
    comparison = gemm.check(kernel)
    assert comparison.agrees
    if intrinsic.c.type.kind == "integer":
        assert comparison.error == 0
    assert kernel.registers.spilled == kernel.registers.scratch_bytes == 0


@pytest.mark.parametrize("b_transposed", [False, True])
@pytest.mark.parametrize("scope", [None, "shared", "shared.dyn"])
def test_values_that_name_their_position(scope: str | None, b_transposed: bool) -> None:
    """A picks rows of B one by one, so that each result is one known element."""
    gemm = Gemm(
        library()["mfma_f32_16x16x4_f32"], "gfx942", 64, 48, 32, b_transposed, shared_scope=scope
    )
    a, b, c = gemm.operands()
    picked = np.random.default_rng(1).integers(0, 32, 64)
    a[:] = picked[:, None] == np.arange(32)
    b[:] = np.arange(b.size).reshape(b.shape)
    emulate(gemm.build(), [a, b, c])
    assert (c == (b.T if b_transposed else b)[picked]).all()


def test_a_wrong_element_is_found_and_located() -> None:
    gemm = Gemm(library()["mfma_f32_16x16x16_f16"], "gfx942", 32, 32, 32)
    a, b, c = gemm.operands()
    c[:] = a.astype(np.float64) @ b.astype(np.float64)
    assert gemm.compare(a, b, c).agrees
    c[7, 21] += 1
    wrong = gemm.compare(a, b, c)
    assert not wrong.agrees
    assert (wrong.row, wrong.column) == (7, 21)
    assert wrong.error == pytest.approx(1, rel=1e-3)
    c[7, 21] = np.nan
    assert not gemm.compare(a, b, c).agrees


def test_integers_have_no_tolerance() -> None:
    gemm = Gemm(library()["mfma_i32_16x16x16_i8"], "gfx90a", 32, 32, 32)
    a, b, c = gemm.operands()
    c[:] = a.astype(np.int32) @ b.astype(np.int32)
    assert gemm.compare(a, b, c).agrees
    c[31, 0] += 1
    assert not gemm.compare(a, b, c).agrees


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("smfmac_f32_16x16x32_f16", "sparse"),
        ("mfma_scale_f32_16x16x128_f8f6f4_fp4_fp4", "scaled"),
        ("mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8", "plain"),
        ("mfma_f32_16x16x16_f16", "plain"),
    ],
)
def test_an_instruction_that_has_one_form_says_it(name: str, form: str) -> None:
    gemm = Gemm(library()[name], library()[name].chips[-1], 128, 128, 128, b_transposed=True)
    assert gemm.form == form


@pytest.mark.parametrize("b_transposed", [True, False])
def test_a_sparse_operand_is_compared_with_its_places(b_transposed: bool) -> None:
    gemm = Gemm(None, "gfx942", 20, 17, 96, b_transposed=b_transposed, form="sparse")
    assert gemm.check(gemm.build()).agrees
    values, index, b, c = gemm.operands()
    whole = decompress(values, index).astype(np.float64)
    assert 0.45 < np.count_nonzero(whole) / whole.size <= 0.5
    c[:] = whole @ (b.T if b_transposed else b).astype(np.float64)
    assert gemm.compare(values, index, b, c).agrees
    c[19, 3] *= 1.001
    assert not gemm.compare(values, index, b, c).agrees


def test_scaled_operands_are_compared_with_their_scales() -> None:
    types = "float4_e2m1fn", "float6_e2m3fn", None
    gemm = Gemm(None, "gfx950", 20, 17, 96, b_transposed=True, dtypes=types, form="scaled")
    assert gemm.check(gemm.build()).agrees
    a, b, a_scales, b_scales, c = gemm.operands()
    assert [each.shape for each in (a, b)] == [(20, 48), (17, 72)]
    left, right = (
        values_of(octets, scales, dtype)
        for octets, scales, dtype in ((a, a_scales, types[0]), (b, b_scales, types[1]))
    )
    c[:] = left @ right.T
    assert gemm.compare(a, b, a_scales, b_scales, c).agrees
    c[19, 3] *= 1.001
    assert not gemm.compare(a, b, a_scales, b_scales, c).agrees


@pytest.mark.parametrize("scope", [None, "shared"])
def test_a_scaled_instruction_of_eight_bits_multiplies_without_scales(scope: str | None) -> None:
    intrinsic = library()["mfma_scale_f32_16x16x128_f8f6f4_fp8_bf8"]
    gemm = Gemm(intrinsic, "gfx950", 32, 48, 256, shared_scope=scope)
    kernel = gemm.build()
    assert "v_mfma_f32_16x16x128_f8f6f4" in kernel.assembly
    assert gemm.check(kernel).agrees


@pytest.mark.parametrize(
    ("scope", "reason"),
    [(None, "the workload has one product only"), ("shared", "the simple kernel has no batches")],
)
def test_blocks_need_a_batch(scope: str | None, reason: str) -> None:
    gemm = Gemm(library()["mfma_f32_4x4x4_16b_f16"], "gfx942", 16, 16, 16, shared_scope=scope)
    with pytest.raises(ScheduleError, match=f"multiplies 16 blocks at once, .*{reason}"):
        gemm.schedule()


@pytest.mark.parametrize(
    ("form", "dtype"), [("scaled", "float8_e4m3fn"), ("blocks", "float8_e5m2")]
)
def test_a_scaled_b_without_rows_along_k_is_refused(form: str, dtype: str) -> None:
    gemm = Gemm(None, "gfx950", 32, 32, 128, dtypes=(dtype, None, None), form=form)
    with pytest.raises(ScheduleError, match="a scaled B lies as N x K"):
        gemm.build()


def test_a_chip_without_the_instruction() -> None:
    gemm = Gemm(library()["mfma_i32_16x16x16_i8"], "gfx942", 32, 32, 32)
    with pytest.raises(ScheduleError, match="gfx942 has no mfma_i32_16x16x16_i8: it is an"):
        gemm.schedule()


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("mfma_f32_16x16x4_f32", "32 * 2^-24 * sum |a||b|"),
        ("mfma_f64_16x16x4_f64", "32 * 2^-53 * sum |a||b|"),
        ("mfma_f32_16x16x16_f16", "17 * 2^-24 * sum |a||b|"),
        ("mfma_f32_16x16x8_xf32", "(21 * 2^-24 + 2^-9) * sum |a||b|"),
        ("mfma_i32_16x16x32_i8", "exact"),
    ],
)
def test_the_tolerance_is_named(name: str, rule: str) -> None:
    gemm = Gemm(library()[name], "gfx942", 32, 32, 32, tiling={"k_waves": 1})
    assert gemm.tolerance.rule == rule


def test_a_chip_that_takes_denormals_for_zero_is_not_blamed() -> None:
    half = find("mfma_f32_16x16x16_f16")
    smallest_normal = 2.0**-14
    for arch, number, expected in (
        ("gfx90a", 2.0**-20, 0),
        ("gfx942", 2.0**-20, 16 * 2.0**-20),
        ("gfx90a", smallest_normal, 16 * smallest_normal),
    ):
        gemm = Gemm(half, arch, 16, 16, 16)
        a, b = np.full((16, 16), number, np.float16), np.ones((16, 16), np.float16)
        c = np.zeros((16, 16), np.float32)
        emulate(gemm.build(), [a, b, c])
        assert c[0, 0] == expected
        assert gemm.compare(a, b, c).agrees


@pytest.mark.parametrize(("split_k", "k_waves"), [(1, 1), (4, 1), (1, 4), (2, 2)])
def test_each_part_of_k_is_rounded_once_more(split_k: int, k_waves: int) -> None:
    gemm = Gemm(None, "gfx942", 64, 64, 1024, tiling={"split_k": split_k, "k_waves": k_waves})
    roundings = 1024 // 4 + 9 + split_k * k_waves - 1
    assert gemm.tolerance.rule == f"{roundings} * 2^-24 * sum |a||b|"


def test_waves_along_k_are_chosen_to_go_with_the_tile() -> None:
    """Who changes one gets one wave along K, if none are asked for."""
    shape = find("mfma_f32_16x16x16_f16"), "gfx942", 16, 4096, 4096
    chosen = Gemm(*shape)
    assert chosen.build().block[1] > 1
    wider = {"block": (16, 64), "waves": (1, 4), "k_step": 128}
    assert Gemm(*shape, tiling=wider).build().block == (64, 4, 1)
    asked = Gemm(*shape, tiling={**wider, "k_waves": 2})
    assert asked.build().block == (64, 8, 1)


def test_a_result_too_small_for_its_type_may_be_zero() -> None:
    gemm = Gemm(None, "gfx942", 16, 16, 16, dtypes=(None, None, "float16"))
    a, b = (np.zeros((16, 16), np.float16) for _ in range(2))
    a[0, 0] = b[0, 0] = 2.0**-13  # half of the smallest half is 2^-25
    c = np.zeros((16, 16), np.float16)
    assert gemm.compare(a, b, c).agrees
    c[0, 0] = 2.0**-22
    assert not gemm.compare(a, b, c).agrees


def test_the_type_of_b_is_that_of_a_where_only_that_is_said() -> None:
    intrinsic = find("mfma_f32_16x16x32_fp8_bf8")
    shape = intrinsic, "gfx942", 64, 64, 64
    assert Gemm(*shape).types == ("float8_e4m3fnuz", "float8_e5m2fnuz", "float32")
    said = Gemm(*shape, dtypes=("float8_e4m3fnuz", None, None))
    assert said.types == ("float8_e4m3fnuz", "float8_e4m3fnuz", "float32")
    with pytest.raises(ScheduleError, match="float8_e5m2fnuz, not float8_e4m3fnuz by float8_e4m3"):
        said.schedule()


def test_what_is_added_to_a_sum_of_integers_does_not_overflow() -> None:
    a, b, bias, _ = Gemm(
        None, "gfx942", 64, 4096, 64, dtypes=("int8", None, None), epilogue=("bias",)
    ).operands()
    assert (a.min(), a.max(), b.min(), b.max()) == (-128, 127, -128, 127)
    assert 2**19 < np.abs(bias).max() <= 2**20 + 1


def test_matrices_are_counted_as_they_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64, all of them and what the steps read; of a profile as they are."""
    sizes: list[int] = []
    monkeypatch.setattr("mfmadsl.gemm.operands.check_size", lambda size, _: sizes.append(size))
    gemm = Gemm(None, "gfx942", 8, 16, 32, batch=3, epilogue=("bias", "residual"))
    gemm.operands()
    gemm.operands(compared=False)
    factors, results = 3 * (8 * 32 + 32 * 16), 3 * (8 * 16 + 8 * 16) + 16
    assert sizes == [8 * (factors + results), 2 * factors + 4 * results]


def filled(gemm: Gemm) -> list[Any]:
    """The arguments of a GEMM without an instruction, with the right result in C."""
    a, b, *others, c = gemm.operands()
    product = a.astype(np.float64) @ b.astype(np.float64)
    values, _ = model(gemm.epilogue, product, np.zeros_like(product), others, 0)
    c[:] = values.astype(c.dtype)
    return [a, b, *others, c]


@pytest.mark.parametrize("steps", [("gelu",), ("bias", "silu"), ("scale", "relu")])
def test_an_error_in_what_follows_the_product_is_seen(steps: tuple[str, ...]) -> None:
    gemm = Gemm(None, "gfx942", 32, 32, 32, epilogue=steps)
    arrays = filled(gemm)
    assert gemm.compare(*arrays).agrees
    arrays[-1][3, 4] += 1e-3
    assert not gemm.compare(*arrays).agrees


def test_a_large_scale_of_one_column_excuses_no_other() -> None:
    gemm = Gemm(None, "gfx942", 32, 32, 32, epilogue=("scale",))
    arrays = filled(gemm)
    arrays[2][0] = 1e6
    exact = arrays[0].astype(np.float64) @ arrays[1].astype(np.float64) * arrays[2]
    arrays[-1][:] = exact
    assert gemm.compare(*arrays).agrees
    arrays[-1][3, 4] += 0.5
    assert not gemm.compare(*arrays).agrees


def test_infinities_and_nan_are_right_where_they_are_expected() -> None:
    gemm = Gemm(None, "gfx942", 16, 16, 16, dtypes=(None, None, "float16"))
    a, b, c = gemm.operands()
    a[0], b[:, 0] = 1000, 1000  # more than a half holds
    a[1, 0] = np.nan
    with np.errstate(all="ignore"):
        c[:] = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)
    assert np.isinf(c[0, 0])
    assert gemm.compare(a, b, c).agrees
    c[0, 0] = -np.inf
    assert not gemm.compare(a, b, c).agrees
    c[0, 0], c[1, 1] = np.inf, 3
    assert not gemm.compare(a, b, c).agrees


def test_kernels_are_called_by_what_they_compute() -> None:
    gemm = Gemm(
        None, "gfx942", 16, 32, 64, b_transposed=True, a_transposed=True, batch=3,
        dtypes=("bfloat16", None, "bfloat16"), epilogue=("bias", "gelu"),
    )  # fmt: skip
    assert gemm.name == "gemm_tt_bf16_bf16_bf16_3x16x32x64_bias_gelu"
    assert gemm.build().symbol == f"{gemm.name}_kernel"
    simple = Gemm(find("mfma_i32_16x16x16_i8"), "gfx90a", 16, 16, 32, shared_scope="shared")
    assert simple.build().symbol == "gemm_nn_i8_i8_i32_16x16x32_kernel"
