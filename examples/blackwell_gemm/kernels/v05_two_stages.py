"""Step 5: a software pipeline of two stages, so that a load runs under an MMA."""

from __future__ import annotations

from tvm.backend.cuda.lang.pipeline import PipelineState, TCGen05Bar, TMABar
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx import PrimFunc

from examples.blackwell_gemm.kernels.fragment import Fragment
from examples.blackwell_gemm.kernels.problem import HALF_BYTES, TILE_K, TILE_M, TILE_N, check

STAGES = 2


def hgemm_v5(M: int, N: int, K: int) -> PrimFunc:
    """C = A x B^T. M and N are multiples of 128, K of 64.

    Raises:
        ValueError: other sizes.
    """
    check("hgemm_v5", M, N, K)
    steps = K // TILE_K
    stage_bytes = (TILE_M + TILE_N) * TILE_K * HALF_BYTES

    @T.prim_func
    def kernel(
        A: T.Buffer((M, K), "float16"),
        B: T.Buffer((N, K), "float16"),
        C: T.Buffer((M, N), "float16"),
    ):
        T.device_entry()
        m_tile, n_tile = T.cta_id([M // TILE_M, N // TILE_N])
        T.warpgroup_id([1])
        warp = T.warp_id_in_wg([4])
        lane = T.lane_id([32])
        m = T.meta_var(m_tile * TILE_M)
        n = T.meta_var(n_tile * TILE_N)

        pool = T.SMEMPool()
        a_tiles = pool.alloc_tcgen05_mma_AB((STAGES, TILE_M, TILE_K), "float16")
        b_tiles = pool.alloc_tcgen05_mma_AB((STAGES, TILE_N, TILE_K), "float16")
        c_tile = pool.alloc_tcgen05_mma_AB((TILE_M, TILE_N), "float16")
        loaded = TMABar(pool, STAGES)
        free = TCGen05Bar(pool, STAGES)
        done = TCGen05Bar(pool, 1)
        tensor_memory = T.TMEMPool(pool)
        sums = tensor_memory.alloc((TILE_M, TILE_N), "float32")
        pool.commit()
        loaded.init(1)
        free.init(1)
        done.init(1)
        tensor_memory.commit()
        T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()

        fill = PipelineState(STAGES, 1)  # a stage that was never filled counts as free
        use = PipelineState(STAGES, 0)

        @T.inline
        def load(k):
            free.wait(fill.stage, fill.phase)
            loaded.arrive(fill.stage, stage_bytes)
            Tx.copy_async(
                a_tiles[fill.stage, :, :],
                A[m : m + TILE_M, k : k + TILE_K],
                dispatch="tma_auto",
                mbar=loaded.ptr_to([fill.stage]),
            )
            Tx.copy_async(
                b_tiles[fill.stage, :, :],
                B[n : n + TILE_N, k : k + TILE_K],
                dispatch="tma_auto",
                mbar=loaded.ptr_to([fill.stage]),
            )
            fill.advance()

        @T.inline
        def multiply(accumulate):
            loaded.wait(use.stage, use.phase)
            Tx.gemm_async(
                sums[:, :],
                a_tiles[use.stage, :, :],
                b_tiles[use.stage, :, :],
                accum=accumulate,
                dispatch="tcgen05",
            )
            free.arrive(use.stage)
            use.advance()

        if warp == 0:
            if T.cuda.elect_sync():
                load(0)
                for step in range(steps):
                    if step + 1 < steps:
                        load((step + 1) * TILE_K)
                    multiply(step != 0)
                done.arrive(0)
        done.wait(0, 0)
        T.ptx.tcgen05.fence__after_thread_sync()

        fragment = Fragment(TILE_N)
        fragment.load(sums, 0, TILE_N)
        Tx.copy(c_tile[warp * 32 + lane, :], fragment.halves[:])
        T.ptx.fence.proxy.async_.shared__cta()
        T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cta_sync()
        if warp == 0:
            if T.cuda.elect_sync():
                Tx.copy_async(C[m : m + TILE_M, n : n + TILE_N], c_tile[:, :], dispatch="tma_auto")
                T.ptx.cp.async_.bulk.commit_group()
                T.ptx.cp.async_.bulk.wait_group(0)
        T.cuda.cta_sync()
        tensor_memory.dealloc()

    return kernel
