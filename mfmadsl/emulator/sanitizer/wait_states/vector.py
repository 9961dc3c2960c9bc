"""The wait states between scalar, vector and memory instructions.

Each row has its name in LLVM's `GCNHazardRecognizer` and, where the manual has it too, the section
of the CDNA3 ISA manual in which it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from mfmadsl.emulator.sanitizer.wait_states.hazard import SINCE_CDNA3, Hazard
from mfmadsl.emulator.sanitizer.wait_states.issued import NOWHERE, Issued, Places
from mfmadsl.emulator.text.operand import EXEC, M0, VCC, Register

_EXEC: Places = frozenset({("s", EXEC), ("s", EXEC + 1)})
_VCC: Places = frozenset({("s", VCC), ("s", VCC + 1)})
_M0: Places = frozenset({("s", M0)})
_MODE: Places = frozenset({("HW_REG_MODE", 0)})
_WIDE_DATA = 2  # registers, of more than which a store reads its data late
_TRANSCENDENTAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)(_\w+)?_f\d+")
_LANE_READS = ("v_readlane_b32", "v_readfirstlane_b32")
_LANE_SELECTS = ("v_readlane_b32", "v_writelane_b32")
_HALF_SWAPS = ("v_permlane16_swap_b32", "v_permlane32_swap_b32")
_PACKED = ("v_pk_", "v_dot2_")
_READS_M0 = ("s_sendmsg", "s_sendmsghalt", "s_ttracedata", "ds_read_addtid_b32",
             "ds_write_addtid_b32", "s_movrels_b32", "s_movrels_b64", "s_movreld_b32",
             "s_movreld_b64")  # fmt: skip


def _if(
    condition: Callable[[Issued], bool], of: Callable[[Issued], Places]
) -> Callable[[Issued], Places]:
    return lambda step: of(step) if condition(step) else NOWHERE


def _each(
    condition: Callable[[Issued], bool], of: Callable[[Issued], Places]
) -> Callable[[Issued], Iterable[Places]]:
    """Each register of an instruction as an operand of its own."""
    return lambda step: (
        (frozenset({place}) for place in sorted(of(step))) if condition(step) else ()
    )


def _named(*names: str) -> Callable[[Issued], bool]:
    return lambda step: step.name in names


def _scalars_of_vector(step: Issued) -> Places:
    return step.scalars_written if step.is_vector else NOWHERE


def _lane_select(step: Issued) -> Places:
    """The register that chooses the lane."""
    last = step.instruction.operands[-1]
    return frozenset({("s", last.index)}) if isinstance(last, Register) else NOWHERE


def _late_data(step: Issued) -> Places:
    """The data of a store that reads it late: three registers or more, and of a buffer's no scalar
    offset, whose reading gives it the time."""
    if not step.is_memory:
        return NOWHERE
    offsets = [r for r in step.reads if r.bank == "s" and r.count == 1]
    if step.name.startswith(("buffer", "tbuffer")) and offsets:
        return NOWHERE
    return frozenset(
        (r.bank, i) for r in step.reads if r.bank != "s" and r.count > _WIDE_DATA for i in r.indices
    )


def _loads_to_lds(step: Issued) -> bool:
    return step.is_memory and ("s", M0) in step.scalars_read


def _placed_in_part(step: Issued) -> bool:
    """Whether a vector instruction moves its result to its place in the register."""
    if not step.is_plain_vector:
        return False
    if step.instruction.modifiers.get("dst_sel", "DWORD") != "DWORD":
        return True
    if step.name.startswith("v_cvt_scalef32") and "pk_fp4" in step.name:
        return True
    # LLVM has one bit for both, and so counts packed instructions that, as usual, take the high
    # half of their first source for the high half of the result.
    packed = step.name.startswith(_PACKED) and step.name != "v_pk_fmac_f16"
    if (step.instruction.written_flags("op_sel_hi") or [packed])[0]:
        return True
    sources = len(step.instruction.operands) - 1
    flags = step.instruction.written_flags("op_sel") or []
    conversions = ("v_cvt_scalef32_sr_fp8", "v_cvt_scalef32_sr_bf8")
    first = 2 if step.name.startswith(conversions) else sources
    return any(flags[first:])


VECTOR_HAZARDS: tuple[Hazard, ...] = (
    # checkVMEMHazards; section 4.5: "VALU writes SGPR, VMEM reads that SGPR".
    Hazard(
        "a vector instruction wrote it", _scalars_of_vector,
        "a memory instruction reads",
        _each(lambda step: step.is_memory, lambda step: step.scalars_read), 5,
    ),
    # checkDivFMasHazards; "VALU writes VCC (including v_div_scale), V_DIV_FMAS".
    Hazard(
        "a vector instruction wrote it", _scalars_of_vector,
        "v_div_fmas reads",
        lambda step: (_VCC,) if step.name.startswith("v_div_fmas") else (), 4,
    ),
    # checkRWLaneHazards; "VALU writes SGPR, V_{READ,WRITE}LANE using that SGPR as the lane select".
    Hazard(
        "a vector instruction wrote it", _scalars_of_vector,
        "it chooses the lane by",
        _each(_named(*_LANE_SELECTS), _lane_select), 4,
    ),
    # checkDPPHazards; "VALU writes VGPR, VALU DPP reads that VGPR". LLVM: whatever writes it, also
    # before it is the target, of which lanes may stay.
    Hazard(
        "it was written", lambda step: step.vectors_written,
        "a DPP instruction takes",
        _each(lambda step: step.is_dpp, lambda s: s.vectors_read | s.vectors_written), 2,
    ),
    # checkDPPHazards; "VALU writes EXEC, VALU DPP op".
    Hazard(
        "a vector instruction wrote it", _scalars_of_vector,
        "a DPP instruction uses", lambda step: (_EXEC,) if step.is_dpp else (), 5,
    ),
    # checkGetRegHazards, checkSetRegHazards; "S_SETREG, S_GETREG or S_SETREG of the same register".
    Hazard(
        "s_setreg wrote it",
        _if(lambda step: step.name.startswith("s_setreg"), lambda s: s.hardware_register),
        "s_getreg or s_setreg accesses", lambda step: (step.hardware_register,), 2,
    ),
    # Not LLVM's, which has no use for it; "SET_VSKIP, S_GETREG MODE".
    Hazard(
        "s_setvskip wrote it", _if(_named("s_setvskip"), lambda _: _MODE), "s_getreg reads",
        lambda step: (step.hardware_register,) if step.name == "s_getreg_b32" else (), 2,
    ),
    # checkReadM0Hazards; "SALU writes M0, LDS add-TID instruction, buffer_store_LDS_dword,
    # scratch or global with LDS = 1, S_SENDMSG".
    Hazard(
        "a scalar instruction wrote it",
        _if(lambda step: step.unit == "salu", lambda s: s.scalars_written),
        "it takes",
        lambda step: (_M0,) if step.name in _READS_M0 or _loads_to_lds(step) else (), 1,
    ),
    # createsVALUHazard; "FLAT_STORE_X3, BUFFER_STORE_DWORD_X4, ..., write VGPRs holding writedata".
    Hazard(
        "a store may still read it", _late_data,
        "a vector instruction overwrites",
        _each(lambda step: step.is_vector, lambda step: step.vectors_written), 1,
        ("CDNA1", "CDNA2"),
    ),
    Hazard(
        "a store may still read it", _late_data,
        "a vector instruction overwrites",
        _each(lambda step: step.is_vector, lambda step: step.vectors_written), 2, SINCE_CDNA3,
    ),
    # hasTransForwardingHazard; "VALU Trans Op, Non-trans VALU op consumes result of that op".
    Hazard(
        "a transcendental instruction wrote it",
        _if(lambda step: bool(_TRANSCENDENTAL.fullmatch(step.name)), lambda s: s.vectors_written),
        "a vector instruction reads",
        _each(
            lambda step: step.is_vector and not _TRANSCENDENTAL.fullmatch(step.name),
            lambda step: step.vectors_read,
        ), 1, SINCE_CDNA3,
    ),
    # hasDstSelForwardingHazard, hasCvtScaleForwardingHazard; "VALU op which uses OPSEL or SDWA
    # with changes the result's bit position, VALU op consumes result of that op".
    Hazard(
        "its bits were moved into place", _if(_placed_in_part, lambda step: step.vectors_written),
        "a vector instruction takes",
        _each(lambda step: step.is_vector, lambda s: s.vectors_read | s.vectors_written), 1,
        SINCE_CDNA3,
    ),
    # hasVDecCoExecHazard; "VALU writes SGPR, VALU reads that SGPR".
    Hazard(
        "a vector instruction wrote it", _scalars_of_vector,
        "a vector instruction reads",
        _each(lambda step: step.is_vector, lambda step: step.scalars_read), 2, SINCE_CDNA3,
    ),
    # hasVDecCoExecHazard; "VALU writes VGPR, V_READLANE vsrc0 reads that VGPR".
    Hazard(
        "a vector instruction wrote it",
        _if(lambda step: step.is_vector, lambda step: step.vectors_written),
        "a lane is read from",
        _each(_named(*_LANE_READS), lambda step: step.vectors_read), 1, SINCE_CDNA3,
    ),
    # hasVDecCoExecHazard; "VALU writes EXEC, V_READLANE, V_READFIRSTLANE, V_WRITELANE".
    Hazard(
        "a vector instruction wrote it", _scalars_of_vector,
        "an access to a lane uses",
        lambda step: (_EXEC,) if step.name in (*_LANE_READS, *_LANE_SELECTS) else (), 4,
        SINCE_CDNA3,
    ),
    # checkPermlaneHazards.
    Hazard(
        "a vector instruction wrote it",
        _if(lambda step: step.is_vector, lambda step: step.vectors_written),
        "a swap of halves takes",
        _each(_named(*_HALF_SWAPS), lambda step: step.vectors_read), 2, ("CDNA4",),
    ),
    Hazard(
        "v_cmpx wrote it",
        _if(lambda step: step.name.startswith("v_cmpx"), lambda step: step.scalars_written),
        "a swap of halves uses", lambda step: (_EXEC,) if step.name in _HALF_SWAPS else (), 4,
        ("CDNA4",),
    ),
)  # fmt: skip
