"""Intrinsics in TVM: loading their modules, and schedules made of them."""

# isort: off
from mfmadsl.environment.tvm_versions import require_supported_tvm

require_supported_tvm()  # before TVM is imported, since the wrong pair ends the process
# isort: on

from mfmadsl.model import AttentionTiling, Tiling  # noqa: E402
from mfmadsl.schedule.error import ScheduleError  # noqa: E402
from mfmadsl.schedule.flash_attention.schedule import (  # noqa: E402
    attention_schedule,
    attention_tiling,
)
from mfmadsl.schedule.load import load_intrinsic  # noqa: E402
from mfmadsl.schedule.matrix_core.gemm import (  # noqa: E402
    gemm_cases,
    gemm_schedule,
    gemm_tiling,
    schedule_gemm,
    with_cases,
)
from mfmadsl.schedule.matrix_core.mfma import mfma_schedule  # noqa: E402
from mfmadsl.schedule.matrix_core.mfma_factors import Factors, default_factors  # noqa: E402
from mfmadsl.schedule.matrix_core.tiling.cases import Case  # noqa: E402
from mfmadsl.schedule.matrix_core.tiling.legal import makes_gemm  # noqa: E402
from mfmadsl.schedule.product.prepare import prepared  # noqa: E402
from mfmadsl.schedule.workload.attention import attention  # noqa: E402
from mfmadsl.schedule.workload.attention_backward import attention_backward  # noqa: E402
from mfmadsl.schedule.workload.block_scaled import block_scaled_matmul  # noqa: E402
from mfmadsl.schedule.workload.dense import matmul  # noqa: E402
from mfmadsl.schedule.workload.gated import gated  # noqa: E402
from mfmadsl.schedule.workload.grouped import grouped_matmul  # noqa: E402
from mfmadsl.schedule.workload.mx_output import mx_output  # noqa: E402
from mfmadsl.schedule.workload.quantised import quantised_matmul  # noqa: E402
from mfmadsl.schedule.workload.scaled import scaled_matmul  # noqa: E402
from mfmadsl.schedule.workload.sparse import sparse_matmul  # noqa: E402

__all__ = [
    "AttentionTiling",
    "Case",
    "Factors",
    "ScheduleError",
    "Tiling",
    "attention",
    "attention_backward",
    "attention_schedule",
    "attention_tiling",
    "block_scaled_matmul",
    "default_factors",
    "gated",
    "gemm_cases",
    "gemm_schedule",
    "gemm_tiling",
    "grouped_matmul",
    "load_intrinsic",
    "makes_gemm",
    "matmul",
    "mfma_schedule",
    "mx_output",
    "prepared",
    "quantised_matmul",
    "scaled_matmul",
    "schedule_gemm",
    "sparse_matmul",
    "with_cases",
]
