"""Naive: two products and a softmax, each a kernel of its own, with what they make in memory."""

from __future__ import annotations

from tvm import te
from tvm.s_tir import Schedule
from tvm.tirx import Expr, PrimFunc, const, exp

from examples.attention.size import Size
from mfmadsl.schedule import schedule_gemm

LANES = 64


def workload(size: Size) -> PrimFunc:
    """Attention in steps, each of which stores what it makes."""
    heads, queries, keys, depth = size.heads, size.queries, size.keys, size.depth
    q, k, v = (
        te.placeholder((1, heads, length, depth), "float16", name)
        for name, length in (("Q", queries), ("K", keys), ("V", keys))
    )
    shape = (1, heads, queries, keys)
    d, *along = (te.reduce_axis((0, extent)) for extent in (depth, keys, keys, keys))

    def product(x: Expr, y: Expr, over: te.IterVar) -> Expr:
        return te.sum(x.astype("float32") * y.astype("float32"), axis=[over])

    s = te.compute(shape, lambda b, h, i, j: product(q[b, h, i, d], k[b, h, j, d], d), "S")
    x = te.compute(shape, lambda *at: s[at] * const(depth**-0.5, "float32"), "X")
    largest = te.compute(
        shape[:3], lambda *at: te.max(x[(*at, along[0])], axis=[along[0]]), "largest"
    )
    e = te.compute(shape, lambda *at: exp(x[at] - largest[at[:3]]), "E")
    total = te.compute(shape[:3], lambda *at: te.sum(e[(*at, along[1])], axis=[along[1]]), "total")
    p = te.compute(shape, lambda *at: (e[at] / total[at[:3]]).astype("float16"), "P")
    t = te.compute(
        (1, heads, queries, depth),
        lambda b, h, i, c: product(p[b, h, i, along[2]], v[b, h, along[2], c], along[2]),
        "T",
    )
    o = te.compute(t.shape, lambda *at: t[at].astype("float16"), "O")
    return te.create_prim_func([q, k, v, o])


def schedule(size: Size, arch: str) -> Schedule:
    """Three kernels: `schedule_gemm` makes the first and the last."""
    sch = Schedule(workload(size))
    softmax(sch)
    schedule_gemm(sch, sch.get_sblock("S"), arch=arch)
    schedule_gemm(sch, sch.get_sblock("T"), arch=arch)
    return sch


def softmax(sch: Schedule) -> None:
    """A row for each workgroup of one wave, whose lanes go along it together."""
    sch.compute_inline(sch.get_sblock("E"))
    *rows, keys = sch.get_loops(sch.get_sblock("P"))
    row = sch.fuse(*rows)
    sch.bind(row, "blockIdx.x")
    _, lane = sch.split(keys, [None, LANES])
    sch.bind(lane, "threadIdx.x")
    for name in ("total", "largest"):
        block = sch.get_sblock(name)
        sch.set_scope(block, 0, "shared")
        sch.compute_at(block, row, preserve_unit_loops=True)
        _, lane = sch.split(sch.get_loops(block)[-1], [None, LANES])
        sch.bind(lane, "threadIdx.x")
