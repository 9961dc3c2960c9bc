"""Step 2: the loop over K; the sums stay in tensor memory."""

from __future__ import annotations

from tvm.backend.cuda.lang.pipeline import TCGen05Bar
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx import PrimFunc
from tvm.tirx.layout import S, TileLayout, tid_in_wg


def hgemm_v2(M: int, N: int, K: int) -> PrimFunc:
    BLOCK_M, BLOCK_N, BLOCK_K = 128, 128, 64

    @T.prim_func
    def kernel(
        A: T.Buffer((M, K), "float16"),
        B: T.Buffer((N, K), "float16"),
        C: T.Buffer((M, N), "float16"),
    ):
        T.device_entry()
        T.cta_id([1])
        T.warpgroup_id([1])
        warp = T.warp_id_in_wg([4])
        lane = T.lane_id([32])
        thread = T.meta_var(warp * 32 + lane)

        pool = T.SMEMPool()
        a_tile = pool.alloc_tcgen05_mma_AB((BLOCK_M, BLOCK_K), "float16")
        b_tile = pool.alloc_tcgen05_mma_AB((BLOCK_N, BLOCK_K), "float16")
        mma_done = TCGen05Bar(pool, 1)
        tmem = T.TMEMPool(pool)
        sums = tmem.alloc((BLOCK_M, BLOCK_N), "float32")
        pool.commit()
        mma_done.init(1)
        tmem.commit()
        T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()

        for k in range(K // BLOCK_K):
            Tx.cta.copy(a_tile[:, :], A[:, k * BLOCK_K : (k + 1) * BLOCK_K])
            Tx.cta.copy(b_tile[:, :], B[:, k * BLOCK_K : (k + 1) * BLOCK_K])
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if warp == 0:
                if T.cuda.elect_sync():
                    Tx.gemm_async(
                        sums[:, :], a_tile[:, :], b_tile[:, :], accum=k != 0, dispatch="tcgen05"
                    )
                    mma_done.arrive(0)
            mma_done.wait(0, k % 2)
            # The MMA read the tiles through another proxy than the one that writes them again.
            T.ptx.fence.proxy.async_.shared__cta()
        T.ptx.tcgen05.fence__after_thread_sync()

        row = T.alloc_local((BLOCK_N,), "float32")
        row_half = T.alloc_local((BLOCK_N,), "float16")
        rows = row.view(
            BLOCK_M, BLOCK_N, layout=TileLayout(S[(BLOCK_M, BLOCK_N) : (1 @ tid_in_wg, 1)])
        )
        Tx.wg.copy_async(rows[:, :], sums[:, :])
        T.ptx.tcgen05.wait__ld.sync.aligned()
        Tx.cast(row_half[:], row[:])
        Tx.copy(C[thread, 0:BLOCK_N], row_half[:])
        T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cta_sync()
        tmem.dealloc()

    return kernel
