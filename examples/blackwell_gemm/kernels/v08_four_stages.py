"""Step 8: four stages, which hide four times as much of a load's latency as one."""

from __future__ import annotations

from tvm.tirx import PrimFunc

from examples.blackwell_gemm.kernels.problem import SMS, check, check_sms
from examples.blackwell_gemm.kernels.v07_warp_roles import warp_roles


def hgemm_v8(M: int, N: int, K: int, *, sms: int = SMS) -> PrimFunc:
    """C = A x B^T on `sms` CTAs. M and N are multiples of 128, K of 64.

    Raises:
        ValueError: other sizes, or no SMs.
    """
    check("hgemm_v8", M, N, K)
    check_sms("hgemm_v8", sms)
    return warp_roles(M, N, K, sms=sms, stages=4)
