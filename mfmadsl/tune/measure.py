"""How long a kernel takes: in the model of the chip, or on the GPU of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mfmadsl.backend.gpu.kernel import Kernel
from mfmadsl.emulator.profiler import profile
from mfmadsl.error import MfmadslError
from mfmadsl.model import product_called
from mfmadsl.schedule.matrix_core.tiling.tuned import source_of


class MeasureError(MfmadslError, RuntimeError):
    """Nothing more can be measured, neither this kernel nor another; the message says why."""


@dataclass(frozen=True)
class Measure:
    """How kernels are measured: on what, for the database, and by which function.

    `seconds` gives those of all launches of a kernel with such arguments, and raises a MfmadslError
    if it cannot, and MeasureError if it could measure no other one, either.
    """

    source: str
    seconds: Callable[[Kernel, Sequence[Any]], float]


_REPEAT = 20


def by_model(product: str | None = None) -> Measure:
    """On the whole chip, all launches and what is between them, as `profile` has it.

    `product` is the one that has the chip, of several that do; another name is nobody's.
    """
    called = None if product is None else product_called(product)
    name = None if called is None else called.name
    return Measure(
        source_of(name), lambda kernel, args: profile(kernel, args, product=name).on_chip.seconds
    )


def on_gpu() -> Measure:
    """The median on the GPU of this machine. Raises HipError where there is none, and ArgumentError
    for an emulated one that tells its own time."""
    from mfmadsl.hip.binding import hip
    from mfmadsl.hip.run import run

    device = hip().device()
    device.check_times()
    return Measure(
        device.name, lambda kernel, args: run(kernel, args, repeat=_REPEAT).median_seconds
    )
