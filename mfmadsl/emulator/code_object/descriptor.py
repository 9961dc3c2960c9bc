"""The kernel descriptor: what the hardware is told before a kernel starts, as directives.

Source: LLVM, "User Guide for AMDGPU Backend", sections "Kernel Descriptor" and "AMDHSA Kernel
Assembler Directives".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.text.operand import LAST_SCALAR
from mfmadsl.model import Architecture

SIZE = 64
_LAYOUT = struct.Struct("<III4xq20xIIIHHI")
_RESERVED = ((12, 16), (24, 44))  # bytes that are 0
_SCALAR_GRANULE = 8
_EXTRA_SCALARS = 6
"""Scalar registers that LLVM's assembler adds for VCC, FLAT_SCRATCH and XNACK_MASK."""

_RSRC1 = {
    "float_round_mode_32": (12, 2), "float_round_mode_16_64": (14, 2),
    "float_denorm_mode_32": (16, 2), "float_denorm_mode_16_64": (18, 2),
    "dx10_clamp": (21, 1), "ieee_mode": (23, 1), "fp16_overflow": (26, 1),
}  # fmt: skip
_RSRC2 = {
    "enable_private_segment": (0, 1), "user_sgpr_count": (1, 5),
    "system_sgpr_workgroup_id_x": (7, 1), "system_sgpr_workgroup_id_y": (8, 1),
    "system_sgpr_workgroup_id_z": (9, 1), "system_sgpr_workgroup_info": (10, 1),
    "system_vgpr_workitem_id": (11, 2),
    "exception_fp_ieee_invalid_op": (24, 1), "exception_fp_denorm_src": (25, 1),
    "exception_fp_ieee_div_zero": (26, 1), "exception_fp_ieee_overflow": (27, 1),
    "exception_fp_ieee_underflow": (28, 1), "exception_fp_ieee_inexact": (29, 1),
    "exception_int_div_zero": (30, 1),
}  # fmt: skip
_PROPERTIES = {
    "user_sgpr_private_segment_buffer": (0, 1), "user_sgpr_dispatch_ptr": (1, 1),
    "user_sgpr_queue_ptr": (2, 1), "user_sgpr_kernarg_segment_ptr": (3, 1),
    "user_sgpr_dispatch_id": (4, 1), "user_sgpr_flat_scratch_init": (5, 1),
    "user_sgpr_private_segment_size": (6, 1), "uses_dynamic_stack": (11, 1),
}  # fmt: skip
_PRELOAD = {"user_sgpr_kernarg_preload_length": (0, 7), "user_sgpr_kernarg_preload_offset": (7, 9)}
_VECTORS, _SCALARS, _ACCUMULATION, _SPLIT = (0, 6), (6, 4), (0, 6), (16, 1)
_REGISTERS_OF_USER_VALUES = {
    "private_segment_buffer": 4, "dispatch_ptr": 2, "queue_ptr": 2, "kernarg_segment_ptr": 2,
    "dispatch_id": 2, "flat_scratch_init": 2, "private_segment_size": 1,
    "kernarg_preload_length": 1,
}  # fmt: skip


USUAL = {"system_sgpr_workgroup_id_x": 1, "dx10_clamp": 1, "ieee_mode": 1,
         "float_denorm_mode_16_64": 3}  # fmt: skip
"""Directives that are something else than 0 for LLVM's assembler where a text does not say them."""


@dataclass(frozen=True)
class Descriptor:
    """`entry` is the place of the code, counted in bytes from the descriptor; `directives` are by
    their names after `.amdhsa_`; `content` is all of it."""

    content: bytes
    entry: int
    directives: Mapping[str, int]


def read_descriptor(data: bytes, chip: Architecture) -> Descriptor:
    """The 64 bytes of a descriptor.

    Raises CodeObjectError for bits that mean nothing on the chip, and where the user's scalar
    registers are not as many as what is in them.
    """
    lds, scratch, arguments, entry, rsrc3, rsrc1, rsrc2, properties, preload, rest = _LAYOUT.unpack(
        data
    )
    if rest or any(any(data[start:end]) for start, end in _RESERVED):
        raise CodeObjectError("bits of it that have to be 0 are not")
    found = {
        "group_segment_fixed_size": lds,
        "private_segment_fixed_size": scratch,
        "kernarg_size": arguments,
        **_read("user registers", properties, _PROPERTIES),
        **_read("preloaded arguments", preload, _PRELOAD),
        **_read("COMPUTE_PGM_RSRC2", rsrc2, _RSRC2),
        **_registers(rsrc1, rsrc3, chip),
        **_read("COMPUTE_PGM_RSRC1", rsrc1, _RSRC1, _VECTORS, _SCALARS),
    }
    if not chip.architected_scratch:  # a wave is given its offset in a scalar register
        offset = found.pop("enable_private_segment")
        found["system_sgpr_private_segment_wavefront_offset"] = offset
    taken = sum(
        found[f"user_sgpr_{name}"] * words for name, words in _REGISTERS_OF_USER_VALUES.items()
    )
    if taken != found["user_sgpr_count"]:
        raise CodeObjectError(
            f"it has {found['user_sgpr_count']} scalar registers for the user, but values for "
            f"{taken}"
        )
    return Descriptor(data, entry, found)


def _registers(rsrc1: int, rsrc3: int, chip: Architecture) -> dict[str, int]:
    vectors, scalars = _field(rsrc1, _VECTORS), _field(rsrc1, _SCALARS)
    found = {
        "next_free_vgpr": (vectors + 1) * chip.register_granule,
        "next_free_sgpr": (scalars + 1) * _SCALAR_GRANULE - _EXTRA_SCALARS,
    }
    if scalars % 2 == 0:  # the hardware gives them out in pairs of granules
        found["next_free_sgpr"] += _SCALAR_GRANULE
    found["next_free_sgpr"] = min(found["next_free_sgpr"], LAST_SCALAR + 1)
    if chip.separate_files:
        _read("COMPUTE_PGM_RSRC3", rsrc3, {})
        return found
    _read("COMPUTE_PGM_RSRC3", rsrc3, {}, _ACCUMULATION, _SPLIT)
    start = (_field(rsrc3, _ACCUMULATION) + 1) * chip.accumulation_granule
    if start > found["next_free_vgpr"]:
        raise CodeObjectError(
            f"its accumulation registers begin at {start}, but it has {found['next_free_vgpr']}"
        )
    return {**found, "accum_offset": start, "tg_split": _field(rsrc3, _SPLIT)}


def _read(
    what: str, word: int, fields: Mapping[str, tuple[int, int]], *others: tuple[int, int]
) -> dict[str, int]:
    """The fields of a word. Raises CodeObjectError where it has bits that are in none."""
    known = 0
    for low, width in (*fields.values(), *others):
        known |= ((1 << width) - 1) << low
    if word & ~known:
        raise CodeObjectError(
            f"bits of it that mean nothing are set: 0x{word & ~known:x} of {what}"
        )
    return {name: _field(word, place) for name, place in fields.items()}


def _field(word: int, place: tuple[int, int]) -> int:
    low, width = place
    return word >> low & (1 << width) - 1
