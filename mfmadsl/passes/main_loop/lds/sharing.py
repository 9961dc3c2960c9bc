"""Buffers in the LDS of which one is done with before the other begins, in one place.

The sums of waves that share K come after the main loop, when nobody reads its tiles any more. So
they lie where a tile was, behind a barrier that all waves come to after their last reads:

    tile = alloc; loop over tile; sums = alloc; ...  ->  loop over tile; barrier; ... in the tile

What is added up before the loop lies there, too, and the tiles of a loop that comes after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.tirx import (
    AllocBuffer,
    AttrStmt,
    Buffer,
    BufferStore,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
)
from tvm.tirx.analysis import undefined_vars

from mfmadsl.model import Architecture
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.annotation import word
from mfmadsl.passes.tir.expression import (
    bits_of,
    calls_of,
    constant,
    depends,
    known_bytes,
    loads_of,
    name_of,
    of_length,
    ramp,
    scope_of,
    substitute,
    variables_of,
)
from mfmadsl.passes.tir.rewrite import lanes_of, with_body
from mfmadsl.passes.tir.walk import mapped, walk

_VOLATILE = "tirx.volatile"


def share_lds(function: PrimFunc, chip: Architecture) -> PrimFunc:
    """The device function, flattened, with such buffers in one place, if it is large enough.

    The place is the one of another type, whose elements are taken together; what is in a loop that
    comes back to the first buffer stays as it is. A loop's own buffers are allocated ahead of it.
    """
    return with_body(function, _shared(function.body, chip, []))


def _shared(statement: Stmt, chip: Architecture, threads: list[Var]) -> Stmt:
    if isinstance(statement, AttrStmt):
        if statement.attr_key == "thread_extent":
            tag = str(statement.node.thread_tag)
            threads = [*threads, statement.node.var] if tag.startswith("threadIdx") else threads
        body = _shared(statement.body, chip, threads)
        return AttrStmt(statement.node, statement.attr_key, statement.value, body)
    if isinstance(statement, IfThenElse) and _is_of_all(statement, threads):
        return IfThenElse(statement.condition, _shared(statement.then_case, chip, threads), None)
    if not isinstance(statement, SeqStmt):
        return statement
    parts = [each for part in statement.seq for each in _allocated_ahead(part)]
    if (pair := _pair(parts)) is None:
        parts[-1] = _shared(parts[-1], chip, threads)
    while pair is not None:
        parts = pair.together(parts, chip)
        pair = _pair(parts)
    return SeqStmt(parts)


def _allocated_ahead(statement: Stmt) -> list[Stmt]:
    """A statement; of a loop, what its body allocates in the LDS comes first."""
    if not isinstance(statement, For) or not isinstance(statement.body, SeqStmt):
        return [statement]
    of_lds = [isinstance(s, AllocBuffer) and _is_of_lds(s.buffer) for s in statement.body.seq]
    if not any(of_lds):
        return [statement]
    ahead = [each for each, is_of_lds in zip(statement.body.seq, of_lds, strict=True) if is_of_lds]
    rest = [s for s, is_of_lds in zip(statement.body.seq, of_lds, strict=True) if not is_of_lds]
    loop = For(
        statement.loop_var, statement.min, statement.extent, statement.kind, SeqStmt(rest),
        statement.thread_binding, statement.annotations, statement.step, statement.span,
    )  # fmt: skip
    return [*ahead, loop]


def _is_of_lds(buffer: Buffer) -> bool:
    return scope_of(buffer) == "shared"


def _is_of_all(branch: IfThenElse, threads: Sequence[Var]) -> bool:
    """Whether all threads of a workgroup take a branch, or none, so that it may have a barrier."""
    differs = any(depends(branch.condition, each) for each in threads)
    return branch.else_case is None and not differs and not loads_of(branch.condition)


@dataclass(frozen=True)
class _Pair:
    """Two buffers, of which one is put into the other, and that which is used first."""

    small: Buffer
    large: Buffer
    first: Buffer

    def together(self, parts: list[Stmt], chip: Architecture) -> list[Stmt]:
        """The statements, with what they do with the small buffer done in the other."""
        allocation = next(part for part in parts if _allocates(part, self.large))
        both = self.small, self.large
        rest = [part for part in parts if not any(_allocates(part, each) for each in both)]
        last = max(n for n, part in enumerate(rest) if depends(part, self.first))
        done = [self._moved(part) if depends(part, self.small) else part for part in rest]
        meeting = [device.wait_for_lds(chip), device.barrier()]
        return [allocation, *done[: last + 1], *meeting, *done[last + 1 :]]

    def _moved(self, part: Stmt) -> Stmt:
        if self.are_alike:
            part = substitute(part, {self.small: self.large})
        else:
            part = mapped(part, (TensorLoad, self._load), (BufferStore, self._store))
        moved: Stmt = mapped(part, (Evaluate, _in_wave))
        return moved

    @property
    def are_alike(self) -> bool:
        """Whether both have elements of one type: whatever is done with one can be done with the
        other."""
        return bool(self.small.dtype == self.large.dtype)

    def _load(self, load: TensorLoad) -> Expr:
        if not load.source.same_as(self.small):
            return load
        place = tirx.BufferLoad(self.large, [self._place(load.indices[0])])
        return tirx.reinterpret(load.ty.dtype, place)

    def _store(self, store: BufferStore) -> BufferStore:
        if not store.buffer.same_as(self.small):
            return store
        lanes = lanes_of(store.value) * self._ratio
        value = tirx.reinterpret(of_length(str(self.large.dtype), lanes), store.value)
        return BufferStore(self.large, value, [self._place(store.indices[0])])

    def _place(self, index: Expr) -> Expr:
        first, lanes = index, 1
        if isinstance(index, tirx.Ramp):
            first, lanes = index.base, int(index.lanes)
        return ramp(first * self._ratio, lanes * self._ratio)

    @property
    def _ratio(self) -> int:
        """Elements of the large buffer in the place of one of the small."""
        return bits_of(self.small.dtype) // bits_of(self.large.dtype)


def _pair(parts: Sequence[Stmt]) -> _Pair | None:
    """The two buffers of a sequence that can best share a place: all uses of one are before all
    those of the other, and an element of the smaller is one or several of the larger.

    Best is where least of the larger is left over, and then where one comes soonest after the
    other: what lies between them can share the place with neither any more.
    """
    allocated = [part for part in parts if isinstance(part, AllocBuffer)]
    shared = [each.buffer for each in allocated if _is_of_lds(each.buffer)]
    volatile = [each.buffer for each in allocated if _VOLATILE in (each.annotations or {})]
    if len(shared) < 2:
        return None
    used = [
        set() if isinstance(part, AllocBuffer) else {v.__chandle__() for v in undefined_vars(part)}
        for part in parts
    ]
    uses = [[n for n, own in enumerate(used) if b.__chandle__() in own] for b in shared]
    found = [each for each in zip(shared, uses, strict=True) if each[1]]
    offered: list[tuple[int, int, _Pair]] = []
    for (small, own), (large, others) in permutations(found, 2):
        whole = bits_of(small.dtype) % bits_of(large.dtype) == 0
        apart = max(others[0] - own[-1], own[0] - others[-1])
        if any(large.same_as(each) for each in volatile):
            continue  # it would be so for what does not need it
        left = known_bytes(large) - known_bytes(small)
        pair = _Pair(small, large, small if own[-1] < others[0] else large)
        if not whole or left < 0 or apart <= 0:
            continue
        if pair.are_alike or all(_is_plain(parts[n], small) for n in own):
            offered.append((left, apart, pair))
    return min(offered, key=lambda each: each[:2])[2] if offered else None


def _in_wave(statement: Evaluate) -> Evaluate:
    """The barrier of a wave, which is none where a buffer is volatile, as one for all buffers."""
    call = statement.value
    if not isinstance(call, Call) or name_of(call) != "tvm_storage_sync":
        return statement
    scope, *_ = call.args  # TVM's frontend says more, which has no meaning here
    return device.settled() if word(scope) == "warp" else statement


def _allocates(statement: Stmt, buffer: Buffer) -> bool:
    return isinstance(statement, AllocBuffer) and statement.buffer.same_as(buffer)


def _is_plain(statement: Stmt, buffer: Buffer) -> bool:
    """Whether all that is done with a buffer is to read and write elements that lie together."""
    stores: list[BufferStore] = []
    walk(statement, (BufferStore, stores.append))
    indices = [store.indices[0] for store in stores if store.buffer.same_as(buffer)]
    indices += [load.indices[0] for load in loads_of(statement) if load.source.same_as(buffer)]
    uses = sum(variable.same_as(buffer) for variable in variables_of(statement))
    calls = [call for call in calls_of(statement) if name_of(call) == "address_of"]
    if any(depends(call, buffer) for call in calls):
        return False  # of an element, and not of what its bits are taken for
    return len(indices) == uses and all(_lie_together(index) for index in indices)


def _lie_together(index: Expr) -> bool:
    return not isinstance(index, tirx.Broadcast) and (
        not isinstance(index, tirx.Ramp) or constant(index.stride) == 1
    )
