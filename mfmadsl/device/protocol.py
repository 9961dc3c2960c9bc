"""What the library and the server say to each other, byte by byte; `hip/connection.c`,
`hip/module.c` and `hiprtc/program.c` have the other half.

A request is two words, the operation and the bytes that follow; a reply is two words, an error of
HIP's and the bytes that follow. Everything is little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from mfmadsl.error import ArgumentError
from mfmadsl.model import Architecture, GpuProduct


class RequestKind(IntEnum):
    """What the library asks of the emulator; `runtime.h` has the same numbers."""

    HELLO = 1
    LOAD = 2
    UNLOAD = 3
    FUNCTION = 4
    LAUNCH = 5
    RESIDENT = 6
    NAMES = 7
    PLACE = 8
    VARIABLE = 9
    NOTE = 10
    GUARD = 11
    COMPILE = 12


class Status(IntEnum):
    """HIP's hipError_t, as far as the server tells it."""

    SUCCESS = 0
    INVALID_VALUE = 1
    INVALID_CONFIGURATION = 9
    INVALID_IMAGE = 200
    NO_BINARY_FOR_GPU = 209
    INVALID_HANDLE = 400
    NOT_FOUND = 500
    LAUNCH_FAILURE = 719
    NOT_SUPPORTED = 801
    UNKNOWN = 999


HEADER = struct.Struct("<II")
ADDRESS = struct.Struct("<Q")
NUMBER = struct.Struct("<I")
GUARDED = struct.Struct("<3Q")
"""Pages: from, to, and whether the host may read there."""

RESERVED_BYTES = 1 << 20
"""At the start of the shared memory, for what a launch needs beside the program's own."""

_DEVICE = struct.Struct("<16q64s64s")
_FUNCTION = struct.Struct("<7I")
_PAIR = struct.Struct("<II")
_START = struct.Struct("<I3I3IIQQIIII")
LOADED = struct.Struct("<IIQ")
"""A module, nothing, and the bytes that it takes in memory."""

PLACED = struct.Struct("<QQ")
"""A module and its address, or a variable's address and bytes."""

RESIDENT = struct.Struct("<III")
"""A function, threads of a workgroup, and bytes of LDS beside the kernel's own."""

_MOST_ARGUMENTS = 256  # as `hip/module.c` has it


@dataclass(frozen=True)
class Start:
    """A launch: extents in workgroups and threads, bytes of LDS that it adds to the kernel's own.

    `allocations` are (address, bytes), or None where they are those of the launch before.
    """

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    stream: int
    arguments: bytes
    allocations: tuple[tuple[int, int], ...] | None
    device: int = 0


def device_reply(
    chip: Architecture, product: GpuProduct, memory_bytes: int, models_time: bool, count: int,
    sanitizes: bool,
) -> bytes:  # fmt: skip
    """What each of `count` devices is; the version of its instructions as the digits of gfx942 tell
    it."""
    major, minor = int(chip.name[3:-2]), int(chip.name[-2], 16)
    return _DEVICE.pack(
        memory_bytes,
        product.compute_units,
        chip.wave_size,
        chip.max_threads,
        chip.lds_bytes,
        chip.simd_registers * chip.simds * chip.wave_size,
        chip.simds * chip.waves_per_simd * chip.wave_size,
        product.clock * 1000,
        product.l2_bytes,
        major,
        minor,
        product.dies,
        RESERVED_BYTES,
        models_time,
        count,
        sanitizes,
        f"{product.name} ({'modelled' if models_time else 'emulated'})".encode(),
        chip.name.encode(),
    )


def function_reply(
    number: int,
    kernarg_bytes: int,
    arguments: Sequence[tuple[int, int]],
    lds_bytes: int,
    scratch_bytes: int,
    registers: int,
    max_threads: int,
) -> bytes:
    """What is known of a kernel; `arguments` are (offset, size) of those that a caller passes.

    Raises ArgumentError for more of them than the library takes.
    """
    if len(arguments) > _MOST_ARGUMENTS:
        raise ArgumentError(
            f"it has {len(arguments)} arguments, and no more than {_MOST_ARGUMENTS} can be passed"
        )
    head = _FUNCTION.pack(
        number, kernarg_bytes, len(arguments), lds_bytes, scratch_bytes, registers, max_threads
    )
    return head + b"".join(_PAIR.pack(*each) for each in arguments)


def read_start(body: bytes, known: int | None) -> tuple[Start, int]:
    """A launch, and the version of its list of allocations; `known` is that of the last one."""
    function, *rest = _START.unpack_from(body)
    gx, gy, gz, bx, by, bz, lds, version, stream, size, count, device, _ = rest
    at = _START.size
    arguments = body[at : at + size]
    pairs = struct.unpack_from(f"<{2 * count}Q", body, at + size)
    allocations = None
    if version != known:
        allocations = tuple(zip(pairs[::2], pairs[1::2], strict=True))
    start = Start(function, (gx, gy, gz), (bx, by, bz), lds, stream, arguments, allocations, device)
    return start, version
