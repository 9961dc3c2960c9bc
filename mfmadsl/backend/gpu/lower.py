"""A scheduled module to device functions and their launches, past the faults of TVM 0.27."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from math import prod

import tvm
from tvm import tirx
from tvm.ir import Call, GlobalVar, StringImm
from tvm.target import Target
from tvm.tirx import PrimFunc, Stmt, Var
from tvm.tirx.build import split_host_device_mods

from mfmadsl.backend.argument import extent_of
from mfmadsl.backend.extent import Extent, Formula
from mfmadsl.backend.gpu.described import described_instructions, described_reads
from mfmadsl.backend.gpu.pipeline import device_passes
from mfmadsl.model import Architecture
from mfmadsl.passes import LoweringError
from mfmadsl.passes.grid import grid_of, regrid
from mfmadsl.passes.kernel.edge_stores import without_edge_branches
from mfmadsl.passes.kernel.idle import without_idle_work
from mfmadsl.passes.main_loop.analysis.register_use import RegisterUse
from mfmadsl.passes.main_loop.lds.sharing import share_lds
from mfmadsl.passes.main_loop.pipeline import pipeline
from mfmadsl.passes.tir.annotation import PIPELINE, check_annotations
from mfmadsl.passes.tir.expression import name_of, scope_of
from mfmadsl.passes.tir.walk import walk
from mfmadsl.runtime import without_devices

LAUNCH = "call_ffi_kernel"
"""TVM's call by which a function of the host launches a kernel."""

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class LoweredKernel:
    """What the host would pass beside the arguments, if `condition` is not 0."""

    symbol: str
    parameters: tuple[str, ...]
    grid: tuple[Extent, Extent, Extent]
    block: tuple[int, int, int]
    lds_bytes: int
    remarks: tuple[str, ...] = ()
    spans: tuple[tuple[str, Extent], ...] = ()
    condition: Extent = 1
    places_lds: bool = False  # a pass chose the addresses in the LDS, and their alignment

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return prod(self.block)


def _launched(statement: Stmt) -> list[str]:
    """The kernels that a statement of the host launches."""
    calls: list[Call] = []
    walk(statement, (Call, calls.append))
    names = [call.args[0] for call in calls if name_of(call) == LAUNCH]
    return [str(name.value) for name in names if isinstance(name, StringImm)]


@cache  # TVM complains of each one that it sees no device
def rocm_target(chip: Architecture) -> Target:
    """TVM's target for a chip, stated in full: there is no device to ask."""
    stated = {
        "kind": "rocm",
        "mcpu": chip.name,
        "mtriple": "amdgcn-amd-amdhsa-hcc",
        "thread_warp_size": chip.wave_size,
    }
    with without_devices():
        return Target(stated, host="llvm")


@dataclass(frozen=True)
class Split:
    """What becomes of a PrimFunc: `kernels`, in the order of their launches, and the host's
    function that launches them, as TVM's runtime calls it."""

    host: PrimFunc
    kernels: tuple[tuple[GlobalVar, PrimFunc], ...]

    @property
    def conditions(self) -> dict[str, Extent]:
        """What has to be other than 0 for a kernel to be launched, of those that not all are."""
        found: dict[str, Extent] = {}

        def conditional(node: tirx.IfThenElse) -> None:
            then = _launched(node.then_case)
            for name in _launched(node):
                holds = extent_of(node.condition)
                needed = holds if name in then else Formula("sub", 1, holds)
                found[name] = Formula("and", found[name], needed) if name in found else needed

        walk(self.host.body, (tirx.IfThenElse, conditional))
        return found


def split(function: PrimFunc, chip: Architecture, host: Target | None = None) -> Split:
    """Part a function into kernels, called as it is, and the host's part, for a target of LLVM's.

    What the kernels take has names that differ, as `named_apart` gives them. Raises LoweringError
    if the module does not become kernels.
    """
    check_annotations(function)
    symbol = symbol_of(function)
    named = _corrected(function).with_attr("global_symbol", symbol)
    target = rocm_target(chip) if host is None else rocm_target(chip).with_host(host)
    module = tirx.transform.BindTarget(target)(tvm.IRModule({symbol: named}))
    # Buffers that share LDS are views of one allocation, and the code generator casts the address
    # of a view from LDS to global memory: wrong numbers, without a word.
    options = {"tirx.merge_static_smem": True}  # keeps StorageRewrite from it
    with tvm.transform.PassContext(config=options):
        for each in device_passes(chip):
            module = each(module)
        hosts, devices = split_host_device_mods(module)
    kernels = [each for module in devices.values() for each in module.functions.items()]
    if not kernels:
        raise LoweringError(
            "the module becomes no GPU kernel: bind its loops to blockIdx and threadIdx"
        )
    # TVM numbers them as they come: f_kernel, f_kernel_1, ...
    kernels.sort(key=lambda found: (len(found[0].name_hint), found[0].name_hint))
    (host,) = hosts.functions.values()
    return Split(host, tuple(kernels))


def symbol_of(function: PrimFunc) -> str:
    """What a function is called, as kernels may be: letters, digits and underscores."""
    given = function.attrs.get("global_symbol") if function.attrs else None
    symbol = re.sub(r"\W", "_", str(given or "main"), flags=re.ASCII)
    return f"_{symbol}" if symbol[0].isdigit() else symbol


