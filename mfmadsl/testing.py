"""Fixtures of pytest: tests whose kernels run on an emulated chip, and fail by their faults.

pytest_plugins = ["mfmadsl.testing"]  # in conftest.py
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from mfmadsl.error import ArgumentError
from mfmadsl.model import DEFAULT_ARCH, architecture

if TYPE_CHECKING:
    from mfmadsl.triton.session import TritonSession

ARCH_OPTION = "mfmadsl_arch"


@dataclass(frozen=True)
class DeviceFault:
    """What a kernel, or a call of HIP, did wrong: the kernel's name or `HIP`, and the kind."""

    where: str
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: error[{self.kind}]: {self.text}"


@dataclass
class EmulatedGpu:
    """The GPU behind this process's HIP."""

    arch: str
    _told: IO[str] = field(repr=False)

    def faults(self) -> list[DeviceFault]:
        """Those since the test began, or since they were asked for: a test that asks for them
        decides itself what they mean."""
        return [DeviceFault(**json.loads(line)) for line in self._told]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The chip, for all tests of a run."""
    parser.addini(ARCH_OPTION, "the chip that fixtures of mfmadsl emulate", default=DEFAULT_ARCH)


def pytest_configure(config: pytest.Config) -> None:
    """Raises pytest.UsageError if no chip is called so, before any test begins."""
    _arch(config)


def _arch(config: pytest.Config) -> str:
    """The name of the chip that is asked for, which may be a product's there."""
    try:
        return architecture(str(config.getini(ARCH_OPTION))).name
    except ArgumentError as error:
        raise pytest.UsageError(f"{ARCH_OPTION}: {error}") from None


@pytest.fixture(scope="session")
def _emulated_gpu(request: pytest.FixtureRequest) -> Iterator[EmulatedGpu]:
    """One for all tests: HIP's library connects once in a process."""
    from mfmadsl.device.library import hip_library

    arch = _arch(request.config)
    library = hip_library() / "libamdhip64.so"
    with tempfile.TemporaryDirectory(prefix="mfmadsl-") as folder:
        place, faults = Path(folder, "device"), Path(folder, "faults")
        command = [sys.executable, "-m", "mfmadsl.device.serve", str(place), arch, str(faults)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            if not server.stdout.readline():
                pytest.fail(f"the emulated GPU does not start: {' '.join(command)}")
            os.environ["MFMADSL_DEVICE"] = str(place)
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)  # whoever asks for HIP gets this one
            with faults.open() as told:
                yield EmulatedGpu(arch, told)
            server.stdin.close()


@pytest.fixture
def emulated_gpu(_emulated_gpu: EmulatedGpu) -> Iterator[EmulatedGpu]:
    """HIP on an emulated GPU under the sanitizer. The test fails if anything that it launches has a
    fault for which it has not asked by `faults()`."""
    _emulated_gpu.faults()
    yield _emulated_gpu
    found = _emulated_gpu.faults()
    if found:
        pytest.fail("\n".join(map(str, found)), pytrace=False)


@pytest.fixture
def emulated_triton(request: pytest.FixtureRequest) -> Iterator[TritonSession]:
    """Triton on an emulated chip under the sanitizer: a launch with a fault raises."""
    import triton

    from mfmadsl.triton import use

    driver = triton.runtime.driver
    before = getattr(driver, "_active", None)
    yield use(_arch(request.config), sanitize=True)
    driver.set_active(before)  # None stands for the first that is asked for
