"""`tir_pipeline="mfmadsl"`: PrimFuncs through our passes and back end, and what launches them.

A PrimFunc becomes a function of the host, which is TVM's but for how it launches kernels, and
kernels of which TVM sees the parameters alone: what they do is LLVM IR, optimized and corrected, in
an attribute. `build` makes a code object of it.
"""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm.ir import GlobalVar
from tvm.s_tir.pipeline import finalize_host_passes
from tvm.target import Target
from tvm.tirx import BufferStore, PrimFunc
from tvm.tirx.compilation_pipeline import get_tir_pipeline, register_tir_pipeline

from mfmadsl.backend.error import CodegenError
from mfmadsl.backend.gpu.build import Emitted, emit_kernels
from mfmadsl.backend.gpu.kernel import CODE_OBJECT_VERSIONS, check_code_object_version
from mfmadsl.backend.gpu.linker import LinkError
from mfmadsl.backend.gpu.lower import in_order, parameter_names, split
from mfmadsl.backend.gpu.names import named_apart
from mfmadsl.backend.isolate import ProcessEndedError, run_isolated
from mfmadsl.error import ArgumentError, ArgumentTypeError
from mfmadsl.language import reads
from mfmadsl.model import architecture
from mfmadsl.passes import LoweringError
from mfmadsl.passes.kernel.cases import marked_cases
from mfmadsl.passes.kernel.factor import with_factors
from mfmadsl.passes.kernel.offset import offsets_of
from mfmadsl.passes.tir.walk import walk
from mfmadsl.relax.host import HostLaunch, launching, nothing_done
from mfmadsl.tvm_refusal import tvm_refusal

PIPELINE = "mfmadsl"
"""What `tvm.compile` knows this pipeline and that of Relax by."""

CODE_OBJECT_VERSION = "mfmadsl.code_object_version"
"""The attribute of a module that says which version its code objects are to have."""

LLVM_IR = "mfmadsl.llvm_ir"
"""The attribute of a kernel that is lowered: LLVM IR, optimized, to be emitted by us."""


def lowered(module: tvm.IRModule) -> tvm.IRModule:
    """The functions for ROCm as kernels and the host's functions that launch them.

    Others become what TVM's own pipeline makes of them. Raises LoweringError and CodegenError, with
    the name of the function, for one of which no kernel can be made.
    """
    given = (module.attrs or {}).get(CODE_OBJECT_VERSION, CODE_OBJECT_VERSIONS[0])
    version = check_code_object_version(given)
    own = {v: marked_cases(with_factors(f)) for v, f in module.functions_items() if _has_kernels(f)}
    others = {v: f for v, f in module.functions_items() if v not in own}
    found: dict[GlobalVar, PrimFunc] = {}
    if others:
        default, _, _ = get_tir_pipeline("s_tir")
        found |= dict(default(tvm.IRModule(others, attrs=module.attrs)).functions_items())
    for variable, function in own.items():
        host, kernels = _parts(str(variable.name_hint), function, version)
        alone = len(module.functions) == 1
        found[variable] = host if alone else host.without_attr("tirx.is_entry_func")
        found |= {GlobalVar(symbol): kernel for symbol, kernel in kernels.items()}
    names = [str(variable.name_hint) for variable in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise LoweringError(
            f"`{twice[0]}` is a function, and what a kernel of another one is called: rename it"
        )
    return tvm.IRModule(found, attrs=module.attrs)


def _has_kernels(function: PrimFunc) -> bool:
    """Whether it is for ROCm and stores anything: one that only calls others is the host's."""
    stores: list[BufferStore] = []
    walk(function.body, (BufferStore, stores.append))
    return function.attrs["target"].kind.name == "rocm" and bool(stores)


def _parts(name: str, function: PrimFunc, version: int) -> tuple[PrimFunc, dict[str, PrimFunc]]:
    """The host's function, and the kernels, by their symbols."""
    target: Target = function.attrs["target"]
    chip = architecture(str(target.attrs["mcpu"]))
    symbol = function.attrs.get("global_symbol", name)
    reads()  # what the child reads of files is lost with it
    try:
        with tvm_refusal("the function", LoweringError):
            function = function.with_attr("global_symbol", symbol).without_attr("target")
            function = named_apart(function)
            parts = split(function, chip, target.host)
            names = parameter_names(function)
            kernels = [(each, in_order(kernel, names)) for each, kernel in parts.kernels]
            emitted = run_isolated(lambda: emit_kernels(kernels, chip, version))
            launches = [
                HostLaunch(before, after, each.launch)
                for (_, before), (_, after), each in zip(
                    parts.kernels, kernels, emitted, strict=True
                )
            ]
            host = launching(parts.host, launches, offsets_of(function))
    except (ProcessEndedError, CodegenError) as error:
        raise CodegenError(f"function `{name}` for {chip.name}: {error}") from None
    except LoweringError as error:
        raise LoweringError(f"function `{name}`: {error}") from None
    return host, {
        each.launch.symbol: _stub(launched, each)
        for launched, each in zip(launches, emitted, strict=True)
    }


def _stub(launched: HostLaunch, emitted: Emitted) -> PrimFunc:
    """A kernel as the host sees it, with its code in an attribute."""
    return nothing_done(launched).with_attr(LLVM_IR, emitted.code.optimized)


def _pipeline() -> tuple[tvm.transform.Pass, object, object]:
    """In the form in which TVM wants it."""

    def whole(module: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        return lowered(module)

    def nothing() -> tvm.transform.Pass:
        return tvm.transform.Sequential([])

    return tvm.transform.module_pass(whole, opt_level=0), finalize_host_passes, nothing


register_tir_pipeline(PIPELINE, _pipeline)
for _kind in (ArgumentError, ArgumentTypeError, CodegenError, LinkError):
    tvm_ffi.register_error(_kind.__name__, _kind)  # TVM would make a RuntimeError of each
