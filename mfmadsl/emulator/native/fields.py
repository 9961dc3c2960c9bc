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
]

FIELDS: tuple[Field, ...] = get_args(Field)

STEP_WORDS = 24
"""64-bit integers of a step: the address of its code, then the values of its operands."""

RUN_WORD = STEP_WORDS - 1
"""Which of them says how many steps from this one on are on registers only; 0: not this one."""
