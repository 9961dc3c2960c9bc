"""Generated modules of several instructions in a row: their text, and kernels that run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tvm.s_tir import TensorIntrin

import mfmadsl
from mfmadsl.codegen import ModuleError, module_name, module_text
from mfmadsl.error import ArgumentError
from mfmadsl.language import Source, find, library_files, load_source
from mfmadsl.model import unscaled
from mfmadsl.schedule import default_factors, load_intrinsic
from tests.cli.command import run, spec
from tests.codegen.test_limits import SKEW
from tests.emulator.instructions.matrix.test_described import invented
from tests.language.entries import HALF as HALF_TEXT
from tests.registers import dtype_of
from tests.schedule.matrix_core.test_tiles import whole_numbers
from tests.schedule.matrix_core.tiles import tile_schedule
from tests.schedule.simple import simple_schedule

HALF = find("mfma_f32_16x16x16_f16")


@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
@pytest.mark.parametrize(
    ("name", "k_pack"),
    [
        ("mfma_f32_16x16x16_f16", 2),
        ("mfma_f32_16x16x16_bf16", 4),
        ("mfma_f32_16x16x32_bf16", 2),  # of vectors that TIR does not have
        ("mfma_i32_32x32x16_i8", 2),
        ("mfma_f32_16x16x32_fp8_bf8", 2),
        ("mfma_f32_16x16x4_f32", 4),
        ("mfma_f32_16x16x8_xf32", 3),
        ("mfma_f64_16x16x4_f64", 2),
    ],
)
def test_a_tile_of_several_instructions_multiplies(name: str, k_pack: int, scope: str) -> None:
    intrinsic, b_transposed = find(name), scope == "shared"
    arch = "gfx942" if "gfx942" in intrinsic.chips else "gfx950"
    schedule = tile_schedule(intrinsic, scope, b_transposed, k_pack=k_pack)
    kernel = mfmadsl.build(schedule, arch)
    # Two tiles along k: all instructions are there, and what is together is read at once.
    tiles = kernel.assembly.count("\tv_mfma_") // k_pack
    assert tiles in (1, 2)  # LLVM may keep the loop over the two
    if k_pack != 3:
        assert kernel.assembly.count("\tds_read_b128 ") >= tiles * (1 + b_transposed)
    assert kernel.registers.scratch_bytes == 0
    generator = np.random.default_rng(1)
    a, b = (whole_numbers(argument.shape, generator) for argument in kernel.arguments[:2])
    c = np.full(kernel.arguments[2].shape, 99, dtype_of(intrinsic.c.type))
    types = dtype_of(intrinsic.a.type), dtype_of(intrinsic.b.type)
    mfmadsl.emulate(kernel, [a.astype(types[0]), b.astype(types[1]), c])
    assert (c == a @ (b.T if b_transposed else b)).all()


@pytest.mark.parametrize("k_pack", [1, 2])
@pytest.mark.parametrize("b_transposed", [False, True])
@pytest.mark.parametrize(
    "name",
    ["mfma_scale_f32_16x16x128_f8f6f4_fp8_bf8", "mfma_scale_f32_32x32x64_f8f6f4_bf8_fp8"],
)
def test_a_scaled_instruction_without_scales_multiplies(
    name: str, b_transposed: bool, k_pack: int
) -> None:
    intrinsic = unscaled(find(name))
    schedule = tile_schedule(intrinsic, "shared", b_transposed, k_pack=k_pack)
    assert f"{name}_unscaled" in str(schedule.trace)
    kernel = mfmadsl.build(schedule, "gfx950")
    assert kernel.assembly.count("\tv_mfma_f32_") >= k_pack
    assert "v_mfma_scale" not in kernel.assembly
    generator = np.random.default_rng(1)
    a, b = (whole_numbers(argument.shape, generator) for argument in kernel.arguments[:2])
    c = np.full(kernel.arguments[2].shape, 99, np.float32)
    types = dtype_of(intrinsic.a.type), dtype_of(intrinsic.b.type)
    mfmadsl.emulate(kernel, [a.astype(types[0]), b.astype(types[1]), c])
    assert (c == a @ (b.T if b_transposed else b)).all()


def test_the_accumulator_is_negated_once() -> None:
    tile = load_intrinsic("mfma_f64_16x16x4_f64", 2)
    description, _ = tile.compute()
    _, implementation = tile.compute(neg=5)  # A and C
    TensorIntrin.register("probe_negated", description, implementation, override=True)
    schedule = tile_schedule(find("mfma_f64_16x16x4_f64"), "shared", True, "probe_negated", 2)
    kernel = mfmadsl.build(schedule, "gfx942")
    assert kernel.assembly.count("neg:[1,0,1]") == kernel.assembly.count("neg:[1,0,0]") == 2


@pytest.mark.parametrize("k_pack", [1, 2])
@pytest.mark.parametrize("b_transposed", [False, True])
@pytest.mark.parametrize(("m", "n"), [(8, 32), (32, 8), (32, 16), (16, 32), (64, 16)])
def test_tiles_of_any_sides_are_tensorized(m: int, n: int, b_transposed: bool, k_pack: int) -> None:
    schedule = tile_schedule(invented(m, n), "shared", b_transposed, k_pack=k_pack)
    assert schedule.trace is not None


def test_the_schedule_of_tvm_takes_it() -> None:
    tile = load_intrinsic(HALF, 2)
    assert tile.K == 32
    factors = default_factors(HALF, 64, 64, 64)
    workload = mfmadsl.matmul(64, 64, 64, "float16", "float32")
    schedule = simple_schedule(workload, tile, factors.i, factors.j, [1, 2, None])
    assert "mfma_f32_16x16x16_f16_k2_compute" in str(schedule.trace)


def test_modules_of_other_packs_are_others() -> None:
    plain, deep = load_intrinsic(HALF), load_intrinsic(HALF, 2)
    assert load_intrinsic(HALF, 2) is deep
    assert load_intrinsic(HALF, 1) is plain
    assert deep is not plain
    assert deep.__name__ == plain.__name__ + "_k2"
    assert deep.COMPUTE == "mfma_f32_16x16x16_f16_k2_compute"
    assert plain.COMPUTE == "mfma_f32_16x16x16_f16_compute"
    assert (deep.M, deep.N, deep.K) == (16, 16, 32)


def test_the_text_says_what_the_tile_is() -> None:
    assert module_name(HALF, 4) == "mfma_f32_16x16x16_f16_k4"
    text = module_text(HALF, 4)
    assert "It is 4 instructions mfma_f32_16x16x16_f16, one after the other" in text
    assert "A[lane % 16, lane // 16 * 16 + register]" in text
    assert "for step in T.unroll(4):" in text
    assert "A[lane, T.ramp(step * 4, 1, 4)]," in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "unroll" not in module_text(HALF)


def test_what_has_no_module_of_several(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="k_pack: smfmac_f32_16x16x32_f16 is sparse"):
        load_intrinsic("smfmac_f32_16x16x32_f16", 2)
    skewed = SKEW + HALF_TEXT.replace("operand(i, k, pack=4)", "skew(i, k)")
    (intrinsic,) = load_source(Source("skew.mfma", skewed))
    with pytest.raises(ModuleError, match="is no sum of digits"):
        module_text(intrinsic, 2)
    path = tmp_path / "unit.mfma"
    path.write_text(
        "accelerator unit {\n  shape m=4 n=4 k=4\n"
        + "".join(f'  {x} float32[{y}] in "global.{x}"\n' for x, y in
                  (("a", "i, k"), ("b", "j, k"), ("c", "i, j")))
        + '  calls "unit"\n}\n'
    )  # fmt: skip
    result = run("compile", path, "-o", tmp_path / "out", "--k-pack", 2)
    assert result.exit_code == 1
    assert "k_pack: unit is an accelerator, of which only k_pack=1 can be" in result.output
    assert not (tmp_path / "out").exists()


def test_compile_writes_the_module_under_its_name(tmp_path: Path) -> None:
    result = run("compile", spec(tmp_path), "-o", tmp_path / "out", "--k-pack", 2)
    assert result.exit_code == 0
    path = tmp_path / "out" / "mfma_f32_16x16x16_f16_k2.py"
    assert result.output == f"{path}\n"
    assert "K = 16, 16, 32" in path.read_text()


def test_compile_says_of_which_there_is_no_tile(tmp_path: Path) -> None:
    (path,) = (p for p in library_files() if p.name == "sparse_f16.mfma")
    result = run("compile", path, "-o", tmp_path / "out", "--k-pack", 2)
    assert result.exit_code == 1
    assert result.output.startswith("error: k_pack: smfmac_f32_16x16x32_f16 is sparse")
    assert run("compile", path, "-o", tmp_path, "--k-pack", 0).exit_code == 2
