"""TVM's compiler for whole models: its pipelines with our schedules, lowering and code objects.

Importing it makes `relax_pipeline="mfmadsl"` and `tir_pipeline="mfmadsl"` known to TVM.
"""

# isort: off
from mfmadsl.environment.tvm_versions import require_supported_tvm

require_supported_tvm()  # before TVM is imported, since the wrong pair ends the process
# isort: on

from mfmadsl.relax.metaschedule import tir_options  # noqa: E402
from mfmadsl.relax.pipeline import Pipeline  # noqa: E402
from mfmadsl.relax.report import Report, Scheduled  # noqa: E402
from mfmadsl.relax.rule import MatrixCore  # noqa: E402
from mfmadsl.relax.target import target  # noqa: E402

__all__ = ["MatrixCore", "Pipeline", "Report", "Scheduled", "target", "tir_options"]
