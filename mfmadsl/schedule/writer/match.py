"""Finding the GEMM in a workload: which loops are M, N, K and batch, and what comes after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import PrimFunc

from mfmadsl.prim_func import prim_func
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.writer.problem import Axis, Extent, Matrix, Problem, Stage, constant

_SPATIAL, _REDUCTION = 0, 2


def match_gemm(workload: PrimFunc | tvm.IRModule) -> Problem:
    """The GEMM that a workload is, with its epilogue.

    The workload is one block that sums products of an element of A and one of B, and element-wise
    blocks after it. Raises ScheduleError, naming the block, for anything else.
    """
    function = prim_func("workload", workload, ScheduleError)
    blocks = list(_blocks(function.body))
    products = [block for block in blocks if block.init is not None]
    if len(products) != 1:
        names = ", ".join(f"`{block.name_hint}`" for block in products) or "none"
        raise ScheduleError(
            f"workload: one block must be a reduction, the matrix product; there are: {names}"
        )
    (block,) = products
    place = blocks.index(block)
    if place:
        raise ScheduleError(
            f"workload: block `{blocks[0].name_hint}` comes before the product `{block.name_hint}`;"
            " only what follows it can be fused: compute it in a kernel of its own"
        )
    return _Match(function, block).problem(blocks[1:])


def _blocks(statement: Any) -> Iterator[Any]:
    """The innermost blocks, in order."""
    if hasattr(statement, "block"):
        statement = statement.block
        if statement.iter_vars:
            yield statement
            return
        yield from _blocks(statement.body)
    elif isinstance(statement, tirx.SeqStmt):
        for each in statement:
            yield from _blocks(each)
    elif isinstance(statement, tirx.For):
        yield from _blocks(statement.body)


class _Match:
    """One product block, taken apart."""

    def __init__(self, function: PrimFunc, block: Any) -> None:
        self.function = function
        self.block = block
        self.name = str(block.name_hint)
        self.extents = {v.var: v.dom.extent for v in block.iter_vars}
        self.reduced = [v.var for v in block.iter_vars if v.iter_type == _REDUCTION]
        self._written: dict[Any, list[Any]] = {}  # where each stage writes, in loops of the product

    def wrong(self, what: str) -> ScheduleError:
        return ScheduleError(f"workload: block `{self.name}` {what}")

    def problem(self, after: Sequence[Any]) -> Problem:
        store, left, right = self._product()
        for use in (left, right, store):
            self._strides(use)  # first, since what it says is the plainest: no matrix is read so
        axes = {v: self._kind(v, store, left, right) for v in self.extents}
        stages, final = self._stages(store, after)
        loads = {"a": left, "b": right}
        members = {kind: [v for v in self.extents if axes[v] == kind] for kind in "mnk"}
        m, outer_m = self._chain(members["m"], [loads["a"], final])
        n, outer_n = self._chain(members["n"], [loads["b"], final])
        k, outer_k = self._chain(members["k"], [loads["a"], loads["b"]])
        if outer_k:
            raise self.wrong("sums over several loops that do not lie one after another in A and B")
        rest = [v for v in self.extents if axes[v] == "batch"] + outer_m + outer_n
        batch = tuple(Axis((v,), (self.extents[v],)) for v in rest)
        return Problem(
            tuple(self.function.params), self.name, m, n, k, batch,
            self._matrix(left, m, k, batch), self._matrix(right, n, k, batch),
            self._matrix(final, m, n, batch), store.buffer, stages,
        )  # fmt: skip

    def _product(self) -> tuple[Any, Any, Any]:
        """The store, and the loads of A and B: A is the one that varies along C's rows."""
        store = self.block.body
        value = store.value if isinstance(store, tirx.BufferStore) else None
        if not isinstance(value, tirx.Add):
            raise self.wrong("is no sum of products: C[i, j] = C[i, j] + A * B")
        product = next((x for x in (value.a, value.b) if not _loads(x, store.buffer)), None)
        product = _uncast(product)
        if not isinstance(product, tirx.Mul):
            raise self.wrong("does not add a product of two elements to C")
        factors = [_uncast(product.a), _uncast(product.b)]
        for factor in factors:
            if not isinstance(factor, TensorLoad):
                raise self.wrong(f"multiplies `{factor}`, which is no element of a buffer")
            if not any(factor.source.same_as(p) for p in self.function.params):
                raise self.wrong(f"multiplies `{factor.source.name}`, which is no argument")
        init = self.block.init
        if not isinstance(init, tirx.BufferStore) or not _is_zero(init.value):
            raise self.wrong("does not start its sum from zero")
        first, second = factors
        order = [str(v) for v in store.indices]
        # Of two matrices the one whose own loop comes first in C has the rows.
        own = [
            min((order.index(str(i)) for i in load.indices if str(i) in order
                 and not _has(other, i)), default=len(order))
            for load, other in ((first, second), (second, first))
        ]  # fmt: skip
        return (store, first, second) if own[0] <= own[1] else (store, second, first)

    def _kind(self, variable: tirx.Var, store: Any, left: Any, right: Any) -> str:
        inside = (_has(left, variable), _has(right, variable), _has(store, variable))
        if any(v.same_as(variable) for v in self.reduced):
            if inside != (True, True, False):
                raise self.wrong(f"sums over `{variable.name}`, which A and B do not share")
            return "k"
        kinds = {(True, False, True): "m", (False, True, True): "n"}
        return kinds.get(inside, "batch")

    def _strides(self, load: Any) -> dict[str, Extent]:
        """Elements between neighbours along each loop; every index must be a loop or constant 0."""
        strides: dict[str, Extent] = {}
        buffer = load.source if isinstance(load, TensorLoad) else load.buffer
        for index, stride in zip(load.indices, _buffer_strides(buffer), strict=True):
            if isinstance(index, tirx.Var):
                strides[index.name] = strides.get(index.name, 0) + stride
            elif constant(index) != 0:
                raise self.wrong(
                    f"indexes `{buffer.name}` with `{index}`, which is no loop: make a matrix "
                    "product of it first, of a convolution for instance by im2col"
                )
        return strides

    def _chain(self, variables: list[Any], uses: list[Any]) -> tuple[Axis, list[Any]]:
        """The innermost loops that can be walked as one in all uses, and those that remain."""
        places = [self._strides(use) for use in uses]
        order = sorted(variables, key=lambda v: [_size(p[v.name]) for p in places])
        chain: list[Any] = []
        rest: list[Any] = []
        for variable in order:
            if not chain or (
                not rest
                and all(
                    _equal(p[variable.name], p[chain[0].name] * self.extents[chain[0]])
                    for p in places
                )
            ):
                chain.insert(0, variable)
            else:
                rest.insert(0, variable)
        return Axis(tuple(chain), tuple(_plain(self.extents[v]) for v in chain)), rest

    def _matrix(self, use: Any, rows: Axis, columns: Axis, batch: Sequence[Axis]) -> Matrix:
        strides = self._strides(use)
        buffer = use.source if isinstance(use, TensorLoad) else use.buffer

        def step(axis: Axis) -> Extent:
            return _plain(strides.get(axis.variables[-1].name, 0)) if axis.variables else 0

        return Matrix(buffer, step(rows), step(columns), tuple(step(axis) for axis in batch))

    def _stages(self, store: Any, after: Sequence[Any]) -> tuple[tuple[Stage, ...], Any]:
        """The blocks after the product as expressions of its loops, and the last store."""
        stages: list[Stage] = []
        known = [store.buffer]
        last = store
        for block in after:
            body, name = block.body, str(block.name_hint)
            if not isinstance(body, tirx.BufferStore) or block.init is not None:
                raise ScheduleError(f"workload: block `{name}` is not element-wise: cannot fuse it")
            renamed = self._rename(name, block, body, store, known)
            body = substitute(body, renamed)
            stages.append(Stage(name, body.buffer, body.value))
            known.append(body.buffer)
            last = body
        results = [
            buffer for buffer in known if any(buffer.same_as(p) for p in self.function.params)
        ]
        if not any(buffer.same_as(last.buffer) for buffer in results):
            raise ScheduleError(f"workload: `{last.buffer.name}`, the result, is no argument")
        if len(results) > 1:
            raise ScheduleError(
                f"workload: `{results[0].name}` is a result besides `{last.buffer.name}`: a kernel "
                "keeps one"
            )
        return tuple(stages), last

    def _rename(
        self, name: str, block: Any, body: Any, store: Any, known: list[Any]
    ) -> dict[Any, Any]:
        """The block's loops as those of the product, by how it reads what came before it."""
        renamed: dict[Any, Any] = {}
        product = list(store.indices)
        reads = [x for x in _all_loads(body.value) if any(x.source.same_as(b) for b in known)]
        if not reads:
            raise ScheduleError(
                f"workload: block `{name}` does not use the product: cannot fuse it"
            )
        for read in reads:
            target = product if read.source.same_as(known[0]) else self._written[read.source]
            for index, variable in zip(read.indices, target, strict=True):
                if not isinstance(index, tirx.Var):
                    if constant(index) == 0 and constant(self._extent(variable)) == 1:
                        continue
                    raise ScheduleError(
                        f"workload: block `{name}` reads `{read.source.name}` at `{index}`, not at "
                        "the place that it writes: cannot fuse it"
                    )
                if index in renamed and not renamed[index].same_as(variable):
                    raise ScheduleError(
                        f"workload: block `{name}` reads `{read.source.name}` at two places at "
                        "once: cannot fuse it"
                    )
                renamed[index] = variable
        for each in block.iter_vars:
            if each.var not in renamed and constant(each.dom.extent) != 1:
                raise ScheduleError(
                    f"workload: block `{name}` loops over `{each.var.name}`, which the product "
                    "does not have: cannot fuse it"
                )
            if each.var not in renamed:
                renamed[each.var] = tirx.IntImm(str(each.var.ty.dtype), 0)
        self._written[body.buffer] = [substitute(index, renamed) for index in body.indices]
        return renamed

    def _extent(self, variable: Any) -> Extent:
        return next((e for v, e in self.extents.items() if v.same_as(variable)), 1)


