"""`emulate`: a kernel's machine code, run on NumPy arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.access import SCRATCH_DESCRIPTOR, compile_access
from mfmadsl.emulator.assembly import Instruction, Program, parse_assembly
from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.matrix import compile_matrix
from mfmadsl.emulator.memory import GlobalMemory, OwnedMemory, Segment
from mfmadsl.emulator.operand import Symbol
from mfmadsl.emulator.packed import compile_packed
from mfmadsl.emulator.scalar import compile_scalar
from mfmadsl.emulator.vector import compile_vector
from mfmadsl.emulator.wave import LANES, Waves, new_waves

Dimensions = Sequence[int]
Execute = Callable[[Waves], None]

_LANES_AT_ONCE = 1 << 14
"""Lanes of the workgroups that run together: enough to hide NumPy's calls, few enough to cache."""

_NO_EFFECT = {
    "s_waitcnt",
    "s_nop",
    "s_setprio",
    "s_sleep",
    "s_setreg_imm32_b32",
    "s_waitcnt_depctr",
}


@runtime_checkable
class KernelLike(Protocol):
    """A kernel that knows its launch, such as `mfmadsl.build` returns."""

    @property
    def assembly(self) -> str: ...
    @property
    def symbol(self) -> str: ...
    @property
    def grid(self) -> tuple[int, int, int]: ...
    @property
    def block(self) -> tuple[int, int, int]: ...
    @property
    def lds_bytes(self) -> int: ...


@dataclass(frozen=True)
class Run:
    """What an emulation counted: instructions executed, one for each wave, by mnemonic."""

    instructions: Mapping[str, int]
    waves: int

    @property
    def total(self) -> int:
        return sum(self.instructions.values())


def emulate(
    kernel: KernelLike | str,
    args: Sequence[Any],
    grid: Dimensions | None = None,
    block: Dimensions | None = None,
    *,
    lds_bytes: int | None = None,
) -> Run:
    """Run a kernel's assembly; arrays in `args` are changed in place, as a GPU would.

    `kernel` is what `build` returned, or assembly text in LLVM's syntax, and then needs `grid`
    and `block`: up to three extents each, in workgroups and threads. `args` are NumPy arrays and,
    for arguments passed by value, NumPy scalars, in the order of the kernel's parameters.
    `lds_bytes` is the size of a workgroup's LDS, where the text does not state it.

    Raises EmulationError where the kernel does something undefined, such as reading outside of
    an argument, or uses an instruction that is not known; it names the line of the assembly.
    """
    if isinstance(kernel, str):
        program = parse_assembly(kernel)
        if grid is None or block is None:
            raise ValueError("assembly text does not say its launch: give grid and block")
        lds = lds_bytes
    else:
        program = parse_assembly(kernel.assembly, kernel.symbol)
        grid = kernel.grid if grid is None else grid
        block = kernel.block if block is None else block
        lds = kernel.lds_bytes if lds_bytes is None else lds_bytes
    if lds is None:
        lds = program.directive("group_segment_fixed_size")
    launch = _Launch(program, _three(grid, "grid"), _three(block, "block"), lds)
    memory, written_back = _place_arguments(program, args)
    counts = launch.run(memory)
    for array, segment in written_back:
        array[...] = memory.content(segment).view(array.dtype).reshape(array.shape)
    return counts


def _three(extents: Dimensions, name: str) -> tuple[int, int, int]:
    x, y, z = (*(int(e) for e in extents), 1, 1, 1)[:3]
    if len(extents) > 3 or min(x, y, z) < 1:
        raise ValueError(f"{name} is one to three positive numbers, not {tuple(extents)}")
    return x, y, z


