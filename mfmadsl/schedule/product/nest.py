"""The loop nests of a function, one block each: what a schedule starts from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock, SBlockRealize, Schedule
from tvm.s_tir.schedule import SBlockRV
from tvm.sym import Analyzer, detect_iter_map
from tvm.sym.iter_affine_map import IterMapLevel
from tvm.tirx import Buffer, BufferStore, Expr, For, IterVar, PrimFunc, Stmt, Var
from tvm.tirx.analysis import undefined_vars

from mfmadsl.passes.kernel.cases import case_in
from mfmadsl.passes.tir.block import statements, with_root
from mfmadsl.passes.tir.walk import mapped, walk
from mfmadsl.schedule.error import ScheduleError

Node = TypeVar("Node", bound=tvm_ffi.Object)


@dataclass(frozen=True)
class Nest:
    """Loops that hold nothing but one block of no further blocks; `realize` binds it to them."""

    loops: tuple[For, ...]
    realize: SBlockRealize
    statement: Stmt

    @property
    def block(self) -> SBlock:
        """The block within the loops."""
        return self.realize.block

    @property
    def name(self) -> str:
        """The block's name."""
        return str(self.block.name_hint)

    @property
    def store(self) -> BufferStore:
        """The statement of a block that stores one element, which others have checked."""
        assert isinstance(self.block.body, BufferStore)
        return self.block.body

    @property
    def variables(self) -> tuple[Var, ...]:
        """The block's variables."""
        return tuple(axis.var for axis in self.block.iter_vars)

    def refusal(self, reason: str) -> ScheduleError:
        """The error that refuses this block."""
        return ScheduleError(f"block `{self.name}` {reason}")


SCHEDULED = "mfmadsl.scheduled"
"""The annotation of a loop that is a kernel of its own on a CPU, as those over workgroups are."""


def function_of(sch: Schedule, block: SBlockRV | None = None) -> PrimFunc:
    """The function that a schedule works on; of a block in a case, what the case holds as one."""
    function: PrimFunc = sch.mod[sch.func_working_on or "main"]
    wanted = None if block is None else sch.get(block)
    for statement in statements(function) if wanted is not None else ():
        case = case_in(statement)
        if case is not None and any(each.same_as(wanted) for each in blocks_in(case)):
            return with_root(function, case)
    return function


def nests(function: PrimFunc) -> list[Nest]:
    """The nests that the root block of a function runs, in order; other statements are left out."""
    found = (_nest(statement) for statement in statements(function))
    return [nest for nest in found if nest is not None]


def block_names(function: PrimFunc) -> set[str]:
    """The names of all blocks; ScheduleError if two have one, since schedules go by them.

    TVM calls the block that is the function's body `root`.
    """
    names: set[str] = set()
    for name in (str(block.name_hint) for block in blocks_in(function.body)):
        if name in names:
            raise ScheduleError(f"two blocks are called `{name}`: give each a name of its own")
        names.add(name)
    return names


def _nest(statement: Stmt) -> Nest | None:
    loops = []
    inner = statement
    while isinstance(inner, tirx.For):
        loops.append(inner)
        inner = inner.body
    if isinstance(inner, s_tir.SBlockRealize) and not blocks_in(inner.block.body):
        return Nest(tuple(loops), inner, statement)
    return None


def nest_of(sch: Schedule, block: SBlockRV) -> Nest:
    """The nest of a block, or ScheduleError if other statements are between it and the root."""
    wanted = sch.get(block)
    for each in nests(function_of(sch, block)):
        if each.block.same_as(wanted):
            return each
    raise ScheduleError(
        f"block `{wanted.name_hint}` is no nest of loops of its own in the function: it shares its"
        " loops, stands under a condition, or holds other blocks"
    )


