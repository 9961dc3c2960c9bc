"""Launches on the memory of a program: which arguments are pointers, and what a time depends on."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest

from mfmadsl.device.gpu import Gpu, Options
from mfmadsl.device.launch import Function, launch_of, run_launch
from mfmadsl.device.memory import SharedMemory
from mfmadsl.device.protocol import RESERVED_BYTES, Start
from mfmadsl.device.session import Session
from mfmadsl.emulator.text.assembly import parse_assembly

START, BYTES = 0x7000_0000_0000, 4096
ARRAYS = START + RESERVED_BYTES, START + RESERVED_BYTES + (1 << 16)
"""Two allocations, each with room behind it that is nobody's."""

TEXT = """\
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.text
counts:
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_load_dword s6, s[0:1], 0x8
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	v_mov_b32_e32 v2, s6
	global_store_dword v1, v2, s[4:5] offset:OFFSET
.LBB0_1:
	s_sub_i32 s6, s6, 1
	s_cmp_lg_u32 s6, 0
	s_cbranch_scc1 .LBB0_1
	s_endpgm
	.amdhsa_kernel counts
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_next_free_vgpr 8
		.amdhsa_accum_offset 8
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .name: counts
    .args:
      - {.name: result, .offset: 0, .size: 8, .value_kind: global_buffer}
      - {.name: turns, .offset: 8, .size: 4, .value_kind: by_value}
...
	.end_amdgpu_metadata
"""


@pytest.fixture
def memory() -> Iterator[SharedMemory]:
    """What a program shares, with both arrays allocated."""
    file = os.memfd_create("device")
    os.ftruncate(file, RESERVED_BYTES + (1 << 17))
    shared = SharedMemory(file, START)
    shared.allocate(tuple((address, BYTES) for address in ARRAYS))
    yield shared
    shared.close()


def counting(offset: int = 0) -> Function:
    text = TEXT.replace("OFFSET", str(offset))
    return Function(1, text, parse_assembly(text, "counts"))


def start(pointer: int, turns: int) -> Start:
    arguments = struct.pack("<QIxxxx", pointer, turns)
    return Start(1, (1, 1, 1), (64, 1, 1), 0, 0, arguments, None)


def test_a_fault_names_the_argument_that_points_there(memory: SharedMemory) -> None:
    # What is by value is no address, though its bits are those of one.
    pointer = ARRAYS[0] + BYTES - 256
    launched = run_launch(counting(4), start(pointer, 1), memory, 10**6)
    (fault,) = launched.faults
    assert fault.kind == "out-of-bounds"
    assert f"the allocation at {ARRAYS[0]:#x}" in fault.message
    launched = run_launch(counting(4092), start(ARRAYS[1], 1), memory, 10**6)
    (fault,) = launched.faults
    assert "offset 4096 of `result`, which has 4096 bytes" in fault.message


def test_a_mistake_of_the_emulator_is_the_fault_of_one_launch(
    memory: SharedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise IndexError("no such wave")

    with monkeypatch.context() as patched:
        patched.setattr("mfmadsl.device.launch.run_loaded", broken)
        launched = run_launch(counting(), start(ARRAYS[1], 1), memory, 10**6)
    (fault,) = launched.faults
    assert launched.failed
    assert fault.kind == "internal-error"
    assert "the emulator itself has failed in test_launch.py, line" in fault.message
    assert "IndexError: no such wave" in fault.message
    assert not run_launch(counting(), start(ARRAYS[1], 1), memory, 10**6).failed


def test_the_time_of_a_launch_is_looked_up_by_its_values_and_not_its_pointers(
    memory: SharedMemory,
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        session = Session(Gpu(Options(profile=True)), ours)

        def seconds(start: Start) -> float:
            profile = session._modelled(counting(), start, memory)
            assert profile is not None
            return profile.on_chip.seconds

        short, elsewhere = (seconds(start(array, 2)) for array in ARRAYS)
        long = seconds(start(ARRAYS[0], 4000))
        many = replace(start(ARRAYS[0], 2), grid=(1 << 12, 1, 1))
        crowded = seconds(many)
        alone = seconds(replace(many, lds_bytes=1 << 16))
        session.close()
    assert elsewhere == short
    assert long > 2 * short
    assert alone > 2 * crowded  # no two of those have room for their LDS on a compute unit
    assert len(session._profiles) == 4


def test_memory_that_is_freed_is_told_as_such_until_it_is_taken_again(
    memory: SharedMemory,
) -> None:
    memory.allocate(((ARRAYS[1], BYTES),))
    (fault,) = run_launch(counting(), start(ARRAYS[0], 1), memory, 10**6).faults
    assert f"of an allocation of {BYTES} bytes that is freed" in fault.message
    memory.allocate(((ARRAYS[0], BYTES // 2), (ARRAYS[1], BYTES)))
    pointer = ARRAYS[0] + BYTES // 2 - 4
    (fault,) = run_launch(counting(), start(pointer, 1), memory, 10**6).faults
    assert "freed" not in fault.message


def test_what_a_launch_adds_to_the_lds_comes_behind_the_kernels_own() -> None:
    own = "		.amdhsa_group_segment_fixed_size 512\n	.end_amdhsa_kernel"
    text = TEXT.replace("OFFSET", "0").replace("	.end_amdhsa_kernel", own)
    function = Function(1, text, parse_assembly(text, "counts"))
    for added in (0, 256, 1024):
        assert launch_of(function, replace(start(0, 1), lds_bytes=added)).lds_bytes == 512 + added