def _place_arguments(
    program: Program, args: Sequence[Any]
) -> tuple[GlobalMemory, list[tuple[npt.NDArray[Any], Segment]]]:
    """Memory with the arguments in it, and the arrays to bring up to date afterwards."""
    described = [a for a in program.arguments if not a.kind.startswith("hidden_")]
    if len(args) != len(described):
        names = ", ".join(a.name or a.kind for a in described)
        raise ValueError(
            f"`{program.name}` takes {len(described)} arguments ({names}), "
            f"but {len(args)} are given"
        )
    arrays = [np.asarray(value) for value in args]
    for value, argument, array in zip(args, described, arrays, strict=True):
        by_value = argument.kind == "by_value"
        if by_value and array.nbytes != argument.size:
            raise ValueError(
                f"argument {argument.name} has {argument.size} bytes, "
                f"but {array.dtype} has {array.nbytes}"
            )
        if not by_value and not isinstance(value, np.ndarray):
            raise TypeError(
                f"argument {argument.name} is a NumPy array, not {type(value).__name__}"
            )
    contents = [
        (a.name or f"argument {i}", np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        for i, (a, array) in enumerate(zip(described, arrays, strict=True))
    ]
    size = max((a.offset + a.size for a in program.arguments), default=16)
    block = np.zeros(size, dtype=np.uint8)
    memory = GlobalMemory([("kernel arguments", block), *contents])
    block_segment, *segments = memory.segments
    for argument, segment, (_, content) in zip(described, segments, contents, strict=True):
        by_value = argument.kind == "by_value"
        value = content if by_value else np.array([segment.address], np.uint64).view(np.uint8)
        place = slice(argument.offset, argument.offset + argument.size)
        memory.content(block_segment)[place] = value
    written_back = [
        (array, segment)
        for array, argument, segment in zip(arrays, described, segments, strict=True)
        if argument.kind != "by_value" and array.flags.writeable
    ]
    return memory, written_back


@dataclass(frozen=True)
class _Launch:
    program: Program
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int

    def run(self, memory: GlobalMemory) -> Run:
        threads = int(np.prod(self.block))
        waves_per_group = -(-threads // LANES)
        groups = int(np.prod(self.grid))
        at_once = max(1, _LANES_AT_ONCE // (waves_per_group * LANES))
        scheduler = _Scheduler(self.program)
        with np.errstate(all="ignore"):
            for first in range(0, groups, at_once):
                chosen = np.arange(first, min(first + at_once, groups))
                scheduler.run(self._start(chosen, waves_per_group, threads, memory))
        return Run(scheduler.counts(), groups * waves_per_group)

    def _start(
        self,
        groups: npt.NDArray[np.int64],
        waves_per_group: int,
        threads: int,
        memory: GlobalMemory,
    ) -> Waves:
        """The waves of some workgroups with their registers as the hardware sets them."""
        p = self.program
        accumulation = p.directive("accum_offset")
        vector = p.directive("next_free_vgpr")
        waves = new_waves(
            len(groups) * waves_per_group,
            vector=max(vector, 3),
            accumulation=max(vector - accumulation, 0) if accumulation else vector,
            workgroup=np.repeat(np.arange(len(groups)), waves_per_group),
            lds=OwnedMemory("LDS", len(groups), self.lds_bytes),
            scratch=OwnedMemory(
                "scratch",
                len(groups) * waves_per_group * LANES,
                p.directive("private_segment_fixed_size"),
            ),
            memory=memory,
        )
        self._set_vector_registers(waves, waves_per_group, threads)
        self._set_scalar_registers(waves, np.repeat(groups, waves_per_group), memory)
        waves.pc = p.entry
        return waves

    def _set_vector_registers(self, waves: Waves, waves_per_group: int, threads: int) -> None:
        """v0 holds the thread's coordinates, packed in ten bits each on gfx90a and newer."""
        x, y, _ = self.block
        thread = np.arange(waves_per_group * LANES).reshape(waves_per_group, LANES)
        repeats = (waves.count // waves_per_group, 1)
        coordinates = [
            np.tile(c.astype(np.uint32), repeats)
            for c in (thread % x, thread // x % y, thread // (x * y))
        ]
        if self.program.arch == "gfx908":
            for register, coordinate in zip(waves.vector, coordinates, strict=False):
                register[...] = coordinate
        else:
            waves.vector[0] = coordinates[0] | coordinates[1] << 10 | coordinates[2] << 20
        if threads % LANES:
            active = np.tile(thread < threads, repeats)
            packed = np.packbits(active, axis=1, bitorder="little").view(np.uint32)
            waves.scalar[126:128] = packed.T
            waves.update_exec()

    def _set_scalar_registers(
        self, waves: Waves, groups: npt.NDArray[np.int64], memory: GlobalMemory
    ) -> None:
        """User registers, then the workgroup's coordinates (LLVM AMDGPU guide, initial state)."""
        p = self.program
        index = 0
        for name, count in (
            ("private_segment_buffer", 4),
            ("dispatch_ptr", 2),
            ("queue_ptr", 2),
            ("kernarg_segment_ptr", 2),
            ("dispatch_id", 2),
            ("flat_scratch_init", 2),
            ("private_segment_size", 1),
        ):
            if not p.directive(f"user_sgpr_{name}"):
                continue
            if name == "private_segment_buffer":
                waves.scalar[index : index + 4] = np.array(SCRATCH_DESCRIPTOR)[:, None]
            elif name == "kernarg_segment_ptr":
                address = memory.segments[0].address
                waves.scalar[index] = address & 0xFFFF_FFFF
                waves.scalar[index + 1] = address >> 32
            elif name in ("dispatch_ptr", "queue_ptr", "dispatch_id"):
                raise EmulationError(f"the kernel asks for its {name}, which is not emulated")
            index += count
        preloaded = p.directive("user_sgpr_kernarg_preload_length")
        start = 4 * p.directive("user_sgpr_kernarg_preload_offset")
        content = memory.content(memory.segments[0])[start : start + 4 * preloaded]
        for word in content.view(np.uint32):
            waves.scalar[index] = word
            index += 1
        gx, gy, _ = self.grid
        for axis, coordinate in zip(
            "xyz", (groups % gx, groups // gx % gy, groups // (gx * gy)), strict=True
        ):
            if p.directive(f"system_sgpr_workgroup_id_{axis}"):
                waves.scalar[index] = coordinate
                index += 1


class _Scheduler:
    """Runs groups of waves, the one furthest behind first, and joins those that meet again."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._compiled: list[Execute | None] = [None] * len(program.instructions)
        self._executed = [0] * len(program.instructions)

    def counts(self) -> dict[str, int]:
        total: Counter[str] = Counter()
        for instruction, count in zip(self._program.instructions, self._executed, strict=True):
            if count:
                total[instruction.name] += count
        return dict(sorted(total.items()))

    def run(self, waves: Waves) -> None:
        running, waiting = [waves], list[Waves]()
        while running or waiting:
            if not running:  # every wave has reached its barrier or its end
                running, waiting = _joined(waiting), []
            running.sort(key=lambda group: group.pc, reverse=True)
            group = running.pop()
            meeting = running[-1].pc if running else None
            stopped, split = self._advance(group, meeting)
            if split is not None:
                running += [group, split]
            elif stopped == "barrier":
                waiting.append(group)
            elif stopped == "meeting":
                running.append(group)
            running = _joined(running)

    def _advance(self, waves: Waves, meeting: int | None) -> tuple[str, Waves | None]:
        """Execute until the end, a barrier, a divergent branch, or another group's place."""
        instructions, compiled, executed = (
            self._program.instructions,
            self._compiled,
            self._executed,
        )
        while True:
            pc = waves.pc
            if pc >= len(instructions):
                raise EmulationError("the program ran past its last instruction")
            instruction = instructions[pc]
            executed[pc] += waves.count
            waves.pc = pc + 1
            name = instruction.name
            if name == "s_endpgm":
                return "end", None
            if name == "s_barrier":
                return "barrier", None
            if name.startswith(("s_branch", "s_cbranch")):
                split = self._branch(waves, instruction)
                if split is not None:
                    return "split", split
            elif name not in _NO_EFFECT:
                execute = compiled[pc]
                if execute is None:
                    execute = compiled[pc] = compile_instruction(instruction, self._program.arch)
                try:
                    execute(waves)
                except EmulationError as error:
                    text = instruction.text
                    raise EmulationError(str(error), instruction.line, text) from None
            if meeting is not None and waves.pc >= meeting:
                return "meeting", None

    def _branch(self, waves: Waves, instruction: Instruction) -> Waves | None:
        """Follow a branch; if only some waves take it, those that do, split off."""
        (label,) = instruction.operands
        if not isinstance(label, Symbol) or label.name not in self._program.labels:
            raise EmulationError("branch to nowhere", instruction.line, instruction.text)
        target = self._program.labels[label.name]
        if instruction.name == "s_branch":
            waves.pc = target
            return None
        condition = instruction.name.removeprefix("s_cbranch_")
        if condition not in _CONDITIONS:
            raise EmulationError("unknown instruction", instruction.line, instruction.text)
        taken = _CONDITIONS[condition](waves)
        if taken.all():
            waves.pc = target
            return None
        if not taken.any():
            return None
        apart = waves.select(taken, target)
        rest = waves.select(~taken, waves.pc)
        waves.__dict__.update(rest.__dict__)
        return apart


def _any_lane(register: int) -> Callable[[Waves], npt.NDArray[np.bool_]]:
    return lambda waves: (waves.scalar[register] | waves.scalar[register + 1]) != 0


_CONDITIONS: dict[str, Callable[[Waves], npt.NDArray[np.bool_]]] = {
    "scc0": lambda waves: ~waves.scc,
    "scc1": lambda waves: waves.scc,
    "vccz": lambda waves: ~_any_lane(106)(waves),
    "vccnz": _any_lane(106),
    "execz": lambda waves: ~_any_lane(126)(waves),
    "execnz": _any_lane(126),
}


def _joined(groups: list[Waves]) -> list[Waves]:
    """Groups at the same program counter, made one."""
    by_pc: dict[int, Waves] = {}
    for group in groups:
        by_pc[group.pc] = by_pc[group.pc].join(group) if group.pc in by_pc else group
    return list(by_pc.values())


def compile_instruction(instruction: Instruction, arch: str) -> Execute:
    """What an instruction does to waves of a chip. Raises EmulationError if it is not known."""
    try:
        execute = (
            compile_vector(instruction)
            or compile_packed(instruction)
            or compile_matrix(instruction, arch)
            or compile_access(instruction)
            or compile_scalar(instruction)
        )
    except (AssertionError, IndexError, KeyError, ValueError):
        execute = None  # its operands are not what the manual gives it
    if execute is None:
        raise EmulationError("unknown instruction", instruction.line, instruction.text)
    return execute
