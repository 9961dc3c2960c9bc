"""A chip that does everything as late as it may: an outside witness for the sanitizer.

What a load brings is in its registers only after the wait for it; before, they hold rubbish. What
a wave writes to LDS, other waves see only when it has waited for it. The waves of a workgroup run
one at a time, in a random order. A kernel that gives the right numbers on such a chip, whatever
the order, does not depend on what is undefined.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.executor import Executor
from mfmadsl.emulator.machine.launch import load_arguments, start_waves
from mfmadsl.emulator.machine.memory import Addresses, ByteStore
from mfmadsl.emulator.machine.mode import machine_of
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wait import LARGEST, wait_counts
from mfmadsl.emulator.machine.watch import Watch
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.run import KernelLike, launch_of
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Register

RUBBISH = np.uint32(0x7FC0_5A5A)


@dataclass
class _Pending:
    """Registers that a load will set, or words of LDS that a store will, when it is complete."""

    counters: tuple[str, ...]
    registers: list[tuple[str, int, npt.NDArray[np.uint32]]] = field(default_factory=list)
    words: list[tuple[Addresses, npt.NDArray[np.uint32]]] = field(default_factory=list)
    scalar_load: bool = False


class LateChip(Watch):
    """Watches an emulation of single waves, and takes back what comes too early."""

    def __init__(self, waves: Waves) -> None:
        self._words: list[tuple[Addresses, npt.NDArray[np.uint32], npt.NDArray[np.uint32]]] = []
        self._pending: dict[int, list[_Pending]] = {int(wave): [] for wave in waves.index}
        waves.vector[1:] = RUBBISH
        waves.accumulation[:] = RUBBISH

    def before(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        self._words = []
        if operation.unit == "lds":  # a wave sees its own writes in order
            for pending in self._of(waves):
                self._show(waves, pending)

    def after(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        counters = operation.counters
        if not counters:
            return
        pending = _Pending(counters, scalar_load=operation.unit == "smem")
        for register in operation.writes:
            for index in register.indices:
                file = self._file(waves, register.bank)
                pending.registers.append((register.bank, index, file[index].copy()))
                file[index] = RUBBISH
        for offsets, old, new in self._words:
            pending.words.append((offsets, new))
            waves.lds.store_words(offsets, old)
        self._of(waves).append(pending)
        for counter in counters:
            self._complete(waves, counter, LARGEST[counter])

    def passes(self, waves: Waves, instruction: Instruction) -> None:
        if instruction.name == "s_endpgm":
            for counter in ("vmcnt", "lgkmcnt"):
                self._complete(waves, counter, 0)
        if instruction.name == "s_waitcnt":
            for name, count in wait_counts(instruction.modifiers["argument"]).items():
                self._complete(waves, name, count)

    def _complete(self, waves: Waves, counter: str, left: int) -> None:
        """All but the youngest instructions of a counter take effect."""
        mine = [p for p in self._of(waves) if counter in p.counters]
        if left and any(p.scalar_load for p in mine):
            return
        for pending in mine[: len(mine) - left]:
            for bank, index, value in pending.registers:
                self._file(waves, bank)[index] = value
            self._show(waves, pending)
            self._of(waves).remove(pending)

    def _show(self, waves: Waves, pending: _Pending) -> None:
        for offsets, new in pending.words:
            waves.lds.store_words(offsets, new)
        pending.words.clear()

    def _of(self, waves: Waves) -> list[_Pending]:
        (wave,) = waves.index
        return self._pending[int(wave)]

    @staticmethod
    def _file(waves: Waves, bank: str) -> npt.NDArray[np.uint32]:
        return {"v": waves.vector, "a": waves.accumulation, "s": waves.scalar}[bank]

    def stores(
        self, waves: Waves, store: ByteStore, offsets: Addresses, source: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        if store is waves.lds and width.words:
            file = self._file(waves, source.bank)
            words = file[source.index : source.index + width.words]
            new = words.copy() if mask is None else words[:, mask]
            self._words.append((offsets, store.load_words(offsets, width.words), new))


def emulate_late(kernel: KernelLike, args: Sequence[Any], seed: int, budget: int) -> None:
    """Run a kernel on the late chip, its waves in an order that `seed` chooses."""
    launch = launch_of(kernel, None, None, None)
    loaded = load_arguments(launch, args)
    compile_one = partial(compile_instruction, machine=machine_of(launch.program))
    executor = Executor(launch.program, budget, compile_one)
    generator = random.Random(seed)
    with np.errstate(all="ignore"):
        for group in range(launch.groups):
            waves, _ = start_waves(launch, loaded, np.array([group]))
            waves.watch = chip = LateChip(waves)
            _run_one_by_one(executor, waves, chip, generator)
    loaded.bring_back()


def _run_one_by_one(
    executor: Executor, waves: Waves, chip: LateChip, generator: random.Random
) -> None:
    running = [waves.select(waves.index == wave, waves.pc) for wave in waves.index]
    waiting: list[Waves] = []
    while running or waiting:
        if not running:
            running, waiting = waiting, []
        wave = running.pop(generator.randrange(len(running)))
        meeting = wave.pc + generator.choice([1, 5, 30, 1000])
        stopped, split = executor.advance(wave, meeting, chip)
        assert not split
        if stopped == "barrier":
            waiting.append(wave)
        elif stopped == "meeting":
            running.append(wave)
