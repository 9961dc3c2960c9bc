"""The wait states around matrix instructions.

Sources: section 7 of the ISA manuals, "Dependency Resolution: Required Independent Instructions";
LLVM's `checkMAIHazards908`, `checkMAIHazards90A`, `checkMAIVALUHazards` and `checkMAILdStHazards`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mfmadsl.emulator.sanitizer.wait_states.hazard import SINCE_CDNA2, SINCE_CDNA3, Hazard
from mfmadsl.emulator.sanitizer.wait_states.issued import NOWHERE, Issued, Places, places
from mfmadsl.emulator.text.operand import EXEC

States = Callable[[Sequence[Issued], Issued], int]

_EXEC: Places = frozenset({("s", EXEC), ("s", EXEC + 1)})
_DOUBLE_CORE: Places = frozenset({("the core of doubles", 0)})
_SMALL_DOUBLES = 4  # passes of the smaller instruction on doubles
_SHORTEST = 2  # passes of the shortest matrix instructions
_DOUBLE_SUMS = ("v_fma_f64", "v_fmac_f64")
_MOVES = ("v_accvgpr_read_b32", "v_accvgpr_write_b32")


def _result(step: Issued) -> Places:
    return step.vectors_written if step.is_matrix else NOWHERE


def _addend(step: Issued) -> Iterable[Places]:
    return (step.addend,) if step.is_matrix else ()


def _factors(step: Issued) -> Iterable[Places]:
    return step.factors if step.is_matrix else ()


def _written_by(
    condition: Callable[[Issued], bool],
) -> Callable[[Issued], Places]:
    return lambda step: step.vectors_written if condition(step) else NOWHERE


def _each(registers: Places) -> Iterable[Places]:
    return (frozenset({register}) for register in sorted(registers))


def _reads(
    condition: Callable[[Issued], bool],
) -> Callable[[Issued], Iterable[Places]]:
    return lambda step: _each(step.vectors_read) if condition(step) else ()


def _writes(
    condition: Callable[[Issued], bool],
) -> Callable[[Issued], Iterable[Places]]:
    return lambda step: _each(step.vectors_written) if condition(step) else ()


def _is(name: str) -> Callable[[Issued], bool]:
    return lambda step: step.name == name


def _is_vector(step: Issued) -> bool:
    return step.is_vector


def _takes_lanes(step: Issued) -> bool:
    return step.takes_lanes


def _other(step: Issued) -> bool:
    """Whether it may meet a matrix instruction's registers, and is none."""
    return step.is_plain_vector or step.takes_lanes


def _same(step: Issued, addend: Issued) -> bool:
    """Whether the result is just what the other one adds to, which the core forwards."""
    return step.vectors_written == addend.addend


# CDNA1, whose cores reach accumulation registers only.


def _old_addend(since: Sequence[Issued], second: Issued) -> int:
    return 0 if _same(since[-1], second) else 2


def _plain_registers(step: Issued) -> Iterable[Places]:
    """What is read of v0, v1, ... on its way to accumulation registers."""
    into = step.is_matrix or step.name == "v_accvgpr_write_b32"
    return _each(places(step.reads, "v")) if into else ()


def _behind_longest(more: int) -> States:
    """LLVM counts the passes of the longest of those instructions that have begun since."""
    return lambda since, _: max(each.passes for each in since if each.is_matrix) + more


