"""TVM's runtime for GPUs of AMD, which its wheel lacks: devices, and modules of kernels.

`tvm.rocm(0)` is there after `import tvm`, without a word of ours.
"""

from mfmadsl.runtime.error import HipError, RuntimeBuildError
from mfmadsl.runtime.load import MEASURE, autoload, without_devices

__all__ = ["MEASURE", "HipError", "RuntimeBuildError", "autoload", "without_devices"]
