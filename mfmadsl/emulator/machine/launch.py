"""Starting a kernel: arguments into memory, registers as the hardware sets them.

Source: LLVM's "User Guide for AMDGPU Backend", section "Initial Kernel Execution State".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.argument import described
from mfmadsl.emulator.machine.aperture import HARDWARE_WORDS
from mfmadsl.emulator.machine.argument import check_passed, check_size, protections
from mfmadsl.emulator.machine.host_calls import (
    ARGUMENT,
    NAME,
    HostCalls,
    bytes_of,
    in_silence,
    packets,
    to_standard_streams,
)
from mfmadsl.emulator.machine.memory import GlobalMemory, OwnedMemory, Segment
from mfmadsl.emulator.machine.mode import machine_of
from mfmadsl.emulator.machine.wave import EXEC_PAIR, LANES, WavePosition, Waves, new_waves
from mfmadsl.emulator.text.assembly import Program
from mfmadsl.emulator.text.metadata import KernelArgument, passed
from mfmadsl.emulator.text.operand import MODE
from mfmadsl.emulator.text.registers import asked_vector_registers
from mfmadsl.error import ArgumentError
from mfmadsl.model import Architecture, Intrinsic, assumed

Extents = tuple[int, int, int]

_KERNARG_ALIGNMENT = 16
"""How the kernel argument segment is aligned (LLVM's guide, section "Kernel Dispatch").

LLVM reads up to its next multiple: where it knows the alignment it makes one load of four words of
three arguments that have one each (`WidenOrSplitVectorLoad`).
"""

_MORE_LDS = ": if the kernel gets more when it is launched, say so by `--lds`, or `lds_bytes=`"

_DYNAMIC_STACK = 1024
"""Bytes of scratch memory that HIP gives a lane where the compiler does not know how many it needs,
as of recursion and calls by pointers, unless `hipDeviceSetLimit` says otherwise."""

_MORE_STACK = (
    ", as much as HIP gives where the compiler does not know how much is needed: if the program "
    "sets another limit, write it as `.amdhsa_private_segment_fixed_size`"
)

SCRATCH_DESCRIPTOR = (0, 0x8000_0000, 0xFFFF_FFFF, 0x0080_0000)
"""What s[0:3] hold in kernels that reach their scratch memory by buffer instructions: base 0,
swizzled, of any size, and with the thread's number added (CDNA3 ISA, section 9.1.5)."""


@dataclass(frozen=True)
class Launch:
    """A kernel and how it is started: extents in workgroups and in threads, bytes of LDS, and the
    `.mfma` entries that are trusted to say what their instructions do."""

    program: Program
    grid: Extents
    block: Extents
    lds_bytes: int
    trusted: tuple[Intrinsic, ...] = ()

    @property
    def threads(self) -> int:
        """How many threads a workgroup has."""
        return prod(self.block)

    @property
    def waves_per_group(self) -> int:
        """Waves of a workgroup."""
        return -(-self.threads // LANES)

    @property
    def groups(self) -> int:
        """Workgroups of the launch."""
        return prod(self.grid)


def check_extents(launch: Launch) -> None:
    """Raise ArgumentError for a grid, block or LDS that the kernel or the chip does not take."""
    program, block = launch.program, launch.block
    required = program.workgroup_size
    if required is not None and (*required, 1, 1)[:3] != block:
        raise ArgumentError(f"block: `{program.name}` requires {tuple(required)}, not {block}")
    chip = assumed(program.arch)
    most = chip.max_threads if program.most_threads is None else program.most_threads
    if launch.threads > most:
        raise ArgumentError(
            f"block: `{program.name}` takes up to {most} threads, not the {launch.threads} of "
            f"{block}"
        )
    if not 0 <= launch.lds_bytes <= chip.lds_bytes:
        raise ArgumentError(
            f"`{program.name}`: a workgroup has up to {chip.lds_bytes} bytes of LDS, not "
            f"{described(launch.lds_bytes)}"
        )
    _check_room(launch, chip)
    for axis, groups, threads in zip("xyz", launch.grid, block, strict=True):
        if groups * threads >= 1 << 32:
            raise ArgumentError(
                f"grid: {groups} workgroups of {threads} threads along {axis} are more than the "
                "hardware counts, which is up to 2^32 - 1 threads"
            )


def _check_room(launch: Launch, chip: Architecture) -> None:
    """Raise ArgumentError where the waves of a workgroup have more registers than a chip has."""
    program = launch.program
    asked = asked_vector_registers(program.directives, program.registers, program.arch)
    waves = -(-launch.waves_per_group // chip.simds)
    if chip.family and waves * chip.granted(asked) > chip.simd_registers:
        raise ArgumentError(
            f"block: {launch.threads} threads are {waves} waves for each SIMD, whose "
            f"{chip.simd_registers} registers a lane are too few: `{program.name}` asks for "
            f"{chip.granted(asked)} in each wave"
        )


@dataclass(frozen=True)
class LoadedProgram:
    """The memory of a launch, where in it the hardware looks, and the arrays to bring back."""

    memory: GlobalMemory
    arguments: Segment
    dispatch_packet: Segment
    arrays: tuple[tuple[npt.NDArray[Any], Segment], ...] = ()

    def bring_back(self) -> None:
        """Change the caller's arrays as the kernel has."""
        for array, segment in self.arrays:
            content = self.memory.content(segment)
            array[...] = content.view(array.dtype).reshape(array.shape)


Load = Callable[[], LoadedProgram]
"""Gives the memory of a launch, which a run may change."""


def load_arguments(launch: Launch, args: Sequence[Any], kept: bool = False) -> LoadedProgram:
    """Memory with the arguments in it.

    With `kept` the arrays stay as they are, whatever the kernel does to its copies. Raises
    ArgumentError if they are not what the kernel takes.
    """
    program = launch.program
    taken = passed(program.arguments)
    names = [a.name or str(i) for i, a in enumerate(taken)]
    if len(args) != len(taken):
        raise ArgumentError(
            f"`{program.name}` takes {len(taken)} arguments ({', '.join(names)}), "
            f"but {len(args)} are given{_hint(taken, len(args))}"
        )
    for each in zip(args, taken, names, strict=True):
        check_passed(*each, kept)
    arrays = [np.zeros(0, np.uint8) if value is None else np.asarray(value) for value in args]
    check_size(sum(array.nbytes for array in arrays), "in the emulator, the arguments take")
    contents = [
        (name, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        for name, array in zip(names, arrays, strict=True)
    ]
    size = max((a.offset + a.size for a in program.arguments), default=16)
    size = -(-size // _KERNARG_ALIGNMENT) * _KERNARG_ALIGNMENT
    memory = GlobalMemory.of_arrays(
        [
            ("kernel arguments", np.zeros(size, np.uint8)),
            ("dispatch packet", dispatch_packet(launch)),
            *contents,
        ],
        {
            **{s.name: f"`{s.name}`, which is constant" for s in program.data if not s.is_writable},
            **({} if kept else protections(args, taken, names)),
        },
        program.data,
        behind=host_memory(launch),
    )
    block, packet, *segments = memory.segments[len(program.data) :][: 2 + len(contents)]
    serve_host(launch, memory, quiet=kept)
    values = [
        content if a.kind == "by_value" else _pointer(value, segment)
        for value, a, segment, (_, content) in zip(args, taken, segments, contents, strict=True)
    ]
    placed = [*zip(taken, values, strict=True), *hidden_arguments(launch, memory)]
    for argument, value in placed:
        if argument.size != len(value):
            raise ArgumentError(
                f"argument {argument.name} has {argument.size} bytes in the metadata, and not the "
                f"{len(value)} of its kind, {argument.kind}"
            )
        place = slice(argument.offset, argument.offset + argument.size)
        memory.content(block)[place] = value
    back = [
        (array, segment)
        for array, a, segment in zip(arrays, taken, segments, strict=True)
        if a.kind != "by_value" and array.flags.writeable and array.size and not kept
    ]
    return LoadedProgram(memory, block, packet, tuple(back))


def _hint(taken: Sequence[KernelArgument], given: int) -> str:
    """What may be missing. Triton's kernels have one or two pointers behind their parameters, for
    memory of its own; they are known by arguments that have no names."""
    last = taken[given:]
    if not given or len(last) not in (1, 2) or any(a.name for a in taken):
        return ""
    if any(a.kind != "global_buffer" for a in last):
        return ""
    which = "last is a pointer" if len(last) == 1 else "last two are pointers"
    return (
        f": if Triton made it, the {which} to memory of Triton's own, so give null there "
        "(`--arg null`, in Python None)"
    )


def _pointer(value: Any, segment: Segment) -> npt.NDArray[np.uint8]:
    """The address of an array; None is the null pointer."""
    return np.array([0 if value is None else segment.address], np.uint64).view(np.uint8)


def dispatch_packet(launch: Launch) -> npt.NDArray[np.uint8]:
    """The dispatch packet (HSA runtime specification, section 2.9.6), as far as kernels read it."""
    packet = np.zeros(64, np.uint8)
    packet[4:10] = np.array(launch.block, np.uint16).view(np.uint8)
    threads = [g * b for g, b in zip(launch.grid, launch.block, strict=True)]
    packet[12:24] = np.array(threads, np.uint32).view(np.uint8)
    return packet


def host_memory(launch: Launch) -> list[tuple[str, int]]:
    """What a kernel that calls the host needs of memory, by name and size."""
    if all(a.kind != ARGUMENT for a in launch.program.arguments):
        return []
    return [(NAME, bytes_of(packets(launch.groups * launch.waves_per_group)))]


def serve_host(launch: Launch, memory: GlobalMemory, quiet: bool = False) -> None:
    """Answer the calls of the kernel, where it makes any, by the last segment of memory."""
    if host_memory(launch):
        count = packets(launch.groups * launch.waves_per_group)
        write = in_silence if quiet else to_standard_streams
        memory.host = HostCalls(memory, memory.segments[-1], count, write)


def hidden_arguments(
    launch: Launch, memory: GlobalMemory
) -> list[tuple[KernelArgument, npt.NDArray[np.uint8]]]:
    """The launch, for kernels that ask for it in hidden arguments; what else they ask is 0."""
    known = {"hidden_dynamic_lds_size": launch.lds_bytes, "hidden_grid_dims": 3,
             ARGUMENT: memory.segments[-1].address if memory.host else 0}  # fmt: skip
    for axis, groups, threads in zip("xyz", launch.grid, launch.block, strict=True):
        known |= {f"hidden_block_count_{axis}": groups, f"hidden_group_size_{axis}": threads}
    return [
        (a, np.frombuffer(known[a.kind].to_bytes(a.size, "little"), np.uint8))
        for a in launch.program.arguments
        if a.kind in known
    ]


def start_waves(
    launch: Launch, loaded: LoadedProgram, groups: npt.NDArray[np.int64]
) -> tuple[Waves, int]:
    """The waves of some workgroups, and how many of their scalar registers the hardware has set."""
    program, per_group = launch.program, launch.waves_per_group
    count = len(groups) * per_group
    accumulation, asked = (program.directive(d) for d in ("accum_offset", "next_free_vgpr"))
    waves = new_waves(
        count,
        vector=max(min(asked, accumulation) if accumulation else asked, 3),
        accumulation=max(asked - accumulation, 0) if accumulation else asked,
        workgroup=np.repeat(np.arange(len(groups)), per_group),
        lds=OwnedMemory("LDS", len(groups), launch.lds_bytes, _MORE_LDS),
        scratch=OwnedMemory("scratch", count * LANES, *_scratch(program)),
        memory=loaded.memory,
        position=WavePosition(groups, per_group, launch.grid),
    )
    waves.pc = program.entry
    _set_vector_registers(waves, launch)
    return waves, _set_scalar_registers(waves, launch, loaded, np.repeat(groups, per_group))


def _scratch(program: Program) -> tuple[int, str]:
    """How much scratch memory a lane gets, and what helps where that is too little."""
    size = program.directive("private_segment_fixed_size")
    if not program.directive("uses_dynamic_stack"):
        return size, ""
    return max(size, _DYNAMIC_STACK), _MORE_STACK


def _set_vector_registers(waves: Waves, launch: Launch) -> None:
    """The thread's coordinates: in v0 to v2, or packed in ten bits each of v0."""
    x, y, _ = launch.block
    waves_per_group, threads = launch.waves_per_group, launch.threads
    thread = np.arange(waves_per_group * LANES).reshape(waves_per_group, LANES)
    repeats = (waves.count // waves_per_group, 1)
    coordinates = [
        np.tile(c.astype(np.uint32), repeats)
        for c in (thread % x, thread // x % y, thread // (x * y))
    ]
    if assumed(launch.program.arch).packs_coordinates:
        waves.vector[0] = coordinates[0] | coordinates[1] << 10 | coordinates[2] << 20
    else:
        for register, coordinate in zip(waves.vector, coordinates, strict=False):
            register[...] = coordinate
    if threads % LANES:
        active = np.tile(thread < threads, repeats)
        waves.write_mask(EXEC_PAIR, active)


def _set_scalar_registers(
    waves: Waves, launch: Launch, loaded: LoadedProgram, groups: npt.NDArray[np.int64]
) -> int:
    """User registers, then the workgroup's coordinates. Returns how many registers that takes."""
    program = launch.program
    values: list[Any] = []
    for name, words in (
        ("private_segment_buffer", SCRATCH_DESCRIPTOR),
        ("dispatch_ptr", _words(loaded.dispatch_packet.address)),
        ("queue_ptr", (0, 0)),  # there is no queue: whoever looks into it is told
        ("kernarg_segment_ptr", _words(loaded.arguments.address)),
        ("dispatch_id", (0, 0)),
        ("flat_scratch_init", (0, 0)),
        ("private_segment_size", (program.directive("private_segment_fixed_size"),)),
    ):
        if program.directive(f"user_sgpr_{name}"):
            values += words
    start = 4 * program.directive("user_sgpr_kernarg_preload_offset")
    end = start + 4 * program.directive("user_sgpr_kernarg_preload_length")
    values += loaded.memory.content(loaded.arguments)[start:end].view(np.uint32).tolist()
    x, y, _ = launch.grid
    for axis, coordinate in zip(
        "xyz", (groups % x, groups // x % y, groups // (x * y)), strict=True
    ):
        if program.directive(f"system_sgpr_workgroup_id_{axis}"):
            values.append(coordinate)
    # The offset of a wave's scratch memory is 0: here each lane has its own.
    for name in ("workgroup_info", "private_segment_wavefront_offset"):
        values += [0] * program.directive(f"system_sgpr_{name}")
    for index, value in enumerate(values):
        waves.scalar[index] = value
    waves.scalar[MODE] = _mode(program)
    for index, words in HARDWARE_WORDS.items():
        waves.scalar[index : index + 2] = np.array(words, np.uint32)[:, None]
    return len(values)


def _mode(program: Program) -> int:
    """The MODE register (CDNA3 ISA, section 4.2)."""
    return machine_of(program).mode | program.directive("fp16_overflow") << 23


def _words(address: int) -> tuple[int, int]:
    return address & 0xFFFF_FFFF, address >> 32
