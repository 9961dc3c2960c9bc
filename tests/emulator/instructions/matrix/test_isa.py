"""Which matrix instructions the emulator knows, against those that LLVM selects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mfmadsl.emulator.error import EmulationError, OperandError
from mfmadsl.emulator.instructions.matrix import compile_matrix, is_modelled
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.text.assembly import parse_instruction
from mfmadsl.model import ARCHITECTURES
from tests.emulator.assembler import accepted
from tests.emulator.waves import put, run, wave


def written(mnemonic: str, registers: list[int]) -> str:
    """An instruction whose operands have so many registers: D, A, B, and what follows."""
    spans = [f"v[{64 * i}:{64 * i + count - 1}]" for i, count in enumerate(registers)]
    formats = {6: 2, 4: 4}
    modifiers = ""
    if mnemonic.endswith("f8f6f4"):
        a, b = (formats.get(count, 0) for count in registers[1:3])
        modifiers = f" cbsz:{a} blgp:{b}"
    return f"{mnemonic} {', '.join(spans)}{modifiers}"


def is_known(text: str, chip: str) -> bool:
    return compile_matrix(parse_instruction(text), Machine(chip)) is not None


def test_it_knows_all_that_llvm_selects_for_a_chip_and_nothing_else(
    llvm_intrinsics: dict[str, Any],
) -> None:
    count = 0
    for name, found in llvm_intrinsics.items():
        if "mma." in name:  # wmma and swmmac: of other chips
            continue
        for form in found["forms"]:
            text = written(form["mnemonic"], form["registers"])
            # A mnemonic's spelling changed with gfx942; either may be known to both.
            having = {chip for other in found["forms"] for chip in other["cpus"]}
            for chip in set(ARCHITECTURES) - (having - set(form["cpus"])):
                assert is_known(text, chip) == (chip in form["cpus"]), (text, chip)
                count += 1
    assert count > 300


@pytest.mark.parametrize("changed", range(4))
@pytest.mark.parametrize(
    ("mnemonic", "registers"),
    [
        ("v_mfma_f32_16x16x16_f16", [4, 2, 2, 4]),
        ("v_mfma_f64_16x16x4_f64", [8, 2, 2, 8]),
        ("v_smfmac_f32_16x16x32_f16", [4, 2, 4, 1]),
    ],
)
def test_operands_of_another_size_are_refused(
    mnemonic: str, registers: list[int], changed: int
) -> None:
    assert is_known(written(mnemonic, registers), "gfx942")
    registers = [count + (i == changed) for i, count in enumerate(registers)]
    assert not is_known(written(mnemonic, registers), "gfx942")


@pytest.mark.parametrize(
    "text",
    [
        "v_mfma_f32_8x32x16_f16 v[0:3], v[4:4], v[8:11], v[0:3]",
        "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3] cbsz:1",
        "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3] op_sel:[1,0]",
        "v_mfma_f32_16x16x4_4b_f16 v[0:15], v[4:5], v[6:7], v[0:15] cbsz:3",
        "v_mfma_f32_16x16x4_4b_f16 v[0:15], v[4:5], v[6:7], v[0:15] cbsz:1 abid:2",
        "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7]",
        "v_mfma_f32_16x16x16_f16 v[0:3], 1.0, v[6:7], v[0:3]",
        "v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], 1",
    ],
)
def test_what_no_chip_has_is_refused(text: str) -> None:
    assert not is_known(text, "gfx942")


@pytest.mark.parametrize("format_code", [5, 6, 7])
def test_formats_that_there_are_not(format_code: int) -> None:
    text = "v_mfma_f32_16x16x128_f8f6f4 v[20:23], v[0:7], v[8:15], v[20:23]"
    assert is_known(text, "gfx950")
    assert not is_known(f"{text} cbsz:{format_code}", "gfx950")
    assert not is_known(f"{text} blgp:{format_code}", "gfx950")


REFUSED = [
    "v_mfma_f32_16x16x4_f32 s[4:7], v0, v1, 0",
    "v_mfma_f32_16x16x4_f32 v[4:7], s2, v1, 0",
    "v_mfma_f32_16x16x4_f32 v[4:7], v0, s2, 0",
    "v_mfma_f32_16x16x4_f32 v[4:7], v0, v1, s[4:7]",
    "v_mfma_f32_16x16x4_f32 v[4:7], -v0, v1, 0",
    "v_mfma_f32_16x16x4_f32 v[4:7], v0, v1, 65",
    "v_mfma_f32_16x16x4_f32 v[4:7], v0, v1, 3.0",
    "v_mfma_f32_16x16x4_f32 v[4:7], v0, v1, v[4:7] neg:[0,0,1]",
    "v_mfma_f32_16x16x4_f32 v[4:7], v0, v1, v[4:7] blgp:8",
    "v_mfma_f32_16x16x4_f32 v[4:7], v0, v1, v[4:7] abid:-1",
    "v_mfma_f32_16x16x4_2b_f32 v[4:7], v0, v1, v[4:7]",
    "v_mfma_f32_4x4x1_2b_f32 v[4:7], v0, v1, v[4:7]",
    "v_mfma_f64_16x16x4_f64 v[8:15], vcc, v[4:5], 0",
    "v_mfma_f64_16x16x4_f64 v[8:15], v[2:3], v[4:5], 0 blgp:1",
    "v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v1 abid:16",
    "v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], s1",
]


def test_forms_that_llvms_assembler_refuses() -> None:
    assert not any(accepted(REFUSED, "gfx942"))
    for text in REFUSED:
        with pytest.raises(EmulationError, match="unknown instruction"):
            compile_instruction(parse_instruction(text), Machine("gfx942"))


def test_registers_that_a_kernel_does_not_have_are_never_written() -> None:
    waves = wave()  # of 64 registers
    for text in ("v[62:65], v0, v1, 0", "v[4:7], v0, v1, a[62:65]"):
        operation = compile_instruction(
            parse_instruction(f"v_mfma_f32_16x16x4_f32 {text}"), Machine("gfx942")
        )
        with pytest.raises(OperandError, match="beyond the registers"):
            operation.execute(waves)


def test_the_second_instruction_for_bf16_has_two_spellings() -> None:
    results = []
    for name in ("16x16x16bf16_1k", "16x16x16_bf16"):
        waves = wave()
        generator = np.random.default_rng(2)
        for i in range(8):
            put(waves, {f"v{i}": generator.integers(0, 1 << 32, 64, np.uint32)})
        run(waves, f"v_mfma_f32_{name} v[8:11], v[0:1], v[2:3], v[4:7]")
        results.append(waves.vector[8:12].copy())
        assert is_modelled(f"v_mfma_f32_{name}", "gfx942")
    assert (results[0] == results[1]).all()
