"""What native code is given: the places of the registers and of memory, as 64-bit integers."""

from __future__ import annotations

from typing import Literal as OneOf
from typing import get_args

Field = OneOf[
    "vector",  # addresses of the register files, which are contiguous
    "accumulation",
    "scalar",
    "scc",  # one byte a wave
    "count",  # waves
    "first",  # the wave to begin with, and the one to end before
    "last",
    "workgroup",  # the address of each wave's workgroup, as 64-bit integers
    "lds",  # its address, bytes of a workgroup, and bytes between two workgroups
    "lds_size",
    "lds_stride",
    "memory",  # the address of its first byte, and the address that the kernel knows it by
    "first_address",
    "segments",  # how many; the addresses where they start and end, and whether they are protected
    "starts",
    "ends",
    "protected",
    "may_store",  # 0 where somebody looks for changes of memory
    # For those who look at accesses.
    "index",  # each wave's number among those that started together, as 64-bit integers
    "places",  # where each lane of each wave goes: an offset, or -1
    "undo",  # what has been changed by an instruction that may yet be refused
    "lds_issued",  # by these numbers: instructions issued of lgkmcnt and of vmcnt
    "memory_issued",
    "lds_ahead",  # what is added to an instruction's number in its line
    "memory_ahead",
    "lds_passed",  # by the numbers: tickets that a barrier has put behind, of the two counters
    "memory_passed",
    "per_group",  # waves of a workgroup
    "lds_shift",  # of a piece of LDS: its size, as a power of two
    "lds_row",  # bytes between the last reads of two waves
    "lds_written",  # by pieces: the ticket of the last write, and its wave
    "lds_writer",
    "lds_read",  # by waves of the workgroup and pieces: the tickets of the last reads
    "lds_atomic",  # whether the write was atomic; 0 where none has been
    "lds_chunk",  # of which 64 make the LDS of a workgroup: its size, as a power of two
    "lds_written_chunks",  # by the numbers of waves: what may not be over, as masks of chunks
    "lds_read_chunks",
    "lds_undefined",  # bits that nobody wrote
    "memory_undefined",  # likewise, or 0
    "memory_shift",
    "written",  # by pieces of global memory: who accessed them last, and the marks
    "updated",
    "read",
    "read_before",
    "written_pages",  # by pages of pieces: whether there are any
    "updated_pages",
    "read_pages",
    "read_before_pages",
    "ids",  # by the numbers of waves: those in the launch
    "known",  # by those: tickets that come before what the workgroup does
    "between_groups",  # whether workgroups are told apart
]

FIELDS: tuple[Field, ...] = get_args(Field)

STEP_WORDS = 24
"""64-bit integers of a step: the address of its code, then the values of its operands."""

RUN_WORD = STEP_WORDS - 1
"""Which of them says how many steps from this one on are on registers only; 0: not this one."""

SPLIT_WORD = RUN_WORD - 1
"""Which of them is 1 if threads may share the waves of a step that reaches memory: see `form`."""

REACH_BITS = 2
"""Of the mark of an access, the ones below the ticket, that say how far it reaches by itself."""

PAGE_BITS = 10
"""Pieces of global memory of a page, as a power of two."""