_CDNA1 = ("CDNA1",)
_CDNA1_HAZARDS: tuple[Hazard, ...] = (
    Hazard(
        "a vector instruction wrote it", lambda s: s.scalars_written if s.is_vector else NOWHERE,
        "a matrix instruction or v_accvgpr_write uses",
        lambda s: (_EXEC,) if s.is_matrix or s.name == "v_accvgpr_write_b32" else (), 4, _CDNA1,
    ),
    Hazard(
        "a vector instruction wrote it",
        _written_by(_is_vector),
        "a matrix instruction or v_accvgpr_write reads", _plain_registers, 2, _CDNA1,
    ),
    Hazard(
        "a matrix instruction wrote a part of it", _result,
        "a matrix instruction adds to", _addend, _old_addend, _CDNA1,
    ),
    Hazard(
        "a matrix instruction wrote it", _result, "a matrix instruction multiplies", _factors,
        4, _CDNA1,
    ),
    Hazard(
        "a matrix instruction wrote it", _result, "v_accvgpr_read reads",
        _reads(_is("v_accvgpr_read_b32")), _behind_longest(2), _CDNA1,
    ),
    Hazard(
        "a matrix instruction wrote it", _result, "v_accvgpr_write overwrites",
        _writes(_is("v_accvgpr_write_b32")), _behind_longest(-1), _CDNA1,
    ),
    Hazard(
        "a matrix instruction adds to it", lambda s: s.addend if s.is_matrix else NOWHERE,
        "v_accvgpr_write overwrites",
        _writes(_is("v_accvgpr_write_b32")), _behind_longest(-3), _CDNA1,
    ),
    Hazard(
        "v_accvgpr_write wrote it", _written_by(_is("v_accvgpr_write_b32")),
        "a matrix instruction adds to", _addend, 1, _CDNA1,
    ),
    Hazard(
        "v_accvgpr_write wrote it", _written_by(_is("v_accvgpr_write_b32")),
        "a matrix instruction multiplies", _factors, 3, _CDNA1,
    ),
    Hazard(
        "v_accvgpr_write wrote it", _written_by(_is("v_accvgpr_write_b32")),
        "v_accvgpr_read reads", _reads(_is("v_accvgpr_read_b32")), 3, _CDNA1,
    ),
    Hazard(
        "v_accvgpr_read wrote it", _written_by(_is("v_accvgpr_read_b32")),
        "a memory instruction reads", _reads(_takes_lanes), 2, _CDNA1,
    ),
    Hazard(
        "a vector instruction wrote it",
        _written_by(lambda s: s.is_plain_vector and s.name not in _MOVES),
        "a memory instruction reads, with v_accvgpr_read or v_accvgpr_write between them,",
        _reads(_takes_lanes), 2, _CDNA1, across=lambda s: s.name in _MOVES,
    ),
)  # fmt: skip


# Later chips, whose cores reach all vector registers.


def _extra(step: Issued, family: str) -> int:
    """What CDNA4 adds to the passes of all but the shortest instructions."""
    return int(family == "CDNA4" and step.passes != _SHORTEST)


def _behind_core(family: str) -> States:
    """Before a vector instruction takes the result, or a matrix instruction multiplies it."""

    def states(since: Sequence[Issued], second: Issued) -> int:
        first = since[-1]
        if first.core == "double":
            if first.passes == _SMALL_DOUBLES:
                return 9 if second.takes_lanes else 6
            large = 19 if family == "CDNA4" else 11
            return 18 if second.takes_lanes else large
        if first.core == "single" and family != "CDNA2":
            return first.passes + 2
        return first.passes + 3 + _extra(first, family)

    return states


def _before_overwriting(family: str) -> States:
    def states(since: Sequence[Issued], second: Issued) -> int:
        first = since[-1]
        if first.core == "double":
            return 6 if first.passes == _SMALL_DOUBLES else 11
        return _behind_core(family)(since, second)

    return states


def _before_adding(family: str) -> States:
    """Before a matrix instruction adds to a result, or to a part of it."""

    def states(since: Sequence[Issued], second: Issued) -> int:
        first = since[-1]
        doubles = (first.core == "double", second.core == "double")
        old = family == "CDNA2"
        if old and doubles == (True, False):
            return 0
        if _same(first, second):
            small = first.passes == second.passes == _SMALL_DOUBLES
            if doubles == (True, True) and small:
                return 4
            return 2 if not old and first.passes == _SHORTEST else 0
        narrow = second.core == "narrow" or (old and second.core == "single")
        if first.core == "double":
            large = 17 if family == "CDNA4" else 9
            return 0 if narrow else 4 if first.passes == _SMALL_DOUBLES else large
        if old:
            return first.passes + doubles[1]
        if first.core == "single":
            return 0 if narrow else first.passes
        extra = family == "CDNA4" if narrow else _extra(first, family)
        return first.passes + 1 + extra

    return states


