"""Step 10: two consumers. A pair of CTAs computes 512 x 256, as two products with the same B.

Two MMA warps multiply a stage's two tiles of A with its one tile of B, each into sums of its own,
which a warpgroup of its own writes back. So three loaded tiles do what took four before, and all
512 columns of tensor memory are in use.

The barriers, as in step 9, but:
    tma2mma: both MMA warps wait for a stage.
    mma2tma: both MMA warps give a stage back.
    mma2ld, ld2mma: one for each consumer.
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

PAIR = 2  # CTAs in a cluster
BOTH = 0b11  # a mask of them
STAGES = 4
CONSUMERS = 2  # so many warpgroups write back; the next one has the warps that follow
MMA_WARPS, TMA_WARP = CONSUMERS, 2  # the first warps, one for each consumer, and the one after them
CHUNK = 64  # columns that are written back at a time


def hgemm_v10(M: int, N: int, K: int, *, sms: int = SMS) -> PrimFunc:
    """C = A x B^T on `sms` CTAs. M is a multiple of 512, N of 256, K of 64.

    Raises:
        ValueError: other sizes, or SMs that do not make pairs.
    """
    pair_m, pair_n = PAIR * TILE_M, PAIR * TILE_N
    both_m = CONSUMERS * pair_m
    check("hgemm_v10", M, N, K, tile_m=both_m, tile_n=pair_n)
    check_sms("hgemm_v10", sms, cluster=PAIR)
    steps = K // TILE_K
    stage_bytes = PAIR * (CONSUMERS * TILE_M + TILE_N) * TILE_K * HALF_BYTES

    @T.prim_func
    def kernel(
        A: T.Buffer((M, K), "float16"),
        B: T.Buffer((N, K), "float16"),
        C: T.Buffer((M, N), "float16"),
    ):
        T.device_entry()
        cluster = T.cluster_id([sms // PAIR])
        rank = T.cta_id_in_cluster([PAIR])
        warpgroup = T.warpgroup_id([CONSUMERS + 1])
        warp = T.warp_id_in_wg([4])
        lane = T.lane_id([32])

        pool = T.SMEMPool()
        a_tiles = pool.alloc_tcgen05_mma_AB((STAGES, CONSUMERS, TILE_M, TILE_K), "float16")
        b_tiles = pool.alloc_tcgen05_mma_AB((STAGES, TILE_N, TILE_K), "float16")
        c_chunks = pool.alloc_tcgen05_mma_AB((CONSUMERS, TILE_M, CHUNK), "float16")
        tma2mma = TMABar(pool, STAGES)
        mma2tma = TCGen05Bar(pool, STAGES)
        mma2ld = TCGen05Bar(pool, CONSUMERS)
        ld2mma = MBarrier(pool, CONSUMERS)
        tensor_memory = T.TMEMPool(pool, cta_group=PAIR)
        sums = tensor_memory.alloc((TILE_M, CONSUMERS * pair_n), "float32")
        pool.commit()
        tma2mma.init(1)
        mma2tma.init(CONSUMERS)
        mma2ld.init(1)
        ld2mma.init(PAIR * 128)
        tensor_memory.commit()
        T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cluster_sync()
        loaded_by_pair = tma2mma.remote_view(0)

        tile = ClusterPersistentScheduler2D(
            "tile", num_m_tiles=M // both_m, num_n_tiles=N // pair_n, num_clusters=sms // PAIR,
            l2_group_size=ROWS_IN_L2,
        )  # fmt: skip
        tile.init(cluster)
        # This CTA's rows for the first consumer; those for the second one are `pair_m` further.
        m = T.meta_var(tile.m_idx * both_m + rank * TILE_M)
        n = T.meta_var(tile.n_idx * pair_n)

        if warpgroup < CONSUMERS:
            full = PipelineState(1, 0)
            fragment = Fragment(CHUNK)
            while tile.valid():
                mma2ld.wait(warpgroup, full.phase)
                full.advance()
                T.ptx.tcgen05.fence__after_thread_sync()
                for chunk in T.unroll(pair_n // CHUNK):
                    fragment.load(sums, warpgroup * pair_n + chunk * CHUNK, CHUNK)
                    if chunk == pair_n // CHUNK - 1:
                        T.ptx.tcgen05.fence__before_thread_sync()
                        ld2mma.arrive(warpgroup, remote=0)

                    if warp == 0:
                        if T.cuda.elect_sync():  # the last store has read the chunk
                            T.ptx.cp.async_.bulk.wait_group.read(0)
                    T.cuda.warpgroup_sync(1 + warpgroup)
                    Tx.copy(c_chunks[warpgroup, warp * 32 + lane, :], fragment.halves[:])
                    T.ptx.fence.proxy.async_.shared__cta()
                    T.cuda.warpgroup_sync(1 + warpgroup)
                    if warp == 0:
                        if T.cuda.elect_sync():
                            row = T.meta_var(m + warpgroup * pair_m)
                            Tx.copy_async(
                                C[row : row + TILE_M, n + chunk * CHUNK : n + (chunk + 1) * CHUNK],
                                c_chunks[warpgroup, :, :],
                                dispatch="tma_auto",
                            )
                            T.ptx.cp.async_.bulk.commit_group()
                tile.next_tile()
            if warp == 0:
                if T.cuda.elect_sync():
                    T.ptx.cp.async_.bulk.wait_group(0)
        elif warp == TMA_WARP:
            if T.cuda.elect_sync():
                fill = PipelineState(STAGES, 1)  # a stage that was never filled counts as free
                while tile.valid():
                    for step in range(steps):
                        k = T.meta_var(step * TILE_K)
                        half = T.meta_var(n + rank * TILE_N)  # this CTA's rows of B
                        mma2tma.wait(fill.stage, fill.phase)
                        if rank == 0:
                            tma2mma.arrive(fill.stage, stage_bytes)  # of both CTAs
                        for consumer in T.unroll(CONSUMERS):
                            row = T.meta_var(m + consumer * pair_m)
                            Tx.copy_async(
                                a_tiles[fill.stage, consumer, :, :],
                                A[row : row + TILE_M, k : k + TILE_K],
                                dispatch="tma_auto",
                                cta_group=PAIR,
                                mbar=loaded_by_pair.ptr_to([fill.stage]),
                            )
                        Tx.copy_async(
                            b_tiles[fill.stage, :, :],
                            B[half : half + TILE_N, k : k + TILE_K],
                            dispatch="tma_auto",
                            cta_group=PAIR,
                            mbar=loaded_by_pair.ptr_to([fill.stage]),
                        )
                        fill.advance()
                    tile.next_tile()
        elif (warp < MMA_WARPS) & (rank == 0):
            if T.cuda.elect_sync():
                use = PipelineState(STAGES, 0)
                empty = PipelineState(1, 1)  # sums that were never written count as read
                while tile.valid():
                    ld2mma.wait(warp, empty.phase)
                    empty.advance()
                    T.ptx.tcgen05.fence__after_thread_sync()
                    for step in range(steps):
                        tma2mma.wait(use.stage, use.phase)
                        Tx.gemm_async(
                            sums[:, warp * pair_n : (warp + 1) * pair_n],
                            a_tiles[use.stage, warp, :, :],
                            b_tiles[use.stage, :, :],
                            accum=step != 0,
                            dispatch="tcgen05",
                            cta_group=PAIR,
                        )
                        mma2tma.arrive(use.stage, cta_group=PAIR, cta_mask=BOTH)
                        use.advance()
                    mma2ld.arrive(warp, cta_group=PAIR, cta_mask=BOTH)
                    tile.next_tile()
        T.cuda.cluster_sync()  # no CTA leaves while the other may still arrive at its barriers
        tensor_memory.dealloc()

    return kernel
