"""What Triton asks of a driver, answered for a chip that the emulator runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import count
from typing import Any

from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from mfmadsl.emulator.code_object import read_code_object
from mfmadsl.emulator.text.assembly import parse_assembly
from mfmadsl.model import assumed
from mfmadsl.triton.arguments import bound
from mfmadsl.triton.session import TritonKernel, TritonSession
from mfmadsl.triton.timing import ModelledEvents

_numbers = count()
"""Of devices: Triton keeps what it has compiled for each of them."""


class _Utils:
    """Modules and the device's properties, by the names that Triton has for them."""

    def __init__(self, session: TritonSession) -> None:
        self._session = session

    def load_binary(
        self, name: str, image: bytes, shared: int, device: int
    ) -> tuple[TritonKernel, TritonKernel, int, int, int]:
        """The module and the function, which are one; registers, spilled ones, and threads."""
        text = read_code_object(image).assembly(name)
        program = parse_assembly(text, name)
        kernel = TritonKernel(name, text, program)
        threads = program.most_threads or assumed(program.arch).max_threads
        registers = program.registers
        return kernel, kernel, registers.vector + registers.accumulation, registers.spilled, threads

    def unload_module(self, module: TritonKernel) -> None:
        """Nothing is kept of one."""

    def get_device_properties(self, device: int) -> dict[str, Any]:
        """Of the product: sizes in bytes, clocks in kHz."""
        chip, product = self._session.chip, self._session.product
        return {
            "arch": chip.name,
            "warpSize": chip.wave_size,
            "max_shared_mem": chip.lds_bytes,
            "max_num_regs": chip.simd_registers * chip.simds * chip.wave_size,
            "multiprocessor_count": product.compute_units,
            "max_threads_per_sm": chip.simds * chip.waves_per_simd * chip.wave_size,
            "sm_clock_rate": product.clock * 1000,
            "cooperativeLaunch": 1,
        }


class _Launcher:
    """Launches one compiled kernel; Triton makes one for each."""

    def __init__(self, source: Any, metadata: Any) -> None:
        import triton

        driver = triton.runtime.driver.active
        assert isinstance(driver, Driver)
        self._session = driver.session
        self._signature = tuple(source.signature.values())
        self._threads = metadata.num_warps * metadata.warp_size
        self._shared = metadata.shared

    def __call__(
        self, x: int, y: int, z: int, stream: int, kernel: TritonKernel, packed: Any, told: Any,
        enter: Callable[[Any], None] | None, leave: Callable[[Any], None] | None, *values: Any,
    ) -> None:  # fmt: skip
        if not x * y * z:
            return
        if enter is not None:
            enter(told)
        arguments = bound(self._signature, values)
        self._session.run(kernel, (x, y, z), self._threads, self._shared, arguments)
        if leave is not None:
            leave(told)


class Driver(DriverBase):  # type: ignore[misc]
    """One emulated GPU with one stream."""

    launcher_cls = _Launcher

    def __init__(self, session: TritonSession) -> None:
        super().__init__()
        self.session = session
        self.utils = _Utils(session)
        self._events = ModelledEvents(session)
        self._number = next(_numbers)

    @classmethod
    def is_active(cls) -> bool:
        """Only where `use` says so."""
        return False

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The type of C that Triton's own launchers for AMD take."""
        from triton.backends.amd.driver import ty_to_cpp

        told: str = ty_to_cpp(ty)
        return told

    def get_current_target(self) -> GPUTarget:
        """What Triton compiles for."""
        chip = self.session.chip
        return GPUTarget("hip", knobs.runtime.override_arch or chip.name, chip.wave_size)

    def get_current_device(self) -> int:
        """Another one for each session: none runs what Triton has compiled for another chip."""
        return self._number

    def set_current_device(self, device: int) -> None:
        """There is no other."""

    def get_current_stream(self, device: int) -> int:
        """There is one."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Tensors lie in the memory of the CPU."""
        return import_module("torch").device("cpu")

    def get_device_interface(self) -> ModelledEvents:
        """Events, whose times are modelled."""
        return self._events

    def get_empty_cache_for_benchmark(self) -> None:
        """In the model caches are empty before each launch."""

    def clear_cache(self, cache: None) -> None:
        """They are."""
        self._events.cleared += 1

    def get_benchmarker(self) -> Callable[..., Sequence[float]]:
        """Milliseconds of a call's launches in the chip's model, for `triton.autotune`: the same
        for each quantile."""

        def measure(
            call: Callable[[], Any], *, quantiles: Sequence[float], **_: Any
        ) -> list[float]:
            with self.session.timed() as launches:
                call()
            spent = sum(x.profile.on_chip.seconds for x in launches if x.profile is not None)
            return [spent * 1e3] * len(quantiles)

        return measure