def _late_addend(family: str) -> Callable[[Issued], Places]:
    """C, which the core reads late."""

    def addend(step: Issued) -> Places:
        late = step.core == "narrow" or (step.core == "single" and family == "CDNA2")
        return step.addend if step.is_matrix and late else NOWHERE

    return addend


def _hazards_of(family: str) -> tuple[Hazard, ...]:
    one = (family,)
    return (
        Hazard(
            "a matrix instruction wrote it", _result,
            "a matrix instruction adds to", _addend, _before_adding(family), one,
        ),
        Hazard(
            "a matrix instruction wrote it", _result,
            "a matrix instruction multiplies", _factors, _behind_core(family), one,
        ),
        Hazard(
            "a matrix instruction wrote it", _result, "it reads", _reads(_other),
            _behind_core(family), one,
        ),
        Hazard(
            "a matrix instruction wrote it", _result, "it overwrites", _writes(_other),
            _before_overwriting(family), one,
        ),
        Hazard(
            "a matrix instruction adds to it", _late_addend(family), "it overwrites",
            _writes(_other), lambda since, _: since[-1].passes - 1, one,
        ),
    )  # fmt: skip


def _of_dots(same: int, different: int) -> States:
    """Behind a dot product, before the same one or another instruction."""
    return lambda since, second: same if since[-1].name == second.name else different


_LATER_HAZARDS: tuple[Hazard, ...] = (
    Hazard(
        "a vector instruction wrote it",
        lambda s: s.scalars_written if s.is_plain_vector else NOWHERE,
        "a matrix instruction uses", lambda s: (_EXEC,) if s.is_matrix else (), 4, SINCE_CDNA2,
    ),
    Hazard(
        "a vector instruction wrote it",
        _written_by(lambda s: s.is_plain_vector and not s.is_dot),
        "a matrix instruction reads", _reads(lambda s: s.is_matrix), 2, SINCE_CDNA2,
    ),
    Hazard(
        "a matrix instruction on doubles needs it",
        lambda s: _DOUBLE_CORE if s.is_matrix and s.core == "double" else NOWHERE,
        "v_fma_f64 uses", lambda s: (_DOUBLE_CORE,) if s.name in _DOUBLE_SUMS else (), 2,
        SINCE_CDNA2,
    ),
    Hazard(
        "a dot product wrote it", _written_by(lambda s: s.is_dot), "it reads", _reads(_other),
        _of_dots(same=0, different=3), SINCE_CDNA2,
    ),
    Hazard(
        "a dot product wrote it", _written_by(lambda s: s.is_dot), "it multiplies",
        lambda s: s.factors if s.is_dot else (),
        _of_dots(same=3, different=0), SINCE_CDNA2,
    ),
    Hazard(
        "a dot product wrote it", _written_by(lambda s: s.is_dot), "it overwrites", _writes(_other),
        _of_dots(same=0, different=3), SINCE_CDNA2,
    ),
    # A fault of the chip, which LLVM works around.
    Hazard(
        "a vector instruction wrote it", _written_by(_is_vector),
        "a memory instruction reads, with a matrix instruction on doubles between them,",
        _reads(_takes_lanes), 2, ("CDNA2",),
        across=lambda s: s.is_matrix and s.core == "double",
    ),
)  # fmt: skip

MATRIX_HAZARDS: tuple[Hazard, ...] = (
    *_CDNA1_HAZARDS,
    *_LATER_HAZARDS,
    *(hazard for family in ("CDNA2", *SINCE_CDNA3) for hazard in _hazards_of(family)),
)
