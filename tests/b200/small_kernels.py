"""Kernels of a few statements: with one mistake, or with what the interpreter does not know."""

from __future__ import annotations

from tvm.backend.cuda.lang.pipeline import MBarrier, TCGen05Bar, TMABar
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx import PrimFunc
from tvm.tirx.layout import S, TCol, TileLayout, TLane, tid_in_wg

ROWS, COLUMNS = 128, 64


def waits_for_nobody(parity: int) -> PrimFunc:
    """A wait for a barrier at which nobody arrives."""

    @T.prim_func
    def kernel(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        warp = T.warp_id_in_wg([4])
        T.lane_id([32])
        pool = T.SMEMPool()
        barrier = MBarrier(pool, 1)
        pool.commit()
        barrier.init(1)
        T.cuda.cta_sync()
        if warp == 2:
            barrier.wait(0, parity)

    return kernel


def arrives_without_initialisation() -> PrimFunc:
    """An arrival at what is no barrier."""

    @T.prim_func
    def kernel(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        lane = T.lane_id([32])
        pool = T.SMEMPool()
        barrier = MBarrier(pool, 1)
        pool.commit()
        if lane == 0:
            barrier.arrive(0)

    return kernel


def overwrites_a_barrier() -> PrimFunc:
    """A tile in the same shared memory as a barrier."""

    @T.prim_func
    def kernel(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        pool = T.SMEMPool()
        barrier = MBarrier(pool, 1)
        pool.move_base_to(0)
        tile = pool.alloc((ROWS, COLUMNS), "float16")
        pool.commit()
        barrier.init(128)
        T.cuda.cta_sync()
        Tx.cta.copy(tile[:, :], A[:, :])
        T.cuda.cta_sync()
        barrier.arrive(0)

    return kernel


def synchronises_half_a_warp(lanes: int) -> PrimFunc:
    """A barrier of the CTA that only some threads of each warp reach."""

    @T.prim_func
    def kernel(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        lane = T.lane_id([32])
        if lane < lanes:
            T.cuda.cta_sync()

    return kernel


def shares_a_barrier() -> PrimFunc:
    """Barrier 0 with 128 threads, while others are at it with all 256."""

    @T.prim_func
    def kernel(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        warpgroup = T.warpgroup_id([2])
        if warpgroup == 0:
            T.cuda.warpgroup_sync(0)
        T.cuda.cta_sync()

    return kernel


def columns_of_tensor_memory(columns: int, times: int) -> PrimFunc:
    """Allocates so many columns, one time or more, and frees none."""

    @T.prim_func
    def kernel(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        warp = T.warp_id_in_wg([4])
        pool = T.SMEMPool()
        where = pool.alloc((1,), "uint32")
        pool.commit()
        if warp == 0:
            for _ in range(times):
                T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](
                    T.address_of(where[0]), T.uint32(columns)
                )

    return kernel


def arrives_with_a_predicate(lanes: int, count: int) -> PrimFunc:
    """Some lanes of each warp arrive, and all wait for `count` arrivals."""

    @T.prim_func
    def kernel(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        lane = T.lane_id([32])
        pool = T.SMEMPool()
        barrier = MBarrier(pool, 1)
        pool.commit()
        barrier.init(count)
        T.cuda.cta_sync()
        barrier.arrive(0, pred=lane < lanes)
        barrier.wait(0, 0)

    return kernel


def asks_for_registers(registers: int) -> PrimFunc:
    """`setmaxnreg`."""

    @T.prim_func
    def kernel(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        T.ptx.setmaxnreg.dec.sync.aligned.u32(T.uint32(registers))

    return kernel


def places() -> PrimFunc:
    """Each thread writes where it is, as all the ways to ask for it tell: 6 CTAs of 256 threads."""

    @T.prim_func
    def kernel(C: T.Buffer((6, 256, 8), "float32")):
        T.device_entry()
        x, y = T.cta_id([2, 3])
        warpgroup = T.warpgroup_id([2])
        warp_of_group = T.warp_id_in_wg([4])
        warp = T.warp_id([8])
        lane = T.lane_id([32])
        thread = T.thread_id([256])
        thread_of_group = T.thread_id_in_wg([128])
        found = T.alloc_local((8,), "float32")
        found[0] = T.Cast("float32", x)
        found[1] = T.Cast("float32", y)
        found[2] = T.Cast("float32", warpgroup)
        found[3] = T.Cast("float32", warp_of_group)
        found[4] = T.Cast("float32", warp)
        found[5] = T.Cast("float32", lane)
        found[6] = T.Cast("float32", thread)
        found[7] = T.Cast("float32", thread_of_group)
        Tx.copy(C[y * 2 + x, thread, :], found[:])

    return kernel


def places_in_clusters() -> PrimFunc:
    """Likewise for three clusters of two CTAs, of one warp of 32 threads each."""

    @T.prim_func
    def kernel(C: T.Buffer((6, 32, 2), "float32")):
        T.device_entry()
        cluster = T.cluster_id([3])
        rank = T.cta_id_in_cluster([2])
        T.warp_id([1])
        lane = T.lane_id([32])
        found = T.alloc_local((2,), "float32")
        found[0] = T.Cast("float32", cluster)
        found[1] = T.Cast("float32", rank)
        Tx.copy(C[cluster * 2 + rank, lane, :], found[:])

    return kernel


def one_tile(*, barrier: bool = True, load: bool = True, swizzled: bool = True) -> PrimFunc:
    """A product of one tile, whose tensor memory is where `tcgen05.alloc` says.

    Args:
        barrier: between the allocation and the use of its address.
        load: the operands, before they are multiplied.
        swizzled: the operands' layout.
    """
    mode = "auto" if swizzled else "none"

    @T.prim_func
    def kernel(
        A: T.Buffer((ROWS, COLUMNS), "float16"),
        B: T.Buffer((ROWS, COLUMNS), "float16"),
        C: T.Buffer((ROWS, ROWS), "float32"),
    ):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        warp = T.warp_id_in_wg([4])
        lane = T.lane_id([32])
        pool = T.SMEMPool()
        a_tile = pool.alloc_tcgen05_mma_AB((ROWS, COLUMNS), "float16", mode)
        b_tile = pool.alloc_tcgen05_mma_AB((ROWS, COLUMNS), "float16", mode)
        done = TCGen05Bar(pool, 1)
        where = pool.alloc((1,), "uint32")
        pool.commit()
        done.init(1)
        T.ptx.fence.mbarrier_init.release.cluster()
        if load:
            Tx.cta.copy(a_tile[:, :], A[:, :])
            Tx.cta.copy(b_tile[:, :], B[:, :])
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        if warp == 0:
            T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](
                T.address_of(where[0]), T.uint32(128)
            )
        if barrier:
            T.cuda.cta_sync()
        base: T.let = where[0]
        sums = T.decl_buffer(
            (ROWS, ROWS), "float32", scope="tmem", allocated_addr=base,
            layout=TileLayout(S[(ROWS, ROWS) : (1 @ TLane, 1 @ TCol)]),
        )  # fmt: skip
        if warp == 0:
            if T.cuda.elect_sync():
                Tx.gemm_async(
                    sums[:, :], a_tile[:, :], b_tile[:, :], accum=False, dispatch="tcgen05"
                )
                done.arrive(0)
        done.wait(0, 0)
        T.ptx.tcgen05.fence__after_thread_sync()
        registers = T.alloc_local((ROWS,), "float32")
        rows = registers.view(ROWS, ROWS, layout=TileLayout(S[(ROWS, ROWS) : (1 @ tid_in_wg, 1)]))
        Tx.wg.copy_async(rows[:, :], sums[:, :])
        T.ptx.tcgen05.wait__ld.sync.aligned()
        Tx.copy(C[warp * 32 + lane, :], registers[:])
        T.cuda.cta_sync()
        if warp == 0:
            T.ptx["tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned"]()
            T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](base, T.uint32(128))

    return kernel


def not_understood(what: str) -> PrimFunc:
    """Statements that the interpreter has no meaning for, behind a condition that never holds."""

    @T.prim_func
    def instruction(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        lane = T.lane_id([32])
        if lane == 32:
            T.cuda.thread_fence()

    @T.prim_func
    def modifier(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        lane = T.lane_id([32])
        pool = T.SMEMPool()
        barrier = MBarrier(pool, 1)
        pool.commit()
        if lane == 32:
            T.ptx.mbarrier.arrive.relaxed.cluster.shared.b64(barrier.ptr_to([0]), T.uint32(1))

    @T.prim_func
    def tile_operation(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        lane = T.lane_id([32])
        registers = T.alloc_local((8,), "float32")
        if lane == 32:
            Tx.add(registers[:], registers[:], registers[:])

    @T.prim_func
    def kind_of_loop(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        for _ in T.vectorized(4):
            T.cuda.cta_sync()

    @T.prim_func
    def multicast(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        lane = T.lane_id([32])
        pool = T.SMEMPool()
        tile = pool.alloc_tcgen05_mma_AB((ROWS, COLUMNS), "float16")
        loaded = TMABar(pool, 1)
        pool.commit()
        if lane == 32:
            Tx.copy_async(
                tile[:, :], A[:, :], dispatch="tma_auto", mbar=loaded.ptr_to([0]), cta_mask=3
            )

    @T.prim_func
    def scope(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        pool = T.SMEMPool()
        tile = pool.alloc((ROWS, COLUMNS), "float16")
        pool.commit()
        Tx.wg.copy(tile[:, :], A[:, :])

    @T.prim_func
    def expression(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        lane = T.lane_id([32])
        if T.exp(T.float32(lane)) < T.float32(0):
            T.cuda.cta_sync()

    @T.prim_func
    def memory(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        lane = T.lane_id([32])
        A[lane, 0] = T.float16(1)

    @T.prim_func
    def launch(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.lane_id([32])
        T.cuda.cta_sync()

    @T.prim_func
    def shared_memory(A: T.Buffer((ROWS, COLUMNS), "float16")):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        pool = T.SMEMPool()
        pool.alloc((227 * 1024 + 1,), "uint8")
        pool.commit()

    kernels = {
        "instruction": instruction,
        "modifier": modifier,
        "tile operation": tile_operation,
        "kind of loop": kind_of_loop,
        "multicast": multicast,
        "scope": scope,
        "expression": expression,
        "memory": memory,
        "launch": launch,
        "shared memory": shared_memory,
    }
    return kernels[what]
