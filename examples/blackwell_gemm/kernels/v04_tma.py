"""Step 4: TMA loads by one elected thread, and a TMA store through shared memory."""

from __future__ import annotations

from tvm.backend.cuda.lang.pipeline import TCGen05Bar, TMABar
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx import PrimFunc

from examples.blackwell_gemm.kernels.fragment import Fragment
from examples.blackwell_gemm.kernels.problem import HALF_BYTES, TILE_K, TILE_M, TILE_N, check


def hgemm_v4(M: int, N: int, K: int) -> PrimFunc:
    """C = A x B^T. M and N are multiples of 128, K of 64.

    Raises:
        ValueError: other sizes.
    """
    check("hgemm_v4", M, N, K)
    tile_bytes = (TILE_M + TILE_N) * TILE_K * HALF_BYTES

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
        a_tile = pool.alloc_tcgen05_mma_AB((TILE_M, TILE_K), "float16")
        b_tile = pool.alloc_tcgen05_mma_AB((TILE_N, TILE_K), "float16")
        c_tile = pool.alloc_tcgen05_mma_AB((TILE_M, TILE_N), "float16")
        loaded = TMABar(pool, 1)
        done = TCGen05Bar(pool, 1)
        tensor_memory = T.TMEMPool(pool)
        sums = tensor_memory.alloc((TILE_M, TILE_N), "float32")
        pool.commit()
        loaded.init(1)
        done.init(1)
        tensor_memory.commit()
        T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()

        for step in range(K // TILE_K):
            if warp == 0:
                if T.cuda.elect_sync():
                    loaded.arrive(0, tile_bytes)  # the phase ends when so many bytes are there
                    Tx.copy_async(
                        a_tile[:, :],
                        A[m : m + TILE_M, step * TILE_K : (step + 1) * TILE_K],
                        dispatch="tma_auto",
                        mbar=loaded.ptr_to([0]),
                    )
                    Tx.copy_async(
                        b_tile[:, :],
                        B[n : n + TILE_N, step * TILE_K : (step + 1) * TILE_K],
                        dispatch="tma_auto",
                        mbar=loaded.ptr_to([0]),
                    )
                    loaded.wait(0, step % 2)
                    Tx.gemm_async(
                        sums[:, :], a_tile[:, :], b_tile[:, :], accum=step != 0, dispatch="tcgen05"
                    )
                    done.arrive(0)
                    done.wait(0, step % 2)  # others might miss a phase, and wait for the next one
        T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cta_sync()
        T.ptx.tcgen05.fence__after_thread_sync()

        fragment = Fragment(TILE_N)
        fragment.load(sums, 0, TILE_N)
        Tx.copy(c_tile[warp * 32 + lane, :], fragment.halves[:])
        T.ptx.fence.proxy.async_.shared__cta()  # the TMA store reads through the async proxy
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