def check_plain(nest: Nest) -> None:
    """Refuse what primitives of TVM lose silently: the block must run once for each place.

    Each of its axes goes from zero to a known end and is bound to one serial loop of that length.
    """
    if not is_number(nest.realize.predicate, 1):
        raise nest.refusal(
            f"runs under the condition `{line(nest.realize.predicate)}`, which schedules lose"
        )
    block = nest.block
    if block.alloc_buffers or block.match_buffers:
        raise nest.refusal("has buffers of its own")
    loops = list(nest.loops)
    inside = {loop.loop_var for loop in loops}
    for loop in loops:
        if loop.kind != tirx.ForKind.SERIAL or loop.thread_binding is not None:
            raise nest.refusal(f"has loop `{loop.loop_var.name}`, which is no serial one any more")
        if not is_number(loop.min, 0) or not (loop.step is None or is_number(loop.step, 1)):
            raise nest.refusal(f"has loop `{loop.loop_var.name}`, which does not count from 0 by 1")
        if not inside.isdisjoint(undefined_vars(loop.extent)) or any(loads(loop.extent)):
            raise nest.refusal(
                f"has loop `{loop.loop_var.name}`, whose end `{line(loop.extent)}` depends on data"
                " or on other loops"
            )
    for axis, value in zip(block.iter_vars, nest.realize.iter_values, strict=True):
        if axis.iter_type not in (IterVar.DataPar, IterVar.CommReduce):
            raise nest.refusal(f"has axis `{axis.var.name}`, which is neither a place nor a sum")
        _check_bound(nest, axis, value, loops)
    left = [loop for loop in loops if not is_number(loop.extent, 1)]
    if left:
        raise nest.refusal(f"does not use its loop `{left[0].loop_var.name}`")


def _check_bound(nest: Nest, axis: IterVar, value: Expr, loops: list[For]) -> None:
    """The axis is bound to a loop of its own, which is taken out of `loops`."""
    for loop in loops:
        if loop.loop_var.same_as(value):
            loops.remove(loop)
            if is_number(axis.dom.min, 0) and same(axis.dom.extent, loop.extent):
                return
            break
    else:
        if is_number(value, 0) and is_number(axis.dom.min, 0) and is_number(axis.dom.extent, 1):
            return
    raise nest.refusal(
        f"binds its axis `{axis.var.name}` to `{line(value)}`, which is not one whole loop"
    )


def is_sum(nest: Nest) -> bool:
    """Whether a block has axes that it reduces over."""
    return any(axis.iter_type == IterVar.CommReduce for axis in nest.block.iter_vars)


def writes_apart(nest: Nest, store: BufferStore) -> bool:
    """Whether a block surely stores to another element for each place that it is at."""
    axes = [
        axis
        for axis in nest.block.iter_vars
        if axis.iter_type == IterVar.DataPar and not is_number(axis.dom.extent, 1)
    ]
    own = {axis.var for axis in axes}
    told = set()
    for index in store.indices:
        inside = own.intersection(undefined_vars(index))
        if len(inside) == 1:
            (variable,) = inside
            step = Analyzer().simplify(substitute(index, {variable: variable + 1}) - index)
            if isinstance(step, tirx.IntImm) and int(step) != 0:
                told.add(variable)
    if told == own:
        return True
    ranges = {axis.var: axis.dom for axis in axes}
    found = detect_iter_map(list(store.indices), ranges, True, IterMapLevel.Bijective)
    return len(found.indices) > 0


def loads(expression: tvm_ffi.Object) -> list[TensorLoad]:
    """The elements that an expression or statement reads."""
    found: list[TensorLoad] = []
    walk(expression, (TensorLoad, found.append))
    return found


def buffers(expressions: Iterable[tvm_ffi.Object]) -> list[Buffer]:
    """The buffers that the expressions read, each once."""
    found: list[Buffer] = []
    for expression in expressions:
        for load in loads(expression):
            if not any(load.source.same_as(buffer) for buffer in found):
                found.append(load.source)
    return found


def blocks_in(statement: Stmt) -> list[SBlock]:
    """The blocks in a statement, or of a block itself and those in it."""
    found: list[SBlock] = []
    walk(statement, (SBlock, found.append))
    return found


def is_number(value: object, number: float) -> bool:
    """Whether an expression is this number, whatever its type."""
    return isinstance(value, tirx.IntImm | tirx.FloatImm) and float(value.value) == number


def same(a: object, b: object) -> bool:
    """Whether two expressions are written alike, of the same variables and buffers."""
    return bool(tvm_ffi.structural_equal(a, b))


def line(expression: object) -> str:
    """An expression as TVM writes it, in one line."""
    return str(expression).splitlines()[-1]


def substitute(expression: Node, values: Mapping[Var, Expr]) -> Node:
    """The expression or statement with variables replaced."""
    found = {variable.__chandle__(): value for variable, value in values.items()}
    return mapped(expression, (tirx.Var, lambda v: found.get(v.__chandle__(), v)))
