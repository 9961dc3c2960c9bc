"""Results for which neighbouring columns of a product are compared: those of an MX format.

largest[i, g] = max(largest[i, g], f(exact[i, g * 32 + r]))
scale[i, g] = h(largest[i, g])
C[i, j] = e(exact[i, j], scale[i, j // 32])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Buffer, BufferStore, Expr, IterVar, PrimFunc, Var
from tvm.tirx.analysis import undefined_vars

from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.passes.tir.walk import mapped, walk
from mfmadsl.schedule.product.column_groups import (
    Choice,
    ComparedGroup,
    GroupOutput,
    Output,
    made_beside,
    made_of,
    reads_any,
    reads_parameters,
    storing,
    through,
    with_stand_in,
)
from mfmadsl.schedule.product.dataflow import check_element_wise, fills, holds
from mfmadsl.schedule.product.nest import (
    Nest,
    check_plain,
    is_sum,
    line,
    loads,
    same,
)
from mfmadsl.schedule.product.paired_columns import pair_value

_WIDEST = 32  # columns of a group: those of a wave's neighbouring lanes
_COMPARED = frozenset(
    ["bfloat16", *(f"float{n}" for n in (16, 32, 64))]
    + [f"{kind}{n}" for kind in ("int", "uint") for n in (8, 16, 32, 64)]
)
_NIBBLE = "float4_e2m1fn"  # two of which are a byte


def compared_output(function: PrimFunc, of_pairs: bool = True) -> GroupOutput | None:
    """The results of groups of columns that a function has, None where it has none.

    Where what is compared is made of pairs of columns, as gated activations are, it is made in the
    same kernel if `of_pairs`, and else in one before that compares.

    Raises ScheduleError, with the name of the block, for results that only look like it.
    """
    every = storing(function)
    of_product = _of_product(every)
    found = [nest for nest in every if _compares(nest) and reads_any(nest, of_product)]
    if not found:
        return None
    if len(found) > 1:
        raise found[1].refusal("compares columns of a product, as another block does")
    return _GroupNests(function, every, found[0], of_product).output(of_pairs)


def _compares(nest: Nest) -> bool:
    """Whether a block looks for the largest or smallest of several elements."""
    return is_sum(nest) and _choice(nest.store) is not None


def _choice(store: BufferStore) -> tuple[Choice, Expr] | None:
    """What is chosen of a buffer's element and what other expression."""
    value = store.value
    if not isinstance(value, tirx.Max | tirx.Min):
        return None
    own = tirx.BufferLoad(store.buffer, list(store.indices))
    for this, other in ((value.a, value.b), (value.b, value.a)):
        if same(this, own):
            return type(value), other
    return None


def _of_product(every: Sequence[Nest]) -> list[Buffer]:
    """The sums of a function, and what is made of them."""
    found: list[Buffer] = []
    for nest in every:
        if (is_sum(nest) and not _compares(nest)) or reads_any(nest, found):
            found.append(nest.store.buffer)
    return found


@dataclass(frozen=True)
class _GroupNests:
    """The blocks of a function, of which `reduction` compares columns of a product."""

    function: PrimFunc
    every: Sequence[Nest]
    reduction: Nest
    of_product: Sequence[Buffer]

    def output(self, of_pairs: bool) -> GroupOutput:
        """What they make."""
        found = _choice(self.reduction.store)
        assert found is not None
        choice, compared = found
        exact, after = self._base(compared)
        check_plain(self.reduction)
        width = self._width(exact)
        for nest in after:
            check_element_wise(nest)
            if not fills(nest):
                raise nest.refusal("makes a result of groups, but leaves gaps in it or turns it")
        element = tirx.Var("element", str(exact.dtype))
        group = tirx.Var("group", str(self.reduction.store.buffer.dtype))
        makers = [*after, *made_beside(self.every, exact)]
        values = _Values(self.reduction, exact, makers, width, element, group)
        first = self._first()
        outputs = tuple(
            values.output(nest)
            for nest in (self.reduction, *after)
            if holds(self.function.params, nest.store.buffer)
        )
        if not reads_parameters(self.function, (v for each in outputs for v in each.values)):
            raise self.reduction.refusal(
                "compares columns, and a result is made of them and of what other blocks sum"
            )
        whole = [each for each in outputs if not each.of_group]
        if not whole:
            raise self.reduction.refusal("compares columns, and no result has an element for each")
        pairs = pair_value(self.function, exact) if of_pairs else None
        left_out, held, pair = [self.reduction, *after], exact, None
        if pairs is not None:
            (sums, pair), width = pairs, width * 2
            held = sums.store.buffer
            left_out = made_of(self.every, held)
        result = whole[0].buffer
        workload, stand_in = with_stand_in(self.function, held, left_out, result, width)
        comparison = ComparedGroup(choice, first, values.compared(compared), element, group)
        return GroupOutput(
            self.function, workload, stand_in, width, str(held.dtype), comparison, outputs, pair
        )

    def _first(self) -> Expr:
        """What a group's value is before the first column."""
        store, init = self.reduction.store, self.reduction.block.init
        if (
            not isinstance(init, BufferStore)
            or not init.buffer.same_as(store.buffer)
            or not same(list(init.indices), list(store.indices))
            or loads(init.value)
            or undefined_vars(init.value)
        ):
            raise self.reduction.refusal("compares columns with no constant to start from")
        if (dtype := str(store.buffer.dtype)) not in _COMPARED:
            raise self.reduction.refusal(
                f"compares columns as {dtype}, which no instruction does: compare them as float32"
            )
        return init.value

    def _base(self, compared: Expr) -> tuple[Buffer, list[Nest]]:
        """The elements that all results are made of, and the blocks that make them."""
        sources = [x.source for x in loads(compared) if holds(self.of_product, x.source)]
        while sources:
            exact = sources[0]
            after = [n for n in made_of(self.every, exact) if n is not self.reduction]
            own = [exact, self.reduction.store.buffer, *(nest.store.buffer for nest in after)]
            others = (
                load.source
                for nest in (self.reduction, *after)
                for load in loads(nest.block.body)
                if holds(self.of_product, load.source) and not holds(own, load.source)
            )
            results = (b for b in self.of_product if holds(self.function.params, b))
            if next(others, None) is None and all(holds(own[1:], result) for result in results):
                return exact, after
            (writer,) = (n for n in self.every if n.store.buffer.same_as(exact))
            if is_sum(writer):
                break
            sources = [
                x.source for x in loads(writer.block.body) if holds(self.of_product, x.source)
            ]
        raise self.reduction.refusal(
            "compares columns of a product, of which other results are made than of what it reads"
        )

    def _width(self, exact: Buffer) -> int:
        """The columns of a group. Each column is in one, and a row's groups are in order."""
        axes = [a for a in self.reduction.block.iter_vars if a.iter_type == IterVar.CommReduce]
        width = constant(axes[0].dom.extent)
        if len(axes) > 1 or width is None or width & (width - 1) or not 2 <= width <= _WIDEST:
            raise self.reduction.refusal(
                f"compares other columns of a product than 2, 4, 8, 16 or {_WIDEST} neighbours"
            )
        groups = self.reduction.store.buffer
        if not fills(self.reduction) or not same(list(groups.shape[:-1]), list(exact.shape[:-1])):
            raise self.reduction.refusal("does not have the groups of a row one after the other")
        columns, count = (constant(each.shape[-1]) for each in (exact, groups))
        if columns is None or count is None or columns != count * width:
            raise self.reduction.refusal(
                f"makes {groups.shape[-1]} groups of {width} of rows of {exact.shape[-1]} columns:"
                " each column has to be in one"
            )
        return width


