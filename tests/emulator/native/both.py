"""Instructions executed twice: by the interpreter and as native code, on the same random waves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.memory import GlobalMemory, OwnedMemory
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.wave import WavePosition, Waves, new_waves
from mfmadsl.emulator.native.form import NativeStep
from mfmadsl.emulator.native.library import library
from mfmadsl.emulator.native.name import name_of
from mfmadsl.emulator.native.state import State
from mfmadsl.emulator.native.steps import describe
from mfmadsl.emulator.native.stretch import Part, stretch_of
from mfmadsl.emulator.text.assembly import Instruction, parse_instruction
from mfmadsl.emulator.text.operand import EXEC, MODE

WAVES, REGISTERS = 3, 24
LDS_BYTES = 4096
Words = npt.NDArray[np.uint32]

KEEPING = Machine("gfx942")
FLUSHING = Machine("gfx942", flushed=("f32", "f16", "f64"), ieee=False)
MACHINES = (KEEPING, FLUSHING, Machine("gfx90a", flushed=("f32",)), Machine("gfx950"))

SINGLES = np.array(
    [
        0, 0x8000_0000, 1, 0x8000_0001, 0x007F_FFFF, 0x0080_0000, 0x3F80_0000, 0xBF80_0000,
        0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0xFFC0_0000, 0x7FC0_1234, 0x7F80_0001, 0xFFA5_5A5A,
        0x7F7F_FFFF, 0xFF7F_FFFF, 0x4F00_0000, 0xCF00_0000, 0x4F80_0000, 0x3F00_0000, 0x4180_0000,
        0x7FFF_FFFF, 0xFFFF_FFFF, 63, 64, 32, 31, 0x4B00_0001, 0x3380_0000, 0x0040_0000,
    ],
    np.uint32,
)  # fmt: skip
HALVES = np.array(
    [
        0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7E55,
        0x7C01, 0xFD55, 0x7BFF, 0xFBFF, 0x3800, 0x4C00, 0x7FFF, 0xFFFF, 0x1400,
    ],
    np.uint32,
)  # fmt: skip


def random_words(generator: np.random.Generator, shape: tuple[int, ...]) -> Words:
    """Words of all kinds: any bits, usual floats, halves, and those of the ends of types."""
    kinds = [
        generator.integers(0, 1 << 32, shape, np.uint32),
        generator.standard_normal(shape, np.float32).view(np.uint32),
        (generator.standard_normal(shape, np.float32) * np.float32(100)).view(np.uint32),
        generator.choice(SINGLES, shape),
        generator.choice(HALVES, shape) | generator.choice(HALVES, shape) << np.uint32(16),
        generator.standard_normal((*shape, 2)).astype(np.float16).view(np.uint32)[..., 0],
        generator.integers(0, 70, shape).astype(np.uint32),
        generator.choice(np.array([0x3FF0_0000, 0x7FF0_0000, 0xFFF8_0000, 0x4035_8000, 0x8010_0000,
                                   0x7FEF_FFFF, 0x000F_FFFF, 0xC1E0_0000], np.uint32), shape),
    ]  # fmt: skip
    return np.choose(generator.integers(0, len(kinds), shape), kinds)


def copied(waves: Waves) -> Waves:
    """Waves with registers and memory of their own."""
    lds = OwnedMemory("LDS", waves.lds.owners, waves.lds.size)
    lds.content_of_all()[...] = waves.lds.content_of_all()
    memory = _memory()
    memory.content_of_all()[...] = waves.memory.content_of_all()
    names = ("vector", "accumulation", "scalar", "scc")
    kept = {name: getattr(waves, name).copy() for name in names}
    found = replace(waves, **kept, lds=lds, memory=memory, kept=None)
    found.update_exec()
    return found


def _memory() -> GlobalMemory:
    content = np.random.default_rng(1).integers(0, 256, 4096, np.uint8)
    return GlobalMemory.of_arrays(
        [("first", content), ("constant", content[:512]), ("last", content[:1000])],
        {"constant": "`constant`"},
    )


@cache
def random_waves(seed: int, mode: int, lanes: str = "random") -> Waves:
    """Waves with random registers, LDS and memory, to copy; `lanes` are all, random or few."""
    generator = np.random.default_rng(seed)
    memory = _memory()
    waves = new_waves(
        WAVES,
        REGISTERS,
        REGISTERS,
        np.arange(WAVES) // 2,
        OwnedMemory("LDS", (WAVES + 1) // 2, LDS_BYTES),
        OwnedMemory("scratch", 64 * WAVES, 64),
        memory,
        WavePosition(np.arange((WAVES + 1) // 2), 2, (8, 1, 1)),
    )
    waves.lds.store_words(
        4 * np.arange(len(waves.lds.load_words(np.arange(0, waves.lds.size_in_bytes, 4), 1)[0])),
        random_words(generator, (1, waves.lds.size_in_bytes // 4)),
    )
    waves.vector[...] = random_words(generator, waves.vector.shape)
    waves.accumulation[...] = random_words(generator, waves.accumulation.shape)
    waves.scalar[:108] = random_words(generator, (108, WAVES))
    waves.scc = generator.integers(0, 2, WAVES).astype(np.bool_)
    waves.scalar[MODE] = mode
    if lanes == "random":
        waves.scalar[EXEC : EXEC + 2] = generator.integers(0, 1 << 32, (2, WAVES), np.uint32)
        waves.scalar[EXEC : EXEC + 2, 0] = 0xFFFF_FFFF
    elif lanes == "few":
        waves.scalar[EXEC : EXEC + 2] = 0
        waves.scalar[EXEC, :2] = (1, 0x8000_0000)
    waves.update_exec()
    return waves


@dataclass(frozen=True)
class Known:
    """An instruction that both execute."""

    instruction: Instruction
    step: NativeStep


def known(text: str, machine: Machine) -> Known | None:
    """The instruction, if the interpreter takes it and it has native code."""
    try:
        instruction = parse_instruction(text)
        compile_instruction(instruction, machine)
    except EmulationError:
        return None
    step = describe(instruction, machine)
    return None if step is None else Known(instruction, step)


def interpret(waves: Waves, instructions: Sequence[Instruction], machine: Machine) -> None:
    """Execute instructions by the interpreter."""
    with np.errstate(all="ignore"):
        for instruction in instructions:
            compile_instruction(instruction, machine).execute(waves)


def run_natively(waves: Waves, steps: Sequence[NativeStep]) -> int:
    """Execute steps, and say how many did not have to be left to the interpreter."""
    addresses = library().addresses({name_of(step.form): step.form for step in steps})
    nothing = parse_instruction("s_nop 0")
    parts = [Part(nothing, None, (step,)) for step in steps]
    stretch = stretch_of(parts, addresses, library().driver())
    state = State(waves)
    assert state.is_usable
    state.begin(waves)
    done = stretch.driver(state.address, stretch.address, stretch.count)
    state.end(waves, stretch.changes_scc, stretch.changes_exec)
    return done


def differences(one: Waves, other: Waves) -> list[str]:
    """What of two states is not the same, bit for bit."""
    told = []
    pairs: dict[str, tuple[Any, Any]] = {
        "v": (one.vector, other.vector),
        "a": (one.accumulation, other.accumulation),
        "s": (one.scalar, other.scalar),
        "scc": (one.scc[None], other.scc[None]),
        "exec": (one.lanes_of(one.exec_mask())[None], other.lanes_of(other.exec_mask())[None]),
        "memory": (one.memory.content_of_all()[None], other.memory.content_of_all()[None]),
        "lds": (one.lds.content_of_all()[None], other.lds.content_of_all()[None]),
    }
    for name, (left, right) in pairs.items():
        for at in np.argwhere(left != right)[:4]:
            place = tuple(int(x) for x in at)
            told.append(f"{name}{place}: {int(left[place]):#x}, natively {int(right[place]):#x}")
    return told
