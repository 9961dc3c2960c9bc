"""Which functions of a module are attentions of TVM's paged KV cache.

By their name nobody knows. TVM makes such a function once more, of the sizes that its parameters
have, and both have to be the same, statement by statement, but for what there is for rotary
embeddings: kernels of ours are for calls without them, so that it does not matter which they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.relax.frontend.nn.llm import kv_cache
from tvm.s_tir import SBlock
from tvm.target import Target
from tvm.tirx import Expr, PrimFunc, Var
from tvm.tirx.buffer import BufferType

from mfmadsl.passes.tir.expression import constant, name_of
from mfmadsl.passes.tir.walk import mapped, walk
from mfmadsl.relax.kv_cache.form import CacheAttention, CacheKind

_THREADS = (None, 512)  # of a workgroup at most: those of the target, or what a stated one may have
_REFUSALS = (ArithmeticError, AssertionError, TypeError, ValueError, RuntimeError)
"""What TVM raises for sizes that it has no function for."""

_Made: TypeAlias = Callable[[Target], PrimFunc]


def recognised(function: PrimFunc, target: Target) -> CacheAttention | None:
    """What a function of the cache is, or None for any other, also for a changed one."""
    given = _compared(function)
    for kind in CacheKind:
        found = CacheAttention(function, kind)
        if not _is_signature(found):
            continue
        for known, made in _candidates(found):
            if any(_is_same(given, made, each) for each in _targets(target)):
                return known
    return None


def looks_like_attention(function: PrimFunc) -> bool:
    """Whether a function is scheduled already, and takes what all attentions of the cache do:
    another one needs no look, and no line in a report."""
    names = [str(parameter.name) for parameter in function.params]
    return "tirx.is_scheduled" in (function.attrs or {}) and "sm_scale" in names


def _is_signature(found: CacheAttention) -> bool:
    """Whether the parameters may be those of a kind: as many arrays and numbers, in order."""
    parameters = found.function.params
    if len(parameters) != len(found.kind.value):
        return False
    numbers = {"causal": "int32", "rotary_mode": "int32"} | dict.fromkeys(
        ("rope_scale", "rope_theta", "sm_scale"), "float32"
    )
    for parameter, name in zip(parameters, found.kind.value, strict=True):
        is_array = isinstance(parameter.ty, BufferType)
        if is_array == (name in numbers) or (not is_array and str(parameter.ty) != numbers[name]):
            return False
    ranks = {"q": 3, "k": 3, "v": 3, "o": 3, "pages": 3 if found.kind is CacheKind.LATENT else 5}
    return all(
        len(found.array(name).shape) == rank for name, rank in ranks.items() if found.has(name)
    )


def _candidates(found: CacheAttention) -> Iterator[tuple[CacheAttention, _Made]]:
    """What a function with such parameters may be, and how TVM makes it."""
    dtype = str(found.array("q").dtype)
    _, heads, depth = found.extents("q")
    if heads is None or depth is None:
        return
    function, kind = found.function, found.kind
    if kind is CacheKind.RAGGED:
        (_, shared, columns) = found.extents("v")
        if _divides(shared, heads) and columns is not None:
            sizes = shared, heads, depth, columns, dtype
            yield found, lambda target: kv_cache._attention_prefill_ragged(*sizes, {}, target)
        return
    slides = len(found.array("lengths").shape) == 2
    place = found.extents("pages")[-2]
    if kind is CacheKind.LATENT:
        columns = found.extents("o")[-1]
        if place is not None and columns is not None and columns < depth:
            latent = heads, columns, depth - columns, dtype, slides
            known = CacheAttention(function, kind, slides)
            yield known, lambda target: kv_cache._attention_prefill_mla(*latent, target, place)
        return
    shared = found.extents("pages")[2]
    if place is None or not _divides(shared, heads):
        return
    if kind is CacheKind.DECODE:
        own = shared, heads, depth, dtype, slides
        known = CacheAttention(function, kind, slides)
        yield known, lambda target: kv_cache._attention_decode(*own, {}, target, place)
        return
    for window in _windows(function) if slides else (None,):
        known = CacheAttention(function, kind, slides, window)
        yield known, _prefill(shared, heads, depth, dtype, place, window)


def _divides(number: int | None, other: int) -> bool:
    return number is not None and number > 0 and other % number == 0


def _prefill(
    shared: int | None, heads: int, depth: int, dtype: str, place: int, window: int | None
) -> _Made:
    def made(target: Target) -> PrimFunc:
        sizes = shared, heads, depth, dtype, window is not None
        function: PrimFunc = kv_cache._attention_prefill(
            *sizes, {}, target, place, sliding_window_size=window or 0
        )
        return function

    return made


def _windows(function: PrimFunc) -> list[int]:
    """The numbers that something is subtracted from: one is the window, if there is one."""
    found: set[int] = set()

    def difference(node: tirx.Sub) -> None:
        number = constant(node.a)
        if number is not None and number > 0:
            found.add(number)

    walk(function.body, (tirx.Sub, difference))
    return sorted(found)


@lru_cache
def _targets(target: Target) -> tuple[Target, ...]:
    """Those that TVM may have made a function for: it only asks how many threads there may be."""
    stated = {"kind": "rocm", "mcpu": str(target.attrs.get("mcpu", ""))}
    return target, *(
        Target({**stated, "max_num_threads": n, "max_threads_per_block": n})
        for n in _THREADS if n is not None
    )  # fmt: skip


def _is_same(given: PrimFunc, made: _Made, target: Target) -> bool:
    try:
        other = made(target)
    except _REFUSALS:
        return False
    return bool(tvm_ffi.structural_equal(given, _compared(other)))


def _compared(function: PrimFunc) -> PrimFunc:
    """A function without its attributes, what it says of its accesses, which makes no difference to
    what it does, and what it does where `rotary_mode` is 1."""
    modes = [p for p in function.params if str(p.name) == "rotary_mode"]

    def plain(call: Call) -> Expr:
        return call.args[2] if modes and _is_rotated(call, modes[0]) else call

    def silent(block: SBlock) -> SBlock:
        return SBlock(
            block.iter_vars, [], [], block.name_hint, block.body, block.init, block.alloc_buffers,
            block.match_buffers, block.annotations,
        )  # fmt: skip

    body = mapped(function.body, (Call, plain), (SBlock, silent))
    return PrimFunc(function.params, body, function.ret_type)


def _is_rotated(call: Call, mode: Var) -> bool:
    """Whether a choice is made by the question if the mode is 1."""
    if name_of(call) != "if_then_else" or not isinstance(call.args[0], tirx.EQ):
        return False
    return bool(call.args[0].a.same_as(mode)) and constant(call.args[0].b) == 1
