"""A module of Relax on emulated machine code: each PrimFunc becomes a kernel that the emulator
runs, and Relax's virtual machine, on the CPU, does the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.tirx import Expr, PrimFunc

import mfmadsl
from mfmadsl import Kernel

Array = npt.NDArray[Any]


def kernels_of(module: tvm.IRModule, arch: str) -> dict[str, Kernel]:
    """A kernel for each scheduled PrimFunc, by its name."""
    return {
        str(name.name_hint): mfmadsl.build(function, arch=arch)
        for name, function in module.functions_items()
        if isinstance(function, PrimFunc)
    }


def machine(module: tvm.IRModule, kernels: Mapping[str, Kernel]) -> relax.VirtualMachine:
    """Relax's virtual machine for a scheduled module whose kernels are emulated."""
    for name, kernel in kernels.items():
        tvm.register_global_func(f"emulated.{name}", _runner(kernel), override=True)
    transform = relax.transform
    passes = [
        transform.RewriteDataflowReshape(), transform.ToNonDataflow(),
        transform.RemovePurityChecking(), transform.CallTIRRewrite(),
        transform.StaticPlanBlockMemory(), transform.LowerAllocTensor(),
        transform.KillAfterLastUse(), transform.LowerRuntimeBuiltin(),
        transform.ComputePrimValue(), transform.VMShapeLower(), transform.AttachGlobalSymbol(),
    ]  # fmt: skip
    called = _Called(module, set(kernels)).transformed()
    built = relax.build(called, "llvm", relax_pipeline=tvm.transform.Sequential(passes))
    return relax.VirtualMachine(built, tvm.cpu())


def _runner(kernel: Kernel) -> Callable[..., None]:
    def run(*tensors: Any) -> None:
        arrays = [tensor.numpy() for tensor in tensors]
        before = [array.copy() for array in arrays]
        mfmadsl.emulate(kernel, arrays)
        for tensor, array, old in zip(tensors, arrays, before, strict=True):
            if array.tobytes() != old.tobytes():
                tensor.copyfrom(np.ascontiguousarray(array))

    return run


@mutator
class _Called(PyExprMutator):
    """`call_tir` of a kernel becomes a call of the function that emulates it."""

    def __init__(self, module: tvm.IRModule, kernels: set[str]) -> None:
        super().__init__(module)
        self.module, self.kernels = module, kernels

    def visit_call_(self, call: relax.Call) -> Expr:
        call = self.visit_expr_post_order(call)
        if call.op != tvm.ir.Op.get("relax.call_tir"):
            return call
        name = call.args[0].name_hint
        if name not in self.kernels:
            return call
        assert len(call.args) == 2, "the emulated kernels take no scalars"
        packed = relax.ExternFunc(f"emulated.{name}")
        op = tvm.ir.Op.get("relax.call_dps_packed")
        return relax.Call(op, [packed, call.args[1]], call.attrs, call.ty_args)

    def transformed(self) -> tvm.IRModule:
        for variable, function in self.module.functions_items():
            if isinstance(function, relax.Function):
                self.builder_.update_func(variable, self.visit_expr(function))
        module: tvm.IRModule = self.builder_.get()
        for variable in module.get_global_vars():
            if variable.name_hint in self.kernels:
                del module[variable]
        return module
