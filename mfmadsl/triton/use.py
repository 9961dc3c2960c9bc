"""`use`: from now on Triton compiles for a chip, and its kernels run in the emulator."""

from __future__ import annotations

from mfmadsl.argument import check_flag
from mfmadsl.emulator.request import check_budget
from mfmadsl.emulator.run import BUDGET
from mfmadsl.error import ArgumentError
from mfmadsl.model import DEFAULT_ARCH, architecture, product_called, product_of
from mfmadsl.triton.session import TritonSession


def use(
    arch: str = DEFAULT_ARCH,
    *,
    sanitize: bool = False,
    profile: bool = False,
    product: str | None = None,
    budget: int = BUDGET,
) -> TritonSession:
    """Let this process's kernels of Triton run on an emulated chip, with no GPU and no HIP.

    `arch` is a chip or a product. Kernels take tensors of PyTorch on the CPU, and NumPy arrays as
    `tensor(array)`; both are changed in place. With `sanitize` a launch raises EmulationError for
    what the chip does not define, with `profile` each launch is timed in the chip's model.
    `triton.autotune` chooses by that model. The session lists the launches.

    Raises ArgumentError for a chip or a product that there is not, and where Triton is not
    installed.
    """
    check_flag("sanitize", sanitize)
    check_flag("profile", profile)
    check_budget(budget)
    chip = architecture(arch)
    called = product_called(arch)
    sold = product_of(chip.name, product or (called.name if called is not None else None))
    try:
        import triton
    except ImportError:
        raise ArgumentError("triton is not installed: pip install 'triton>=3.8,<3.9'") from None
    from mfmadsl.triton.driver import Driver

    session = TritonSession(chip, sold, sanitize, profile, budget)
    triton.runtime.driver.set_active(Driver(session))
    return session
