"""What of a program decides which way its branches go, as a program of its own.

How often a workgroup executes matrix instructions is known from that alone, at a small part of what
all of the program takes to emulate. An instruction belongs to it if something of what it writes is
read by another that does, or by a branch: a backward walk over the program finds them, once round
each loop until nothing more is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.control import BRANCHES, COMPUTED, branch_target, is_control
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.vector_mode import SETS_VECTOR_MODE
from mfmadsl.emulator.profiler.main_loop import is_matrix
from mfmadsl.emulator.text.assembly import Instruction, Program
from mfmadsl.emulator.text.operand import EXEC, VCC, Register

_Word = tuple[str, int]
_SCC: _Word = ("scc", 0)
_VCC: tuple[_Word, ...] = ("s", VCC), ("s", VCC + 1)
_EXEC: tuple[_Word, ...] = ("s", EXEC), ("s", EXEC + 1)
_ASKED = {
    "scc0": (_SCC,), "scc1": (_SCC,), "vccz": _VCC, "vccnz": _VCC, "execz": _EXEC, "execnz": _EXEC,
}  # fmt: skip
"""What a conditional branch asks, by the end of its mnemonic."""

_UNITS = frozenset({"salu", "valu", "smem", "vmem", "flat"})
"""What of units can be run apart from the rest: what the LDS and the matrix cores give depends on
more than registers."""


@dataclass(frozen=True)
class ControlSlice:
    """`matrix` says of places of the program how many matrix instructions stand there instead.

    `varies` says whether workgroups may go other ways than each other.
    """

    program: Program
    matrix: dict[int, int]
    varies: bool


def control_slice(
    program: Program, compile_one: Callable[[Instruction], Operation]
) -> ControlSlice | None:
    """What decides on branches; None where that takes more than registers and memory.

    Nothing is stored, so that what it loads has to be there before the launch.
    """
    if not all(_is_followed(program, each) for each in program.instructions):
        return None
    try:
        operations = [_operation(each, compile_one) for each in program.instructions]
    except EmulationError:  # it may never be executed
        return None
    skipped = set(_skips(program))
    while True:
        found = _Walk(program, operations, skipped)
        taken = found.taken()
        needed = {place for place in skipped if _decides(program, place, taken)}
        if not needed:
            break
        skipped -= needed
    if not all(_runs_apart(program, *each) for each in taken.items()):
        return None
    first = program.directive("user_sgpr_count")
    varies = any(bank == "s" and first <= n < VCC for bank, n in found.at_entry)
    return _built(program, taken, skipped, varies)


def _is_followed(program: Program, instruction: Instruction) -> bool:
    """Whether it is no branch, or one on a known condition to a known place."""
    name = instruction.name
    if not name.startswith(BRANCHES):
        return name not in COMPUTED and name not in SETS_VECTOR_MODE
    known = name == "s_branch" or name.removeprefix("s_cbranch_") in _ASKED
    return known and branch_target(program, instruction) is not None


def _operation(
    instruction: Instruction, compile_one: Callable[[Instruction], Operation]
) -> Operation | None:
    """What it does to registers and memory; None of one that only passes or branches."""
    return None if is_control(instruction) else compile_one(instruction)


def _skips(program: Program) -> Iterator[int]:
    """The branches past what no lane would do: without them nothing is done, too."""
    for place, instruction in enumerate(program.instructions):
        target = branch_target(program, instruction)
        if instruction.name == "s_cbranch_execz" and target is not None and target > place:
            inside = program.instructions[place + 1 : target]
            led_to = [branch_target(program, each) for each in inside]
            stays = all(to is None or place < to <= target for to in led_to)
            if stays and not any(is_matrix(each) or each.name == "s_endpgm" for each in inside):
                yield place


def _decides(program: Program, place: int, taken: Mapping[int, Operation]) -> bool:
    """Whether what a branch leads past has an effect without lanes that others depend on."""
    target = branch_target(program, program.instructions[place])
    assert target is not None
    inside = [taken[each] for each in range(place + 1, target) if each in taken]
    return any(
        operation.gives_scc or any(each.bank == "s" for each in operation.writes)
        for operation in inside
    )


class _Walk:
    """The words that branches depend on, before each instruction."""

    def __init__(
        self, program: Program, operations: Sequence[Operation | None], skipped: Collection[int]
    ) -> None:
        self._program, self._operations, self._skipped = program, operations, skipped
        count = len(program.instructions)
        self._before: list[frozenset[_Word]] = [frozenset()] * (count + 1)
        followed = [list(self._next(place)) for place in range(count)]
        self._whole = self._with_all_lanes(followed)
        changed = True
        while changed:
            changed = False
            for place in reversed(range(count)):
                after = frozenset().union(*(self._before[each] for each in followed[place]))
                before = self._through(place, after)
                if before != self._before[place]:
                    self._before[place], changed = before, True
        self._after = [
            frozenset().union(*(self._before[each] for each in places)) for places in followed
        ]

    @property
    def at_entry(self) -> frozenset[_Word]:
        """What they depend on when the program begins."""
        return self._before[self._program.entry]

    def taken(self) -> dict[int, Operation]:
        """The instructions that write something of it, by their places."""
        return {
            place: operation
            for place, operation in enumerate(self._operations)
            if operation is not None and not self._after[place].isdisjoint(_written(operation))
        }

    def _with_all_lanes(self, followed: Sequence[Sequence[int]]) -> list[bool]:
        """Where all lanes that the wave begins with are active, whichever way it came."""
        whole = [True] * (len(followed) + 1)
        pending = [place for place, each in enumerate(self._operations) if _writes_exec(each)]
        narrowed = set(pending)
        while pending:
            for each in followed[pending.pop()]:
                if whole[each]:
                    whole[each] = False
                    if each not in narrowed:
                        pending.append(each)
        return whole

    def _next(self, place: int) -> Iterator[int]:
        instruction = self._program.instructions[place]
        if instruction.name == "s_endpgm":
            return
        target = branch_target(self._program, instruction)
        if target is not None and place not in self._skipped:
            yield target
        if instruction.name != "s_branch" and place + 1 < len(self._operations):
            yield place + 1

    def _through(self, place: int, after: frozenset[_Word]) -> frozenset[_Word]:
        operation, name = self._operations[place], self._program.instructions[place].name
        if operation is None:
            if name.startswith("s_cbranch_") and place not in self._skipped:
                return after.union(_ASKED[name.removeprefix("s_cbranch_")])
            return after
        written = _written(operation)
        if after.isdisjoint(written):
            return after
        # Lanes that are not active keep what they have in a vector register.
        replaced = (w for w in written if self._whole[place] or w[0] in ("s", "scc"))
        return after.difference(replaced).union(_read(operation))


def _writes_exec(operation: Operation | None) -> bool:
    written = () if operation is None else operation.writes
    return not set(_EXEC).isdisjoint(_words(written))


def _written(operation: Operation) -> list[_Word]:
    return [*_words(operation.writes), *([_SCC] if operation.gives_scc else [])]


def _read(operation: Operation) -> list[_Word]:
    found = list(_words([each.register for each in operation.reads]))
    if operation.takes_scc:
        found.append(_SCC)
    if operation.unit not in ("salu", "smem"):
        found += _EXEC
    return found


def _words(registers: Sequence[Register]) -> Iterator[_Word]:
    for register in registers:
        for index in register.indices:
            yield register.bank, index


def _runs_apart(program: Program, place: int, operation: Operation) -> bool:
    """Whether an instruction gives the same if little else of the program runs."""
    name = program.instructions[place].name
    if operation.unit not in _UNITS or "atomic" in name:
        return False
    in_memory = operation.unit in ("vmem", "flat")
    return not in_memory or not program.directive("private_segment_fixed_size")


def _built(
    program: Program, taken: Collection[int], skipped: Collection[int], varies: bool
) -> ControlSlice:
    """The program of these instructions and all branches but those that are skipped."""
    begins = {*program.labels.values(), program.entry}
    kept: list[Instruction] = []
    places: list[int] = []
    matrix: Counter[int] = Counter()
    counted: int | None = None  # where the matrix instructions of this straight run are counted
    for place, instruction in enumerate(program.instructions):
        places.append(len(kept))
        if place in begins:
            counted = None
        if is_matrix(instruction):
            if counted is None:
                counted = len(kept)
                kept.append(replace(instruction, name="s_nop", operands=(), modifiers={}))
            matrix[counted] += 1
        elif instruction.name.startswith(BRANCHES):
            counted = None
            if place not in skipped:
                kept.append(instruction)
        elif place in taken or instruction.name in ("s_endpgm", "s_setreg_imm32_b32"):  # the mode
            kept.append(instruction)
    places.append(len(kept))
    labels = {name: places[place] for name, place in program.labels.items()}
    sliced = replace(program, instructions=tuple(kept), labels=labels, entry=places[program.entry])
    return ControlSlice(sliced, dict(matrix), varies)
