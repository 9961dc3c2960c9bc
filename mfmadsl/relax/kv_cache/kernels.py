"""A function of TVM's KV cache in which a launch takes a kernel of ours, or TVM's own where queries
and keys are embedded there, or pages lie where ours do not reach."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tvm import tirx
from tvm.s_tir import SBlockRealize
from tvm.tirx import Buffer, Expr, PrimFunc, Var

from mfmadsl.model import Architecture, AttentionTiling, architecture
from mfmadsl.passes.main_loop.moves.address import SPAN_LIMIT
from mfmadsl.passes.tir.block import with_parts, with_root
from mfmadsl.passes.tir.expression import bytes_of, scope_of, substitute
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.relax.kv_cache.form import CacheAttention, CacheKind
from mfmadsl.relax.kv_cache.workload import workload
from mfmadsl.schedule.flash_attention.schedule import attention_schedule, attention_tiling
from mfmadsl.schedule.product.cases import of_cases

_MOST_BATCHES = (1 << 31) - 2  # TVM's own kernel is the case behind it
_FEW_BATCHES = (4, 16)
"""Up to how many batches there are kernels in which more workgroups share the keys of one than in
that for as many as do not give each compute unit some."""

_ALIGNED = 8  # elements, of which a lane loads so many at a time
_WAVES = 4  # for each compute unit
_MOST_PARTS = 64


@dataclass(frozen=True)
class CacheKernels:
    """The function, ready to be lowered, and the kernels of ours that a launch chooses among: up to
    how many batches each is, and its tiling. The last one is for any more."""

    function: PrimFunc
    cases: tuple[tuple[int, AttentionTiling], ...]


def cache_kernels(found: CacheAttention, arch: str) -> CacheKernels:
    """The kernels of an attention of the cache.

    Raises ScheduleError for types and sizes that `attention_schedule` has no kernel for.
    """
    own = workload(found)
    tiling = attention_tiling(own, arch)
    cases = _cases(found, tiling, architecture(arch))
    functions = [
        _with_small_workspaces(_in_place(attention_schedule(own, arch, case).mod["main"], found),
                               found, limit)
        for limit, case in cases
    ]  # fmt: skip
    limits = [[limit] for limit, _ in cases]
    joined = of_cases([*functions, found.function], _batches(found), limits, _is_ours(found))
    return CacheKernels(joined.with_attr("tirx.is_scheduled", True), tuple(cases))


def _cases(
    found: CacheAttention, tiling: AttentionTiling, chip: Architecture
) -> list[tuple[int, AttentionTiling]]:
    """(up to how many batches, the tiling for so many)."""
    whole = (_MOST_BATCHES, replace(tiling, splits=1))
    if found.kind is not CacheKind.DECODE:
        return [whole]
    heads = found.extents("pages")[2]
    assert heads is not None
    most = _WAVES * chip.compute_units // (2 * heads * tiling.waves)
    few = () if found.slides else _FEW_BATCHES
    cases = []
    for limit in sorted({each for each in (*few, most) if 0 < each <= most}):
        waves = -(-limit // 2) * heads * tiling.waves  # of half as many batches
        parts = min(_MOST_PARTS, _WAVES * chip.compute_units // waves)
        if parts > 1:
            cases.append((limit, replace(tiling, splits=parts)))
    return [*cases, whole]


def _batches(found: CacheAttention) -> Expr:
    """What tells the cases apart."""
    one = tirx.const(1, "int32")
    if found.kind is not CacheKind.DECODE:
        return one
    return tirx.max(tirx.Cast("int32", found.array("q").shape[0]), one)


def _is_ours(found: CacheAttention) -> Expr:
    """Whether a launch is one for kernels of ours: TVM's embed queries and keys, and take pages
    from anywhere."""
    conditions: list[Expr] = [tirx.const(1, "bool")]
    if found.has("rotary_mode"):
        conditions.append(tirx.NE(found.given("rotary_mode"), tirx.const(1, "int32")))
    if found.has("pages"):
        pages = found.array("pages")
        offset = pages.elem_offset
        whole = tirx.floormod(offset, tirx.const(_ALIGNED, str(offset.ty.dtype)))
        conditions.append(tirx.EQ(whole, tirx.const(0, str(offset.ty.dtype))))
        conditions.append(bytes_of(pages) < tirx.const(SPAN_LIMIT, "int64"))
    every: Expr = tirx.all(*conditions)
    return every


def _in_place(own: PrimFunc, found: CacheAttention) -> PrimFunc:
    """A function of the same parameters, of which it takes the arrays where they are in memory."""
    theirs = found.function.params
    places = {a.__chandle__(): b for a, b in zip(own.params, theirs, strict=True)}
    body = mapped(own.body, (Var, lambda v: places.get(v.__chandle__(), v)))
    return found.function.with_body(body)


def _with_small_workspaces(function: PrimFunc, found: CacheAttention, batches: int) -> PrimFunc:
    """The function with workspaces for so many batches at most: a launch allocates those of all
    cases."""
    assert isinstance(function.body, SBlockRealize)
    root = function.body.block
    symbol = found.array("q").shape[0]
    if batches == _MOST_BATCHES or not isinstance(symbol, Var):
        return function
    most = tirx.min(symbol, tirx.const(batches, str(symbol.ty.dtype)))
    own: dict[int, Buffer] = {}
    for buffer in root.alloc_buffers:
        if scope_of(buffer) == "global":
            shape = [substitute(extent, {symbol: most}) for extent in buffer.shape]
            own[buffer.__chandle__()] = tirx.decl_buffer(shape, buffer.dtype, buffer.name)
    body = mapped(root.body, (Var, lambda v: own.get(v.__chandle__(), v)))
    allocated = [own.get(buffer.__chandle__(), buffer) for buffer in root.alloc_buffers]
    return with_root(function, with_parts(root, body=body, allocated=allocated))
