"""The commands as tests run them."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from mfmadsl.cli import main
from tests.language.entries import HALF

GEMM = ("gemm", "--intrinsic", "mfma_f32_16x16x16_f16", "--arch", "gfx942")
SMALL = (*GEMM, "-m", "32", "-n", "32", "-k", "32")


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def spec(folder: Path, text: str = HALF) -> Path:
    path = folder / "spec.mfma"
    path.write_text(text)
    return path
