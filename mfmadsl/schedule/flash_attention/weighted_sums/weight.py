"""Weights of a step, in the lanes that have the products that they are made of."""

from __future__ import annotations

from math import e, log2

from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Expr

from mfmadsl.passes.tir.expression import name_of
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.flash_attention.chain import at
from mfmadsl.schedule.flash_attention.described import at_places
from mfmadsl.schedule.flash_attention.elements import divides
from mfmadsl.schedule.flash_attention.loops import loops
from mfmadsl.schedule.flash_attention.softmax import exp2
from mfmadsl.schedule.flash_attention.wave import WavePlace
from mfmadsl.schedule.flash_attention.weighted_sums.cut import SumRegisters, SumsCut
from mfmadsl.schedule.product.nest import same


def make_weights(
    cut: SumsCut, place: WavePlace, held: SumRegisters, start: Expr, masked: bool
) -> None:
    """P of each sum, of the products of a step whose first key is `start`: the elements of a lane
    stay in it."""
    whole = cut.whole
    factors = whole.chain.second.b.layout.elements_per_lane
    with whole.lanes() as lane:
        for n, y in loops(whole.sizes.queries, whole.sizes.keys * whole.sums):
            element = tirx.floordiv(y, whole.sums), n, lane, tirx.floormod(y, whole.sums)
            own = [tirx.floordiv(y, factors), n, lane, tirx.floormod(y, factors)]
            for number, registers in enumerate(held.sums):
                weight = _weight(cut, place, held, start, element, masked, number)
                script.buffer_store(registers.b, weight.astype(cut.found.dtype), own)


def _weight(
    cut: SumsCut, place: WavePlace, held: SumRegisters, start: Expr,
    element: tuple[Expr, Expr, Expr, Expr], masked: bool, number: int,
) -> Expr:  # fmt: skip
    """A sum's weight at a place; zero where conditions say so, and behind the last key."""
    whole, (x, n, lane, r) = cut.whole, element
    axes = whole.found.axes
    row = at(whole.chain.row, lane=lane, register=r)
    key = start + whole.key_of(x * whole.chain.intrinsic.m + row)
    known = {axes.key.var: key, axes.row.var: whole.row(place, n, lane), **place.batch}
    known |= {
        product.variable: registers.c[x, n, lane, r]
        for product, registers in zip(cut.found.products, held.products, strict=True)
    }

    def held_read(load: TensorLoad) -> Expr:
        for read in whole.score.reads:
            if same(load, read.load):
                register = held.reads[read.name]
                return register[x, n, lane, r] if read.of_keys else register[n, lane, 0]
        return load

    def at_place(value: Expr) -> Expr:
        return at_places(mapped(value, (TensorLoad, held_read)), known)

    value = mapped(at_place(cut.weights.values[number]), (Call, _fast))
    conditions = [at_place(each) for each in cut.weights.conditions(axes, masked)]
    if masked and not divides(whole.tiling.keys, place.keys):
        conditions.append(key < place.keys)
    if not conditions:
        return value
    return tirx.Select(tirx.all(*conditions), value, tirx.const(0, "float32"))


def _fast(call: Call) -> Expr:
    """A power of e in few instructions, far more exact than a weight is after it is rounded."""
    if name_of(call) != "exp" or str(call.ty.dtype) != "float32":
        return call
    return exp2(call.args[0] * tirx.const(log2(e), "float32"))
