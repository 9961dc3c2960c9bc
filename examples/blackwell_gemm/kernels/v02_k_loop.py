"""Step 2: the loop over K; the sums stay in tensor memory."""

from __future__ import annotations

from tvm.backend.cuda.lang.pipeline import TCGen05Bar
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx import PrimFunc

from examples.blackwell_gemm.kernels.fragment import Fragment
from examples.blackwell_gemm.kernels.problem import TILE_K, TILE_M, TILE_N, check_one_tile


def hgemm_v2(M: int, N: int, K: int) -> PrimFunc:
    """C = A x B^T. M and N are 128, K is a multiple of 64.

    Raises:
        ValueError: other sizes.
    """
    check_one_tile("hgemm_v2", M, N, K)

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

        pool = T.SMEMPool()
        a_tile = pool.alloc_tcgen05_mma_AB((TILE_M, TILE_K), "float16")
        b_tile = pool.alloc_tcgen05_mma_AB((TILE_N, TILE_K), "float16")
        done = TCGen05Bar(pool, 1)
        tensor_memory = T.TMEMPool(pool)
        sums = tensor_memory.alloc((TILE_M, TILE_N), "float32")
        pool.commit()
        done.init(1)
        tensor_memory.commit()
        T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()

        for step in range(K // TILE_K):
            Tx.cta.copy(a_tile[:, :], A[:, step * TILE_K : (step + 1) * TILE_K])
            Tx.cta.copy(b_tile[:, :], B[:, step * TILE_K : (step + 1) * TILE_K])
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if warp == 0:
                if T.cuda.elect_sync():
                    Tx.gemm_async(
                        sums[:, :], a_tile[:, :], b_tile[:, :], accum=step != 0, dispatch="tcgen05"
                    )
                    done.arrive(0)
            done.wait(0, step % 2)
            # The MMA read the tiles through another proxy than the threads that write them next.
            T.ptx.fence.proxy.async_.shared__cta()
        T.ptx.tcgen05.fence__after_thread_sync()

        fragment = Fragment(TILE_N)
        fragment.load(sums, 0, TILE_N)
        Tx.copy(C[warp * 32 + lane, :], fragment.halves[:])
        T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cta_sync()
        tensor_memory.dealloc()

    return kernel
