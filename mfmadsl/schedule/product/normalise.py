"""Any product of matrices as C[s, i, j] += A[s, i, k] * B[s, j, k], by primitives of TVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV
from tvm.tirx import Buffer, BufferRegion, Expr, PrimFunc
from tvm.tirx.analysis import undefined_vars

from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.column_groups import group_columns
from mfmadsl.schedule.product.dataflow import (
    check_compact,
    check_producers,
    check_written_once,
    ends_plainly,
)
from mfmadsl.schedule.product.memory import (
    UNKNOWN,
    Extent,
    Memory,
    argument_load,
    final_store,
    memory,
    plain,
)
from mfmadsl.schedule.product.nest import Nest, buffers, function_of, is_number, nest_of
from mfmadsl.schedule.product.plain import BlockRead, PlainProduct
from mfmadsl.schedule.product.prologue import Prologue, prologue_of
from mfmadsl.schedule.product.sum_of_products import SumOfProducts, product_nest, sum_of_products
from mfmadsl.tvm_refusal import tvm_refusal


@dataclass(frozen=True)
class Product:
    """A product of matrices in its plain form, in a schedule.

    The loops of `block` are s, i, j, k; its reads are A[s, i, k] and B[s, j, k], its write is
    C[s, i, j]; an operand that is the same for each s has one of it. `a` and `b` write A and B, and
    are inlined into what reads them; `c` takes C to where the workload has it. `batches` says how
    many A and B there are, `prologues` what they are made of if they are computed, and `names` what
    the workload calls A, B and C. One wave has to store so many `columns_together`.
    Of `statistics_rows` each workgroup adds up statistics ahead of its product. What follows
    `ends_plainly` if a tile of it needs no more than that tile of C.
    """

    block: SBlockRV
    a: SBlockRV
    b: SBlockRV
    c: SBlockRV
    extents: tuple[Extent, Extent, Extent, Extent]
    batches: tuple[Extent, Extent]
    types: tuple[str, str, str]
    memory: tuple[Memory, Memory, Memory]
    prologues: tuple[Prologue | None, Prologue | None]
    names: tuple[str, str, str]
    columns_together: int = 1
    statistics_rows: int = 0
    ends_plainly: bool = False

    @property
    def element_bytes(self) -> tuple[int, int, int]:
        """The bytes of an element of A, B and C as they are multiplied and summed."""
        a, b, c = (int(tvm.DataType(dtype).bits) // 8 for dtype in self.types)
        return a, b, c

    @property
    def _groups(self) -> tuple[int, int]:
        a, b = (1 if prologue is None else prologue.group for prologue in self.prologues)
        return a, b

    @property
    def plain(self) -> PlainProduct:
        """What builders of schedules take."""
        reads = (
            BlockRead(
                name, side, Fraction(1), self.element_bytes[side], self.memory[side], group=group
            )
            for side, (name, group) in enumerate(zip("AB", self._groups, strict=True))
        )
        return PlainProduct(self.block, tuple(reads), self.extents, self.memory[2], self.names)


def product_block(sch: Schedule, block: str | None = None) -> SBlockRV:
    """The block of that name, or without a name the only one of the function that sums."""
    nest = product_nest(function_of(sch), block)
    with _refusal(nest):
        return sch.get_sblock(nest.name)


def normalise(sch: Schedule, block: SBlockRV) -> Product:
    """Bring a sum of products into the form that instructions have.

    What a TVM primitive would change silently is refused before anything is: ScheduleError, with
    the name of the block. The order of the factors stays: A is the first.
    """
    nest = nest_of(sch, block)
    product = sum_of_products(nest)
    _check_form(product)
    function = function_of(sch, block)
    check_compact(function)
    check_written_once(function)
    check_producers(function, nest)
    lies = _memory(function, product)
    along = product.axes("k")
    a, b = (
        prologue_of(function, factor, product.axes(kind), along)
        for factor, kind in ((product.first, "i"), (product.second, "j"))
    )
    with _refusal(nest):
        found = _normalised(sch, block, product, lies, (a, b))
    plainly = ends_plainly(function_of(sch, block), sch.get(block).writes[0].source)
    return replace(found, columns_together=group_columns(function), ends_plainly=plainly)


def _check_form(product: SumOfProducts) -> None:
    """Refuse what only `prepared` can bring into the form: no primitive changes an expression."""
    if product.first.source.same_as(product.second.source):
        raise product.nest.refusal(
            f"reads both factors from `{product.first.source.name}`: give one of them a copy, as"
            " `prepared` does"
        )
    for place, kind in (("first", "i"), ("second", "j")):
        if not product.axes(kind):
            raise product.nest.refusal(
                f"has no axis of its {place} factor alone: give it one of length 1, as `prepared`"
                " does"
            )
    for factor in (product.first, product.second):
        if product.some_batches(factor):
            raise product.nest.refusal(
                f"has batches that share `{factor.source.name}` and others that do not: copy it for"
                " each, as `prepared` does"
            )
    if not product.adds_to_sum:
        raise product.nest.refusal(
            "adds the sum to the product: add the product to the sum, as `prepared` does"
        )


def _memory(function: PrimFunc, product: SumOfProducts) -> tuple[Memory, Memory, Memory]:
    factors = product.first, product.second
    uses = [argument_load(function, factor) for factor in factors]
    a, b, c = (
        memory(use, {kind: product.axes(kind) for kind in kinds}) if use is not None else UNKNOWN
        for use, kinds in zip(
            (*uses, final_store(function, product.store)), ("ik", "jk", "ij"), strict=True
        )
    )
    a, b = (
        replace(lies, computed=use is not factor)
        for lies, use, factor in zip((a, b), uses, factors, strict=True)
    )
    return a, b, c


def _normalised(
    sch: Schedule, block: SBlockRV, product: SumOfProducts,
    lies: tuple[Memory, Memory, Memory], prologues: tuple[Prologue | None, Prologue | None],
) -> Product:  # fmt: skip
    kinds = product.kinds
    for factor in (product.first, product.second):
        sch.reindex(block, ("read", _position(sch, block, factor.source)))
    c = sch.reindex(block, ("write", 0))
    _hide_places(sch, block)
    # Their axes are those that the copies have: `reindex` leaves out one of length 1 within a sum.
    used = [_axes_of(sch, block, region) for region in _regions(sch, block)]
    for inside, form in zip(used, ("i", "j", "ij"), strict=True):
        if not all((kind, True) in zip(kinds, inside, strict=True) for kind in form):
            raise product.nest.refusal(
                "has an axis of length 1 that is no index of its own: copy what it is an index of,"
                " as `prepared` does"
            )
    if all(is_number(axis.dom.extent, 1) for axis in product.axes("k")):
        # A sum of one product would become none: it gets a second one, of zeros.
        longer = [kind == "k" and a and b for kind, a, b in zip(kinds, *used[:2], strict=True)]
        if not any(longer):
            raise product.nest.refusal(
                "sums one product only, of elements whose places its loop is no plain part of: copy"
                " the factors, as `prepared` does"
            )
        sch.pad_einsum(block, [2 if here else 1 for here in longer])
    extents = [axis.dom.extent for axis in sch.get(block).iter_vars]
    for end, form, inside in zip(
        (("read", 0), ("read", 1), ("write", 0)), ("sik", "sjk", "sij"), used, strict=True
    ):
        sch.transform_layout(block, end, _fused(extents, kinds, form, inside))
    sch.transform_block_layout(block, _fused(extents, kinds, "sijk", [True] * len(kinds)))
    found = sch.get(block)
    s, i, j, k = (plain(axis.dom.extent) for axis in found.iter_vars)
    types = tuple(str(region.source.dtype) for region in (*found.reads, *found.writes))
    a, b = (_writer(sch, block, read) for read in (0, 1))
    batches = plain(found.reads[0].source.shape[0]), plain(found.reads[1].source.shape[0])
    buffers = product.first.source, product.second.source, product.store.buffer
    x, y, z = (str(buffer.name) for buffer in buffers)
    return Product(
        block, a, b, c, (s, i, j, k), batches, (types[0], types[1], types[2]), lies, prologues,
        (x, y, z),
    )  # fmt: skip


def _regions(sch: Schedule, block: SBlockRV) -> list[BufferRegion]:
    return [*sch.get(block).reads, *sch.get(block).writes]


def _axes_of(sch: Schedule, block: SBlockRV, region: BufferRegion) -> list[bool]:
    """Which of the block's axes a copy that `reindex` made has."""
    own = [variable for part in region.region for variable in undefined_vars(part.min)]
    return [any(axis.var.same_as(v) for v in own) for axis in sch.get(block).iter_vars]


