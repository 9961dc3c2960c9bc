"""One module of each kind as it is generated, to be read.

`python -m tests.codegen.snapshots` writes them anew, after a change that is meant.
"""

from __future__ import annotations

from pathlib import Path

from mfmadsl.codegen import module_name, module_text
from mfmadsl.language import find, find_microkernel, load_entries
from mfmadsl.model import Accelerator, Intrinsic, Microkernel

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "generated"
(_UNIT,) = load_entries(ROOT / "examples/tmm16/tmm16.mfma").accelerators
KINDS: list[tuple[Intrinsic | Accelerator | Microkernel, int]] = [
    (find("mfma_f32_16x16x16_f16"), 1),
    (find("mfma_f64_16x16x4_f64"), 2),
    (find("mfma_f32_4x4x4_16b_bf16"), 1),
    (find("smfmac_f32_16x16x32_bf16"), 1),
    (find("mfma_scale_f32_16x16x128_f8f6f4_fp8_fp4"), 1),
    (_UNIT, 1),
    (find_microkernel("avx512_f32_8x32"), 1),
    (find_microkernel("sse2_f64_6x4"), 1),
    (find_microkernel("vnni_u8i8_8x32"), 1),
    (find_microkernel("amx_i8_16x16x64"), 1),
]
"""Plain, of two instructions, of blocks, sparse, scaled; an accelerator's; and of micro-kernels: of
an instruction, of an expression, of dot products, of tile registers."""


def snapshots() -> dict[Path, str]:
    """What is to lie in the folder."""
    return {FOLDER / f"{module_name(x, k)}.py": module_text(x, k) for x, k in KINDS}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in snapshots().items():
        path.write_text(text)
