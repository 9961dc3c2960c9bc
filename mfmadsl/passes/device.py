"""Calls that the passes write: of LLVM's intrinsics, and of the device functions beside them."""

from __future__ import annotations

from typing import Any

from tvm import tirx


def device(dtype: str, name: str, *arguments: Any) -> Any:
    """A call of a function without effects of `target/*_functions.ll`."""
    return tirx.call_pure_extern(dtype, f"mfmadsl.{name}", *arguments)


def intrinsic(dtype: str, name: str, *arguments: Any) -> Any:
    """A call of one of LLVM's functions without effects."""
    return tirx.call_llvm_pure_intrin(dtype, f"llvm.{name}", *arguments)


def called(expression: Any) -> str:
    """The name of the operator that a call calls, without TVM's prefix."""
    return str(getattr(expression.op, "name", expression.op)).rpartition(".")[2]


def device_function(expression: Any) -> str:
    """The name of the device function that a call calls, or nothing where it calls none."""
    if called(expression) not in ("call_extern", "call_pure_extern"):
        return ""
    name = str(getattr(expression.args[0], "value", ""))
    return name.removeprefix("mfmadsl.") if name.startswith("mfmadsl.") else ""
