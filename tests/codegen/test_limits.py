"""What the language accepts and no module can be made of is told, not a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfmadsl.codegen import ModuleError, module_text
from mfmadsl.language import Source, load_source
from tests.cli.command import run, spec
from tests.language.entries import HALF, spoiled

EXAMPLE = HALF.replace("intrinsic mfma_f32_16x16x16_f16", "intrinsic example").replace(
    "  alias   v_mfma_f32_16x16x16f16\n", ""
)
SPARSE = spoiled("k=16", "k=32").replace("float16[i, k]", "float16[i, k / 2]").replace(
    "operand(j, k, pack=4)", "operand(j, k, pack=8)").replace("16x16x16", "16x16x32").replace(
    '32f16"', '32f16" unknown')  # fmt: skip
SKEW = "layout skew(x, k) { lane = (x + k) % 16 + 16 * (k / 4)  register = k % 4 }\n"
SPLIT = "layout split(x, k) { lane = x + X * (k % 4)  register = k / 4 }\n"


SEVERAL = """\
use layouts
intrinsic example {
  shape   m=16 n=16 k=16 blocks=2
  a       float16[i, k / 2]  at  operand(i, k, pack=4)
  b       float16[k, j]      at  operand(j, k, pack=8)
  c       float32[i, j]      at  accumulator(i, j)
  call    "llvm.amdgcn.smfmac.f32.16x16x16.2b.f16" unknown
  cycles  gfx950=32
}
"""
WIDE_INDEX = """\
use layouts
intrinsic example {
  shape   m=32 n=32 k=128
  a       int8[i, k / 2]  at  operand(i, k, pack=32)
  b       int8[k, j]      at  operand(j, k, pack=64)
  c       int32[i, j]     at  accumulator(i, j)
  call    "llvm.amdgcn.smfmac.i32.32x32x128.i8" unknown
  cycles  gfx950=32
}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SEVERAL, "is sparse and has several blocks: there is no such"),
        (WIDE_INDEX, "the indices that a lane holds are not 8, 16 or 32 bits side by side"),
        (SKEW + HALF.replace("operand(i, k, pack=4)", "skew(i, k)"), "is no sum of digits"),
        (SPLIT + SPARSE.replace("operand(i, k, pack=4)", "split(i, k)"), "8, 16 or 32 bits side"),
        (
            EXAMPLE.replace("float16", "float4_e2m1fn")
            .replace('16x16x16f16"', '16x16x64.f4" unknown')
            .replace("k=16", "k=64").replace("pack=4", "pack=16")
            .replace("gfx90a=32 gfx942", "gfx950"),
            "has no scales, but `a` is float4_e2m1fn",
        ),
        (
            EXAMPLE.replace("float16", "float6_e2m3fn")
            .replace('16x16x16f16"', '16x16x64.f6" unknown')
            .replace("k=16", "k=64").replace("pack=4", "pack=16")
            .replace("gfx90a=32 gfx942", "gfx950"),
            "has no scales, but `a` is float6_e2m3fn",
        ),
    ],
)  # fmt: skip
def test_what_has_no_module(text: str, message: str) -> None:
    (intrinsic,) = load_source(Source("limits.mfma", text))
    with pytest.raises(ModuleError, match=message):
        module_text(intrinsic)


def test_the_command_says_so(tmp_path: Path) -> None:
    text = SKEW + HALF.replace("operand(i, k, pack=4)", "skew(i, k)")
    result = run("compile", spec(tmp_path, text), "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert result.output.startswith("error: mfma_f32_16x16x16_f16: the index map is no sum of")
    assert not (tmp_path / "out").exists()


def test_a_call_that_llvm_does_not_have_is_told(tmp_path: Path) -> None:
    gemm = ("gemm", "--intrinsic", "example", "--arch", "gfx942", "-m", 64, "-n", 64, "-k", 64)
    unknown = EXAMPLE.replace(
        '"llvm.amdgcn.mfma.f32.16x16x16f16"', '"llvm.amdgcn.nothing.at.all" unknown'
    )
    result = run(*gemm, "--spec", spec(tmp_path, unknown))
    assert result.exit_code == 1
    assert "LLVM has no intrinsic `llvm.amdgcn.nothing.at.all`" in result.output
