"""A scheduled module to one device function and its launch, past the faults of TVM 0.27."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import tvm
import tvm.s_tir.pipeline
import tvm_ffi
from tvm import tirx
from tvm.target import Target
from tvm.tirx import PrimFunc
from tvm.tirx.build import split_host_device_mods

from mfmadsl.target.kernel import Argument

_AXES = ("x", "y", "z")


class LoweringError(ValueError):
    """The module is not one GPU kernel of static shape, or does not fit the chip."""


@dataclass(frozen=True)
class Launch:
    """What the host would pass beside the arguments."""

    symbol: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int

    @property
    def threads(self) -> int:
        return prod(self.block)


def rocm_target(arch: str) -> Target:
    """TVM's target for a chip, stated in full: there is no device to ask."""
    return Target({"kind": "rocm", "mcpu": arch, "mtriple": "amdgcn-amd-amdhsa-hcc"}, host="llvm")


def arguments_of(function: PrimFunc) -> tuple[Argument, ...]:
    """The arrays that a PrimFunc takes. Raises LoweringError on a symbolic shape or a scalar."""
    arguments = []
    for parameter in function.params:
        shape = getattr(parameter, "shape", None)
        if shape is None:
            raise LoweringError(f"argument {parameter.name} is no buffer")
        if not all(isinstance(extent, tirx.IntImm) for extent in shape):
            extents = ", ".join(str(e) for e in shape)
            raise LoweringError(f"argument {parameter.name} has the symbolic shape ({extents})")
        arguments.append(
            Argument(parameter.name, str(parameter.dtype), tuple(int(e) for e in shape))
        )
    return tuple(arguments)


def lower(function: PrimFunc, target: Target) -> tuple[tvm.IRModule, Target, Launch]:
    """The device module (one function), the target to generate it for, and its launch.

    The device function takes its pointers in the order of the PrimFunc's parameters, where TVM
    would sort them. Raises LoweringError if the module does not become exactly one kernel.
    """
    module = tirx.transform.BindTarget(target)(tvm.IRModule({"main": _static_lds(function)}))
    options = {
        # Common subexpressions would hide the lane index from LowerWarpMemory.
        "tirx.disable_cse_tir": True,
        # Buffers that share LDS are views of one allocation, and the code generator casts the
        # address of a view from LDS to global memory: wrong numbers, without a word.
        "tirx.merge_static_smem": True,  # keeps StorageRewrite from it
    }
    disabled = ["s_tir.MergeSharedMemoryAllocations"]
    if _calls_llvm(function):
        # Matrix cores compute with these types; TVM would make their registers float32.
        disabled += ["tirx.BF16ComputeLegalize", "tirx.FP8ComputeLegalize"]
    with tvm.transform.PassContext(config=options, disabled_pass=disabled):
        pipeline, _, _ = tvm.s_tir.pipeline.default_s_tir_pipeline()
        _, devices = split_host_device_mods(pipeline(module))
    kernels = [(t, name, f) for t, m in devices.items() for name, f in m.functions.items()]
    if len(kernels) != 1:
        raise LoweringError(
            f"the module becomes {len(kernels)} GPU kernels, not one: "
            "bind its loops to blockIdx and threadIdx"
        )
    ((device_target, name, kernel),) = kernels
    kernel = _in_order(kernel, [p.name for p in function.params])
    device = _lower_warp_memory(tvm.IRModule({name: kernel}))
    device = tirx.transform.LowerIntrin()(tirx.transform.StmtSimplify()(device))
    return device, device_target, _launch(name.name_hint, device[name])


def _calls_llvm(function: PrimFunc) -> bool:
    names: list[str] = []
    tvm_ffi.structural_walk(function.body, (tvm.ir.Call, lambda call: names.append(str(call.op))))
    # Those that take bfloat are called as external functions: see `llvm.pass_bfloat`.
    return any("call_llvm" in name or "extern" in name for name in names)


def _static_lds(function: PrimFunc) -> PrimFunc:
    """`shared.dyn` becomes `shared`, the only one that the AMDGPU code generator knows."""
    return tvm.ir.load_json(tvm.ir.save_json(function).replace('"shared.dyn"', '"shared"'))


def _in_order(kernel: PrimFunc, names: list[str]) -> PrimFunc:
    position = {f"{name}_ptr": index for index, name in enumerate(names)}
    parameters = sorted(kernel.params, key=lambda p: position.get(p.name, len(names)))
    return PrimFunc(parameters, kernel.body, kernel.ret_type, kernel.attrs)


def _lower_warp_memory(module: tvm.IRModule) -> tvm.IRModule:
    """LowerWarpMemory takes one allocation a run."""
    (function,) = module.functions.values()
    for _ in range(_warp_allocations(function)):
        module = tirx.transform.LowerWarpMemory()(module)
    return module


def _warp_allocations(function: PrimFunc) -> int:
    return sum(_scope(a.buffer) == "warp" for a in _allocations(function))


def _allocations(function: PrimFunc) -> list[tirx.AllocBuffer]:
    found: list[tirx.AllocBuffer] = []
    tvm_ffi.structural_walk(function.body, (tirx.AllocBuffer, found.append))
    return found


def _scope(buffer: tirx.Buffer) -> str:
    return str(buffer.scope() if callable(buffer.scope) else buffer.scope)


def _launch(symbol: str, kernel: PrimFunc) -> Launch:
    extents = {f"{kind}.{axis}": 1 for kind in ("blockIdx", "threadIdx") for axis in _AXES}

    def note(statement: tirx.AttrStmt) -> None:
        if statement.attr_key == "thread_extent":
            tag = str(statement.node.thread_tag)
            if not isinstance(statement.value, tirx.IntImm):
                raise LoweringError(f"the extent of {tag} is symbolic: {statement.value}")
            extents[tag] = int(statement.value)

    tvm_ffi.structural_walk(kernel.body, (tirx.AttrStmt, note))
    lds = sum(
        prod(int(e) for e in a.buffer.shape) * tvm.DataType(str(a.buffer.dtype)).bits // 8
        for a in _allocations(kernel)
        if _scope(a.buffer).startswith("shared")
    )
    gx, gy, gz = (extents[f"blockIdx.{axis}"] for axis in _AXES)
    bx, by, bz = (extents[f"threadIdx.{axis}"] for axis in _AXES)
    return Launch(symbol, (gx, gy, gz), (bx, by, bz), lds)
