"""The target that TVM compiles for."""

from __future__ import annotations

from tvm.target import Target

from mfmadsl.backend.gpu.lower import rocm_target
from mfmadsl.model import DEFAULT_ARCH, architecture


def target(arch: str = DEFAULT_ARCH) -> Target:
    """TVM's target for a chip, one of gfx908, gfx90a, gfx942, gfx950, with LLVM for the host.

    Raises ArgumentError for another chip.
    """
    return rocm_target(architecture(arch))
