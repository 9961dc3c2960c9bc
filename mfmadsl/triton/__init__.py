"""Triton's kernels on the emulator: `use` takes the place of a GPU's driver."""

from mfmadsl.triton.session import Launched, TritonSession
from mfmadsl.triton.tensor import Tensor, tensor
from mfmadsl.triton.use import use

__all__ = ["Launched", "Tensor", "TritonSession", "tensor", "use"]
