"""mfmadsl: matrix-core instructions, written down once.

The names below are imported when they are first used, so that a tool that only reads `.mfma` files
does not wait for TVM.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mfmadsl import relax as relax
    from mfmadsl.backend import CodegenError as CodegenError
    from mfmadsl.backend import Kernel as Kernel
    from mfmadsl.backend import LinkError as LinkError
    from mfmadsl.backend import LoweringError as LoweringError
    from mfmadsl.backend import build as build
    from mfmadsl.backend.cpu.build import build_for_cpu as build_for_cpu
    from mfmadsl.backend.cpu.kernel import CpuKernel as CpuKernel
    from mfmadsl.codegen import ModuleError as ModuleError
    from mfmadsl.emulator import EmulationError as EmulationError
    from mfmadsl.emulator import emulate as emulate
    from mfmadsl.emulator.code_object import CodeObjectError as CodeObjectError
    from mfmadsl.emulator.code_object import read_code_object as read_code_object
    from mfmadsl.emulator.profiler import profile as profile
    from mfmadsl.emulator.sanitizer import sanitize as sanitize
    from mfmadsl.environment.tvm_versions import ToolchainError as ToolchainError
    from mfmadsl.error import ArgumentError as ArgumentError
    from mfmadsl.error import ArgumentTypeError as ArgumentTypeError
    from mfmadsl.error import MfmadslError as MfmadslError
    from mfmadsl.error import SlowLoopWarning as SlowLoopWarning
    from mfmadsl.export import ExportError as ExportError
    from mfmadsl.export import diff_layouts as diff_layouts
    from mfmadsl.export import export_layouts as export_layouts
    from mfmadsl.gemm import Gemm as Gemm
    from mfmadsl.hip.run import run as run
    from mfmadsl.language import LanguageError as LanguageError
    from mfmadsl.language import SpecFileError as SpecFileError
    from mfmadsl.language import find as find
    from mfmadsl.language import library as library
    from mfmadsl.language import load as load
    from mfmadsl.output import OutputError as OutputError
    from mfmadsl.relax import target as target
    from mfmadsl.report.error import KernelFileError as KernelFileError
    from mfmadsl.runtime.error import HipError as HipError
    from mfmadsl.runtime.error import RuntimeBuildError as RuntimeBuildError
    from mfmadsl.schedule import ScheduleError as ScheduleError
    from mfmadsl.schedule import Tiling as Tiling
    from mfmadsl.schedule import gemm_schedule as gemm_schedule
    from mfmadsl.schedule import gemm_tiling as gemm_tiling
    from mfmadsl.schedule import load_intrinsic as load_intrinsic
    from mfmadsl.schedule import matmul as matmul
    from mfmadsl.schedule import mfma_schedule as mfma_schedule
    from mfmadsl.schedule import schedule_gemm as schedule_gemm
    from mfmadsl.schedule.cpu.gemm import cpu_gemm_schedule as cpu_gemm_schedule
    from mfmadsl.schedule.cpu.gemm import cpu_gemm_tiling as cpu_gemm_tiling
    from mfmadsl.schedule.cpu.gemm import schedule_cpu_gemm as schedule_cpu_gemm
    from mfmadsl.schedule.cpu.tiling import CpuTiling as CpuTiling
    from mfmadsl.tune.fleet import RpcError as RpcError
    from mfmadsl.tune.measure import MeasureError as MeasureError

__version__ = "0.1.0"

_HOME = {
    "ArgumentError": "error",
    "ArgumentTypeError": "error",
    "CodeObjectError": "emulator.code_object",
    "CodegenError": "backend",
    "CpuKernel": "backend.cpu.kernel",
    "CpuTiling": "schedule.cpu.tiling",
    "EmulationError": "emulator",
    "ExportError": "export",
    "Gemm": "gemm",
    "HipError": "runtime.error",
    "Kernel": "backend",
    "KernelFileError": "report.error",
    "LanguageError": "language",
    "LinkError": "backend",
    "LoweringError": "backend",
    "MeasureError": "tune.measure",
    "MfmadslError": "error",
    "ModuleError": "codegen",
    "OutputError": "output",
    "RuntimeBuildError": "runtime.error",
    "RpcError": "tune.fleet",
    "ScheduleError": "schedule",
    "SlowLoopWarning": "error",
    "SpecFileError": "language",
    "Tiling": "schedule",
    "ToolchainError": "environment.tvm_versions",
    "build": "backend",
    "build_for_cpu": "backend.cpu.build",
    "cpu_gemm_schedule": "schedule.cpu.gemm",
    "cpu_gemm_tiling": "schedule.cpu.gemm",
    "diff_layouts": "export",
    "emulate": "emulator",
    "export_layouts": "export",
    "find": "language",
    "gemm_schedule": "schedule",
    "gemm_tiling": "schedule",
    "library": "language",
    "load": "language",
    "load_intrinsic": "schedule",
    "matmul": "schedule",
    "mfma_schedule": "schedule",
    "profile": "emulator.profiler",
    "read_code_object": "emulator.code_object",
    "run": "hip.run",
    "sanitize": "emulator.sanitizer",
    "schedule_cpu_gemm": "schedule.cpu.gemm",
    "schedule_gemm": "schedule",
    "relax": "",
    "target": "relax",
}

_PACKAGES = ("emulator", "export", "language", "model", "schedule")
"""Packages that need no import of their own: `mfmadsl.language.reads()` is enough."""

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"mfmadsl.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not _HOME[name]:  # a package of its own
        return import_module(f"mfmadsl.{name}")
    value = getattr(import_module(f"mfmadsl.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