@dataclass(frozen=True)
class _Values:
    """What blocks compute, as expressions of an element and of its group's value."""

    reduction: Nest
    exact: Buffer
    makers: Sequence[Nest]
    width: int
    element: Var
    group: Var

    def compared(self, value: Expr) -> Expr:
        """What the reduction compares: of the element at column `group * width + r` alone."""
        *lead, group, inner = (axis.var for axis in self._own_axes())
        value = self._of(self.reduction, value, (*lead, group * self.width + inner), None)
        if loads(value) or any(not v.same_as(self.element) for v in undefined_vars(value)):
            raise self.reduction.refusal(
                "compares what is made of more than an element: compute that in a block before it"
            )
        _check_stored_only(self.reduction, value)
        return value

    def output(self, nest: Nest) -> Output:
        """The result that a block writes."""
        store = nest.store
        if nest is self.reduction:
            return Output(store.buffer, tuple(store.indices), (self.group,), of_group=True)
        shapes = [list(each.shape) for each in (self.exact, self.reduction.store.buffer)]
        of_group = same(list(store.buffer.shape), shapes[1])
        if not of_group and not same(list(store.buffer.shape), shapes[0]):
            raise nest.refusal("makes a result that has neither the shape of C nor one of groups")
        at = tuple(store.indices)
        column = at[-1]
        group = column if of_group else tirx.floordiv(column, self.width)
        value = self._of(nest, store.value, None if of_group else at, (*at[:-1], group))
        dtype = str(store.buffer.dtype)
        if bits_of(dtype) < 8 and (
            dtype != _NIBBLE or of_group or not isinstance(value, tirx.Cast)
        ):
            raise nest.refusal(
                f"makes a result of {dtype}: of fewer than eight bits there are casts to {_NIBBLE},"
                " for each column"
            )
        stored = value.value if isinstance(value, tirx.Cast) and dtype == _NIBBLE else value
        _check_stored_only(nest, stored)
        return Output(store.buffer, at, (value,), of_group)

    def _own_axes(self) -> list[IterVar]:
        axes = list(self.reduction.block.iter_vars)
        return sorted(axes, key=lambda axis: axis.iter_type == IterVar.CommReduce)

    def _of(
        self, nest: Nest, value: Expr, at: Sequence[Expr] | None, of_group: Sequence[Expr] | None
    ) -> Expr:
        """A value of an element at a place, and of a group at one, if there are such."""
        value = through(value, self.makers)
        analyzer = Analyzer()
        for axis in nest.block.iter_vars:
            analyzer.bind(axis.var, axis.dom)
        known = (
            (self.exact, at, self.element),
            (self.reduction.store.buffer, of_group, self.group),
        )
        for buffer, places, _ in known:
            for load in loads(value):
                if not load.source.same_as(buffer):
                    continue
                pairs = zip(load.indices, places or (), strict=False)
                there = len(load.indices) == len(places or ())
                if not there or not all(analyzer.can_prove_equal(*pair) for pair in pairs):
                    raise nest.refusal(
                        f"reads `{line(load)}`, and only an element's own place and group are known"
                    )

        def load_of(found: TensorLoad) -> Expr:
            return next((own for b, _, own in known if found.source.same_as(b)), found)

        return mapped(value, (TensorLoad, load_of))


def _check_stored_only(nest: Nest, value: Expr) -> None:
    """Refuse a value that is made of numbers of fewer than eight bits."""
    types: list[str] = []
    walk(value, ((tirx.Cast, Var), lambda each: types.append(str(each.ty.dtype))))
    for dtype in types:
        if dtype.startswith("float") and bits_of(dtype) < 8:
            raise nest.refusal(f"reads numbers of {dtype}, which kernels store and do not read")
