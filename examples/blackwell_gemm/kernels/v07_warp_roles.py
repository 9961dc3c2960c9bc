"""Step 7: warps with roles, which wait for each other at four kinds of barrier.

Barriers:
    tma2mma: the TMA warp has loaded a stage; the MMA warp may multiply it.
    mma2tma: the MMAs have read a stage; the TMA warp may load it again.
    mma2ld: the MMAs of a tile have ended; the warpgroup may read its sums.
    ld2mma: the warpgroup has read a tile's sums; the MMA warp may begin the next tile.
"""

from __future__ import annotations

from tvm.backend.cuda.lang.pipeline import MBarrier, PipelineState, TCGen05Bar, TMABar
from tvm.backend.cuda.lang.tile_scheduler import ClusterPersistentScheduler2D
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx import PrimFunc

from examples.blackwell_gemm.kernels.fragment import Fragment
from examples.blackwell_gemm.kernels.problem import (
    HALF_BYTES,
    ROWS_IN_L2,
    SMS,
    TILE_K,
    TILE_M,
    TILE_N,
    check,
    check_sms,
)

WRITE_BACK = 0  # the warpgroup that writes back; the other one has the warps that follow
TMA_WARP, MMA_WARP = 0, 1


def hgemm_v7(M: int, N: int, K: int, *, sms: int = SMS) -> PrimFunc:
    """C = A x B^T on `sms` CTAs. M and N are multiples of 128, K of 64.

    Raises:
        ValueError: other sizes, or no SMs.
    """
    check("hgemm_v7", M, N, K)
    check_sms("hgemm_v7", sms)
    return warp_roles(M, N, K, sms=sms, stages=2)


def warp_roles(M: int, N: int, K: int, *, sms: int, stages: int) -> PrimFunc:
    """The kernel of this step and the next, which differ in the number of stages."""
    steps = K // TILE_K
    stage_bytes = (TILE_M + TILE_N) * TILE_K * HALF_BYTES

    @T.prim_func
    def kernel(
        A: T.Buffer((M, K), "float16"),
        B: T.Buffer((N, K), "float16"),
        C: T.Buffer((M, N), "float16"),
    ):
        T.device_entry()
        cta = T.cta_id([sms])
        warpgroup = T.warpgroup_id([2])
        warp = T.warp_id_in_wg([4])
        lane = T.lane_id([32])

        pool = T.SMEMPool()
        a_tiles = pool.alloc_tcgen05_mma_AB((stages, TILE_M, TILE_K), "float16")
        b_tiles = pool.alloc_tcgen05_mma_AB((stages, TILE_N, TILE_K), "float16")
        c_tile = pool.alloc_tcgen05_mma_AB((TILE_M, TILE_N), "float16")
        tma2mma = TMABar(pool, stages)
        mma2tma = TCGen05Bar(pool, stages)
        mma2ld = TCGen05Bar(pool, 1)
        ld2mma = MBarrier(pool, 1)
        tensor_memory = T.TMEMPool(pool)
        sums = tensor_memory.alloc((TILE_M, TILE_N), "float32")
        pool.commit()
        tma2mma.init(1)
        mma2tma.init(1)
        mma2ld.init(1)
        ld2mma.init(128)
        tensor_memory.commit()
        T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()

        # Each role goes over the same tiles by itself.
        tile = ClusterPersistentScheduler2D(
            "tile", num_m_tiles=M // TILE_M, num_n_tiles=N // TILE_N, num_clusters=sms,
            l2_group_size=ROWS_IN_L2,
        )  # fmt: skip
        tile.init(cta)
        m = T.meta_var(tile.m_idx * TILE_M)
        n = T.meta_var(tile.n_idx * TILE_N)

        if warpgroup == WRITE_BACK:
            full = PipelineState(1, 0)
            fragment = Fragment(TILE_N)
            while tile.valid():
                mma2ld.wait(0, full.phase)
                full.advance()
                T.ptx.tcgen05.fence__after_thread_sync()
                fragment.load(sums, 0, TILE_N)
                T.ptx.tcgen05.fence__before_thread_sync()
                ld2mma.arrive(0)

                if warp == 0:
                    if T.cuda.elect_sync():  # the last store has read `c_tile`
                        T.ptx.cp.async_.bulk.wait_group.read(0)
                T.cuda.warpgroup_sync(1)
                Tx.copy(c_tile[warp * 32 + lane, :], fragment.halves[:])
                T.ptx.fence.proxy.async_.shared__cta()
                T.cuda.warpgroup_sync(1)
                if warp == 0:
                    if T.cuda.elect_sync():
                        Tx.copy_async(
                            C[m : m + TILE_M, n : n + TILE_N], c_tile[:, :], dispatch="tma_auto"
                        )
                        T.ptx.cp.async_.bulk.commit_group()
                tile.next_tile()
            if warp == 0:
                if T.cuda.elect_sync():
                    T.ptx.cp.async_.bulk.wait_group(0)
        elif warp == TMA_WARP:
            if T.cuda.elect_sync():
                fill = PipelineState(stages, 1)  # a stage that was never filled counts as free
                while tile.valid():
                    for step in range(steps):
                        k = T.meta_var(step * TILE_K)
                        mma2tma.wait(fill.stage, fill.phase)
                        tma2mma.arrive(fill.stage, stage_bytes)
                        Tx.copy_async(
                            a_tiles[fill.stage, :, :],
                            A[m : m + TILE_M, k : k + TILE_K],
                            dispatch="tma_auto",
                            mbar=tma2mma.ptr_to([fill.stage]),
                        )
                        Tx.copy_async(
                            b_tiles[fill.stage, :, :],
                            B[n : n + TILE_N, k : k + TILE_K],
                            dispatch="tma_auto",
                            mbar=tma2mma.ptr_to([fill.stage]),
                        )
                        fill.advance()
                    tile.next_tile()
        elif warp == MMA_WARP:
            if T.cuda.elect_sync():
                use = PipelineState(stages, 0)
                empty = PipelineState(1, 1)  # sums that were never written count as read
                while tile.valid():
                    ld2mma.wait(0, empty.phase)
                    empty.advance()
                    T.ptx.tcgen05.fence__after_thread_sync()
                    for step in range(steps):
                        tma2mma.wait(use.stage, use.phase)
                        Tx.gemm_async(
                            sums[:, :],
                            a_tiles[use.stage, :, :],
                            b_tiles[use.stage, :, :],
                            accum=step != 0,
                            dispatch="tcgen05",
                        )
                        mma2tma.arrive(use.stage)
                        use.advance()
                    mma2ld.arrive(0)
                    tile.next_tile()
        T.cuda.cta_sync()
        tensor_memory.dealloc()

    return kernel