def _position(sch: Schedule, block: SBlockRV, buffer: Buffer) -> int:
    reads = [region.source for region in sch.get(block).reads]
    return next(n for n, source in enumerate(reads) if source.same_as(buffer))


def _hide_places(sch: Schedule, block: SBlockRV) -> None:
    """Leave only the factors among what the block says to read.

    The copies that `reindex` made read the places at which a factor is gathered, not the block.
    """
    product = sch.get(block)
    read = buffers([product.body.value])
    stale = [n for n, region in enumerate(product.reads)
             if not any(region.source.same_as(buffer) for buffer in read)]  # fmt: skip
    if stale:
        sch.unsafe_hide_buffer_access(block, "read", stale)


def _writer(sch: Schedule, block: SBlockRV, read: int) -> SBlockRV:
    """The block that writes what `block` reads."""
    buffer = sch.get(block).reads[read].source
    producers: list[SBlockRV] = sch.get_producers(block)
    return next(
        producer
        for producer in producers
        if any(region.source.same_as(buffer) for region in sch.get(producer).writes)
    )


def _fused(
    extents: Sequence[Expr], kinds: Sequence[str], form: str, inside: Sequence[bool]
) -> tirx.IndexMap:
    """The index map that fuses the axes of each kind, outermost first.

    TVM takes a sum of axes of length 1 for zero: they are left out, but for one that stands alone.
    """
    units = [is_number(extent, 1) for extent in extents]
    old: list[Expr] = []
    new: dict[str, Expr] = {}
    for extent, kind, here, unit in zip(extents, kinds, inside, units, strict=True):
        if not here:
            continue
        old.append(tirx.Var(f"i{len(old)}", extent.ty))
        alone = (kind, False) not in zip(kinds, units, strict=True)
        if not unit:
            new[kind] = new[kind] * extent + old[-1] if kind in new else old[-1]
        elif alone and kind not in new:
            new[kind] = old[-1]
    zero = tirx.IntImm(extents[0].ty, 0)
    return tirx.IndexMap(old, [new.get(kind, zero) for kind in form], None)


@contextmanager
def _refusal(nest: Nest) -> Iterator[None]:
    """What TVM refuses, with the block's name."""
    with tvm_refusal(f"block `{nest.name}`", ScheduleError):
        yield