def parameter_names(function: PrimFunc) -> list[str]:
    """The names of what a function takes, in its order."""
    return [str(parameter.name) for parameter in function.params]


def device_module(
    name: GlobalVar, kernel: PrimFunc, chip: Architecture,
    register_use: RegisterUse = RegisterUse.TWO_AHEAD,
) -> tuple[tvm.IRModule, LoweredKernel]:  # fmt: skip
    """A kernel of `split`, ready for code generation, and its launch."""
    module = _lower_warp_memory(tvm.IRModule({name: kernel}))
    grid = grid_of(module[name])
    instructions, reads = described_instructions(chip.name), described_reads(chip.name)
    function = without_idle_work(module[name])
    if has_main_loop(function):
        function = without_edge_branches(function)
    pipelined = pipeline(function, chip, instructions, reads, register_use)
    kernel = regrid(pipelined.function, grid) if grid else pipelined.function
    module = tvm.IRModule({name: share_lds(kernel, chip)})
    # Before divisions become shifts.
    launch = replace(
        _launch(name.name_hint, module[name]),
        remarks=pipelined.remarks,
        places_lds=pipelined.fast > 0,
        spans=tuple((buffer, extent_of(span)) for buffer, span in pipelined.spans),
    )
    return tirx.transform.LowerIntrin()(module), launch


def has_main_loop(function: PrimFunc) -> bool:
    """Whether the pipeline is to take a loop of it. Of other kernels LLVM knows more if they store
    without descriptors: that memory stays as it is, which it then loads by scalars."""
    loops: list[tirx.For] = []
    walk(function.body, (tirx.For, loops.append))
    return any(PIPELINE in (loop.annotations or {}) for loop in loops)


def _corrected(function: PrimFunc) -> PrimFunc:
    """`shared.dyn` becomes `shared`, the only one that the AMDGPU code generator knows."""
    text = tvm.ir.save_json(function)
    if '"shared.dyn"' not in text:
        return function
    corrected: PrimFunc = tvm.ir.load_json(text.replace('"shared.dyn"', '"shared"'))
    return corrected


def in_order(kernel: PrimFunc, names: list[str]) -> PrimFunc:
    """A kernel that takes its pointers in the order of these names, and then its symbols."""
    parameters = sorted(kernel.params, key=lambda p: _position(p, names))
    return PrimFunc(parameters, kernel.body, kernel.ret_type, kernel.attrs)


def _position(parameter: Var, names: list[str]) -> int:
    name = _taken(parameter)
    return names.index(name) if _is_pointer(parameter) and name in names else len(names)


def _taken(parameter: Var) -> str:
    """The name of the buffer or of the symbol that a device function takes by a parameter."""
    name = str(parameter.name)
    return name.removesuffix("_ptr") if _is_pointer(parameter) else name


def _is_pointer(parameter: Var) -> bool:
    return isinstance(parameter.ty, tvm.ir.PointerType)


def _lower_warp_memory(module: tvm.IRModule) -> tvm.IRModule:
    """LowerWarpMemory takes one allocation a run, and leaves indices to simplify."""
    (function,) = module.functions.values()
    count = _warp_allocations(function)
    for _ in range(count):
        module = tirx.transform.LowerWarpMemory()(module)
    return tirx.transform.StmtSimplify()(module) if count else module


def _warp_allocations(function: PrimFunc) -> int:
    return sum(scope_of(a.buffer) == "warp" for a in _allocations(function))


def _allocations(function: PrimFunc) -> list[tirx.AllocBuffer]:
    found: list[tirx.AllocBuffer] = []
    walk(function.body, (tirx.AllocBuffer, found.append))
    return found


def _bytes(dtype: str) -> int:
    kind = tvm.DataType(dtype)
    return int(kind.bits) * int(kind.lanes) // 8


def _launch(symbol: str, kernel: PrimFunc) -> LoweredKernel:
    extents: dict[str, Extent] = {
        f"{kind}.{axis}": 1 for kind in ("blockIdx", "threadIdx") for axis in _AXES
    }

    statements: list[tirx.AttrStmt] = []
    walk(kernel.body, (tirx.AttrStmt, statements.append))
    for statement in statements:
        if statement.attr_key == "thread_extent":
            extents[str(statement.node.thread_tag)] = extent_of(statement.value)
    shared = [a.buffer for a in _allocations(kernel) if scope_of(a.buffer).startswith("shared")]
    lds = sum(prod(_known(b)) * _bytes(str(b.dtype)) for b in shared)
    gx, gy, gz = (extents[f"blockIdx.{axis}"] for axis in _AXES)
    bx, by, bz = (_threads(extents[f"threadIdx.{axis}"]) for axis in _AXES)
    parameters = tuple(_taken(p) for p in kernel.params)
    return LoweredKernel(symbol, parameters, (gx, gy, gz), (bx, by, bz), lds)


def _known(buffer: tirx.Buffer) -> list[int]:
    """The extents of a buffer in LDS."""
    for extent in buffer.shape:
        if not isinstance(extent, tirx.IntImm):
            raise LoweringError(f"`{buffer.name}` is in LDS, and of no fixed size: {extent}")
    return [int(extent) for extent in buffer.shape]


def _threads(extent: Extent) -> int:
    if not isinstance(extent, int):
        raise LoweringError(f"the number of threads of a block is symbolic: {extent}")
    return extent
