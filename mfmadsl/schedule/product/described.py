"""Products that the modules of scaled and of sparse instructions describe: their own workloads.

A and B alone do not say what is multiplied: a scaled product has a power of two for each group of
k, a sparse one an index that tells which elements of A are stored. Such a sum is recognised by
being written as the workload of a module is, alone or in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import tvm_ffi
from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import Buffer, BufferStore, Expr, IterVar, PrimFunc

from mfmadsl.language import library
from mfmadsl.model import Intrinsic
from mfmadsl.passes.tir.expression import constant
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.product.added_nest import again, block_of, renamed_block
from mfmadsl.schedule.product.nest import Nest, buffers, check_plain, is_sum, nests, same

_INDEX_BITS = 2  # of each stored element of a sparse A (CDNA3 ISA, 7.4.2)


@dataclass(frozen=True)
class Form:
    """The products that an instruction describes, with B as K x N or, transposed, as N x K."""

    intrinsic: Intrinsic
    b_transposed: bool = True

    @property
    def kind(self) -> str:
        """What is said of its operands: they are scaled, or A is sparse."""
        return "sparse" if self.intrinsic.sparse else "scaled"

    @property
    def types(self) -> tuple[str, str]:
        """The types of the elements of A and B."""
        return self.intrinsic.a.type.name, self.intrinsic.b.type.name

    @property
    def columns(self) -> Mapping[str, tuple[int, Fraction]]:
        """What is read, by the names of modules: rows of C (0) or its columns (1), and how many
        elements of a row each k takes."""
        a, b = self.intrinsic.a.type.bits, self.intrinsic.b.type.bits
        if self.intrinsic.sparse:
            stored = Fraction(1, 2)
            index = stored * Fraction(_INDEX_BITS, 8)
            return {"INDEX": (0, index), "A": (0, stored), "B": (1, Fraction(1))}
        scale = Fraction(1, group_of(self.intrinsic))
        return {
            "A": (0, Fraction(a, 8)), "SCALE_A": (0, scale),
            "B": (1, Fraction(b, 8)), "SCALE_B": (1, scale),
        }  # fmt: skip

    def workload(self, extents: tuple[int, int, int]) -> PrimFunc:
        """C[m, n] of extents M, N and K."""
        function: PrimFunc = load_intrinsic(self.intrinsic).matmul(*extents, self.b_transposed)
        return function

    def takes(self, intrinsic: Intrinsic) -> bool:
        """Whether another instruction describes the same products."""
        return _described(intrinsic) and _key(intrinsic) == _key(self.intrinsic)


@dataclass(frozen=True)
class DescribedProduct:
    """A sum of a function that is written as the workload of a module.

    `reads` are its buffers by the names that modules have, in the order in which the block reads
    them, and `result` is C; `extents` are s, M, N and K, and `in_batches` if buffers have an axis
    for s.
    """

    function: PrimFunc
    nest: Nest
    form: Form
    reads: Mapping[str, Buffer]
    result: Buffer
    extents: tuple[int, int, int, int]
    in_batches: bool


def group_of(intrinsic: Intrinsic) -> int:
    """The elements along k that share a scale."""
    return intrinsic.k // intrinsic.scales[0].layout.columns


def described_intrinsics(form: Form) -> list[Intrinsic]:
    """The instructions of the library that describe the products of a form."""
    return [e for e in library().values() if isinstance(e, Intrinsic) and form.takes(e)]


def forms(sparse: bool) -> list[Form]:
    """The forms of scaled products, or of sparse ones, that the library has."""
    found: dict[object, Form] = {}
    for each in library().values():
        if isinstance(each, Intrinsic) and _described(each) and each.sparse == sparse:
            # Bits below eight are packed along k, and scaled rows lie together in any case.
            for transposed in (True, False) if sparse else (True,):
                found.setdefault((_key(each), transposed), Form(each, transposed))
    return list(found.values())


def described_types(sparse: bool, arch: str | None = None) -> list[tuple[str, str]]:
    """The types of A and B that scaled or sparse instructions take, of all chips or of one."""
    found = [
        form.types
        for form in forms(sparse)
        if arch is None or any(arch in each.chips for each in described_intrinsics(form))
    ]
    return list(dict.fromkeys(found))


def described_product(function: PrimFunc) -> DescribedProduct | None:
    """The first sum of a function that is written as the workload of a module.

    Raises ScheduleError, with the name of the block, if it is, but not once for each place.
    """
    for nest in nests(function):
        if is_sum(nest) and (found := _found(function, nest)) is not None:
            return found
    return None


def _described(intrinsic: Intrinsic) -> bool:
    return bool(intrinsic.scales) or intrinsic.sparse


def _key(intrinsic: Intrinsic) -> object:
    return (
        intrinsic.sparse, intrinsic.a.type, intrinsic.b.type, intrinsic.c.type,
        group_of(intrinsic) if intrinsic.scales else None,
    )  # fmt: skip


def _found(function: PrimFunc, nest: Nest) -> DescribedProduct | None:
    extents = [constant(axis.dom.extent) for axis in nest.block.iter_vars]
    if len(extents) not in (3, 4) or not isinstance(nest.block.body, tirx.BufferStore):
        return None
    block = renamed_block(nest, "C", {})
    read, results = ([region.source for region in each] for each in (block.reads, block.writes))
    if len(read) not in (3, 4) or None in extents or len(results) != 1:
        return None
    if any(len(buffer.shape) != len(extents) - 1 for buffer in (*read, *results)):
        return None
    own = plain_block(nest)
    s, m, n, k = (extent or 0 for extent in (*([1] if len(extents) == 3 else []), *extents))
    for form in forms(sparse=len(read) == 3):
        if not _may_be(form, read, k):
            continue
        workload = form.workload((m, n, k))
        if len(extents) == 4:
            workload = in_batches(workload, s)
        (other,) = nests(workload)
        described = plain_block(other)
        alike = tvm_ffi.structural_equal(own, described, map_free_vars=True)
        pairs = zip((*own.reads, *own.writes), (*described.reads, *described.writes), strict=True)
        if alike and all(same(x.source.shape, y.source.shape) for x, y in pairs):
            check_plain(nest)
            reads = dict(zip(form.columns, read, strict=True))
            whole = s, m, n, k
            return DescribedProduct(
                function, nest, form, reads, results[0], whole, len(extents) == 4
            )
    return None


def _may_be(form: Form, read: list[Buffer], k: int) -> bool:
    """Whether the types of the elements fit, or the bits that are packed along k."""
    intrinsic = form.intrinsic
    by_name = dict(zip(form.columns, read, strict=True))
    if intrinsic.sparse:
        types = intrinsic.a.type.dtype, intrinsic.b.type.dtype
        return (str(by_name["A"].dtype), str(by_name["B"].dtype)) == types
    return all(
        constant(by_name[name].shape[-1]) == k * form.columns[name][1] for name in ("A", "B")
    )


def plain_block(nest: Nest) -> SBlock:
    """The block under one name for all, which says to access what it does.

    Its buffers lie as they do, but do not say so twice: some of TVM's functions give buffers a
    `layout` beside strides, and some do not.
    """
    own = {
        each: tirx.decl_buffer(
            each.shape, each.dtype, each.name, strides=each.strides, scope=each.scope(),
            elem_offset=each.elem_offset, layout=None,
        )
        for each in {nest.store.buffer, *buffers([nest.block.body])}
    }  # fmt: skip
    return renamed_block(nest, "C", own)


def in_batches(workload: PrimFunc, count: int) -> PrimFunc:
    """The workload for so many matrices of each kind, s being the first axis of all."""
    (nest,) = nests(workload)
    more = {
        buffer: tirx.decl_buffer((count, *buffer.shape), buffer.dtype, str(buffer.name))
        for buffer in workload.params
    }
    (axis,) = axes_of((count,))
    own = IterVar(axis.dom, tirx.Var("v_s", "int32"), IterVar.DataPar)

    def load(found: TensorLoad) -> Expr:
        return tirx.BufferLoad(more[found.source], [own.var, *found.indices])

    def store(found: BufferStore) -> BufferStore:
        value = mapped(found.value, (TensorLoad, load))
        return tirx.BufferStore(more[found.buffer], value, [own.var, *found.indices])

    init = nest.block.init
    assert isinstance(init, tirx.BufferStore)
    axes = [own, *nest.block.iter_vars]
    block = block_of(nest.name, axes, store(nest.store), store(init), nest.block.annotations)
    realize = SBlockRealize([axis.var, *nest.realize.iter_values], True, block)
    loop = tirx.For(axis.var, 0, count, tirx.ForKind.SERIAL, again(nest.loops, realize))
    assert isinstance(workload.body, SBlockRealize)
    root = workload.body.block
    body = SBlock([], root.reads, root.writes, root.name_hint, loop)
    return PrimFunc(
        [more[buffer] for buffer in workload.params], SBlockRealize([], True, body),
        workload.ret_type, attrs=workload.attrs,
    )  # fmt: skip


def axes_of(shape: Sequence[Expr | int]) -> Iterator[IterVar]:
    """An axis for each extent, from zero."""
    names = "ijl" if len(shape) <= 3 else [f"i{n}" for n in range(len(shape))]
    for name, extent in zip(names, shape, strict=False):
        dtype = "int32" if isinstance(extent, int) else str(extent.ty.dtype)
        domain = Range.from_min_extent(tirx.IntImm(dtype, 0), extent)
        yield IterVar(domain, tirx.Var(name, dtype), IterVar.DataPar)
