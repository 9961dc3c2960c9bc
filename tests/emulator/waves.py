"""One wave in a known state, for tests of single instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.instructions.chip import not_of_chip
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.memory import GlobalMemory, OwnedMemory
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.wave import WavePosition, Waves, new_waves
from mfmadsl.emulator.text.assembly import parse_instruction
from mfmadsl.emulator.text.operand import EXEC, MODE, Register, parse_operand
from mfmadsl.model import architecture

CHIPS = ("gfx942", "gfx950", "gfx90a", "gfx908")
Words = npt.NDArray[np.uint32]

KERNEL = """\
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.text
kernel:
{code}
	s_endpgm
	.amdhsa_kernel kernel
		.amdhsa_group_segment_fixed_size {lds}
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_next_free_vgpr 32
		.amdhsa_accum_offset 32
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .name: kernel
    .args:
{arguments}
...
	.end_amdgpu_metadata
"""


def kernel(code: str, arguments: int = 1, lds: int = 0) -> str:
    """A whole assembly text of one kernel that takes some arrays."""
    described = "\n".join(
        f"      - {{.name: p{i}, .offset: {8 * i}, .size: 8, .value_kind: global_buffer}}"
        for i in range(arguments)
    )
    return KERNEL.format(code=code, lds=lds, arguments=described)


def wave(count: int = 1, lds: int = 256) -> Waves:
    """Waves of one workgroup."""
    memory = GlobalMemory.of_arrays([("data", np.zeros(4096, np.uint8))])
    waves = new_waves(
        count,
        64,
        64,
        np.zeros(count, np.int64),
        OwnedMemory("LDS", 1, lds),
        OwnedMemory("scratch", 64 * count, 64),
        memory,
        WavePosition(np.zeros(1, np.int64), count, (1, 1, 1)),
    )
    waves.scalar[MODE] = 0xF0  # nothing is flushed
    return waves


def put(waves: Waves, values: Mapping[str, Any]) -> None:
    """Set registers such as v1, v[2:3], s4, a[0:3], vcc or exec, of any type of 4 or 8 bytes."""
    for name, value in values.items():
        register = parse_operand(name)
        assert isinstance(register, Register)
        array = np.atleast_1d(np.asarray(value))
        words = array.view(np.uint32).reshape(*array.shape, -1)
        for i in range(words.shape[-1]):
            word = words[..., i]
            if register.bank == "s":
                waves.scalar[register.index + i] = word
            else:
                file = waves.vector if register.bank == "v" else waves.accumulation
                file[register.index + i, :] = word
        if register.bank == "s" and register.index >= EXEC:
            waves.update_exec()


def run(waves: Waves, code: str, arch: str | None = None) -> None:
    """Execute one instruction: on gfx942, or else on another chip that has it."""
    if arch is None:
        instruction = parse_instruction(code)
        having = (x for x in CHIPS if not not_of_chip(instruction, architecture(x)))
        arch = next(having, CHIPS[0])
    with np.errstate(all="ignore"):
        compile_instruction(parse_instruction(code), Machine(arch)).execute(waves)


def executed(code: str, values: Mapping[str, Any]) -> Waves:
    """A wave after one instruction that found these values in its registers."""
    waves = wave()
    put(waves, values)
    run(waves, code)
    return waves


def vector(waves: Waves, index: int, dtype: Any = np.uint32) -> npt.NDArray[Any]:
    """What the lanes of the first wave hold from register `index` on."""
    size = np.dtype(dtype).itemsize // 4 or 1
    words = np.ascontiguousarray(waves.vector[index : index + size, 0].T)
    found: npt.NDArray[Any] = words.view(dtype)[:, 0]
    return found