def _all_loads(expression: Any) -> list[Any]:
    found: list[Any] = []
    tvm_ffi.structural_walk(expression, (TensorLoad, found.append))
    return found


def _loads(expression: Any, buffer: Any) -> bool:
    return any(load.source.same_as(buffer) for load in _all_loads(expression))


def _has(use: Any, variable: Any) -> bool:
    return any(index.same_as(variable) for index in use.indices)


def _uncast(expression: Any) -> Any:
    while isinstance(expression, tirx.Cast):
        expression = expression.value
    return expression


def _is_zero(value: Any) -> bool:
    return isinstance(value, tirx.IntImm | tirx.FloatImm) and float(value.value) == 0


def _plain(extent: Extent) -> Extent:
    number = constant(extent)
    return extent if number is None else number


def _size(stride: Extent) -> float:
    number = constant(stride)
    return float("inf") if number is None else number


def _equal(a: Extent, b: Extent) -> bool:
    numbers = constant(a), constant(b)
    if None not in numbers:
        return numbers[0] == numbers[1]
    return bool(Analyzer().can_prove_equal(a, b))


def _buffer_strides(buffer: Any) -> list[Extent]:
    if len(buffer.strides):
        return [_plain(stride) for stride in buffer.strides]
    strides: list[Extent] = [1]
    for extent in reversed(list(buffer.shape)[1:]):
        strides.insert(0, _plain(extent) * strides[0])
    return strides if len(buffer.shape) else []


def substitute(expression: Any, values: Mapping[Any, Any]) -> Any:
    """The expression or statement with variables replaced."""
    found = {variable.__chandle__(): value for variable, value in values.items()}
    return tvm_ffi.structural_map(expression, (tirx.Var, lambda v: found.get(v.__chandle__(), v)))
