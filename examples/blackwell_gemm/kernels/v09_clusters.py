"""Step 9: clusters of two CTAs, whose tensor cores compute a tile of 256 x 256 together.

Each CTA loads half of A's rows and half of B's, and keeps half of the sums' rows in its tensor
memory; the leader, rank 0, issues the MMAs of both. So a byte of A and B that is loaded into shared
memory is multiplied twice as often as before.

The barriers reach over the pair:
    tma2mma: both CTAs' loads count their bytes at the leader's.
    mma2tma: the leader's commit arrives in both CTAs.
    mma2ld: likewise.
    ld2mma: the warpgroups of both CTAs arrive at the leader's.
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
WRITE_BACK = 0  # the warpgroup that writes back; the other one has the warps that follow
TMA_WARP, MMA_WARP = 0, 1
CHUNK = 64  # columns that are written back at a time


def hgemm_v9(M: int, N: int, K: int, *, sms: int = SMS) -> PrimFunc:
    """C = A x B^T on `sms` CTAs. M and N are multiples of 256, K of 64.

    Raises:
        ValueError: other sizes, or SMs that do not make pairs.
    """
    pair_m, pair_n = PAIR * TILE_M, PAIR * TILE_N
    check("hgemm_v9", M, N, K, tile_m=pair_m, tile_n=pair_n)
    check_sms("hgemm_v9", sms, cluster=PAIR)
    steps = K // TILE_K
    stage_bytes = PAIR * (TILE_M + TILE_N) * TILE_K * HALF_BYTES

    @T.prim_func
    def kernel(
        A: T.Buffer((M, K), "float16"),
        B: T.Buffer((N, K), "float16"),
        C: T.Buffer((M, N), "float16"),
    ):
        T.device_entry()
        cluster = T.cluster_id([sms // PAIR])
        rank = T.cta_id_in_cluster([PAIR])
        warpgroup = T.warpgroup_id([2])
        warp = T.warp_id_in_wg([4])
        lane = T.lane_id([32])

        pool = T.SMEMPool()
        a_tiles = pool.alloc_tcgen05_mma_AB((STAGES, TILE_M, TILE_K), "float16")
        b_tiles = pool.alloc_tcgen05_mma_AB((STAGES, TILE_N, TILE_K), "float16")
        c_chunk = pool.alloc_tcgen05_mma_AB((TILE_M, CHUNK), "float16")
        tma2mma = TMABar(pool, STAGES)
        mma2tma = TCGen05Bar(pool, STAGES)
        mma2ld = TCGen05Bar(pool, 1)
        ld2mma = MBarrier(pool, 1)
        tensor_memory = T.TMEMPool(pool, cta_group=PAIR)
        sums = tensor_memory.alloc((TILE_M, pair_n), "float32")
        pool.commit()
        tma2mma.init(1)
        mma2tma.init(1)
        mma2ld.init(1)
        ld2mma.init(PAIR * 128)
        tensor_memory.commit()
        T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cluster_sync()
        loaded_by_pair = tma2mma.remote_view(0)

        tile = ClusterPersistentScheduler2D(
            "tile", num_m_tiles=M // pair_m, num_n_tiles=N // pair_n, num_clusters=sms // PAIR,
            l2_group_size=ROWS_IN_L2,
        )  # fmt: skip
        tile.init(cluster)
        m = T.meta_var(tile.m_idx * pair_m + rank * TILE_M)  # this CTA's rows of A and of C
        n = T.meta_var(tile.n_idx * pair_n)

        if warpgroup == WRITE_BACK:
            full = PipelineState(1, 0)
            fragment = Fragment(CHUNK)
            while tile.valid():
                mma2ld.wait(0, full.phase)
                full.advance()
                T.ptx.tcgen05.fence__after_thread_sync()
                for chunk in T.unroll(pair_n // CHUNK):
                    fragment.load(sums, chunk * CHUNK, CHUNK)
                    if chunk == pair_n // CHUNK - 1:
                        T.ptx.tcgen05.fence__before_thread_sync()
                        ld2mma.arrive(0, remote=0)

                    if warp == 0:
                        if T.cuda.elect_sync():  # the last store has read `c_chunk`
                            T.ptx.cp.async_.bulk.wait_group.read(0)
                    T.cuda.warpgroup_sync(1)
                    Tx.copy(c_chunk[warp * 32 + lane, :], fragment.halves[:])
                    T.ptx.fence.proxy.async_.shared__cta()
                    T.cuda.warpgroup_sync(1)
                    if warp == 0:
                        if T.cuda.elect_sync():
                            Tx.copy_async(
                                C[m : m + TILE_M, n + chunk * CHUNK : n + (chunk + 1) * CHUNK],
                                c_chunk[:, :],
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
                        Tx.copy_async(
                            a_tiles[fill.stage, :, :],
                            A[m : m + TILE_M, k : k + TILE_K],
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
        elif (warp == MMA_WARP) & (rank == 0):
            if T.cuda.elect_sync():
                use = PipelineState(STAGES, 0)
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
                            cta_group=PAIR,
                        )
                        mma2tma.arrive(use.stage, cta_group=PAIR, cta_mask=BOTH)
                        use.advance()
                    mma2ld.arrive(0, cta_group=PAIR, cta_mask=BOTH)
                    tile.next_tile()
        T.cuda.cluster_sync()  # no CTA leaves while the other may still arrive at its barriers
        tensor_memory.dealloc()

    return kernel
