"""`relax_pipeline="mfmadsl"`: TVM's own pipeline for ROCm, in which products are ours."""

from __future__ import annotations

import tvm
from tvm import relax, tirx
from tvm.relax.backend.rocm import pipeline as rocm
from tvm.s_tir.dlight import gpu
from tvm.target import Target
from tvm.tirx import Expr, IntImm, PrimFunc

from mfmadsl.backend.gpu.kernel import CODE_OBJECT_VERSIONS, check_code_object_version
from mfmadsl.error import ArgumentError
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.relax.attention import part_attention
from mfmadsl.relax.build import SCHEDULED
from mfmadsl.relax.copies import fuse_copies
from mfmadsl.relax.integer import multiply_bytes
from mfmadsl.relax.kv_cache.replace import with_cache_kernels
from mfmadsl.relax.lowering import CODE_OBJECT_VERSION, PIPELINE
from mfmadsl.relax.norms import fuse_norms
from mfmadsl.relax.pairs import fuse_pairs
from mfmadsl.relax.plain import plain_schedule
from mfmadsl.relax.prologue import fuse_dequantised
from mfmadsl.relax.report import Report, Scheduled, with_reasons
from mfmadsl.relax.rows import row_schedule
from mfmadsl.relax.rule import scheduled_product
from mfmadsl.schedule.product.index_type import has_narrow_extents, in_64_bits


class Pipeline:
    """A pipeline for `tvm.compile(..., relax_pipeline=)`; `report` tells who took which function.

    The module is for the target of `tvm.compile`, one of `mfmadsl.target`. Transpositions before
    products, what follows them, and weights that are dequantised before them become part of them.
    """

    def __init__(self, code_object_version: int = CODE_OBJECT_VERSIONS[0]) -> None:
        """Raise ArgumentError for a version that is not emitted."""
        self.code_object_version = check_code_object_version(code_object_version)
        self._report = Report()

    @property
    def report(self) -> Report:
        """The report about the last module."""
        return self._report

    def __call__(self, module: tvm.IRModule) -> tvm.IRModule:
        """The module, ready for Relax's virtual machine and `tir_pipeline="mfmadsl"`."""
        target = Target.current(allow_none=True)
        if target is None or target.kind.name != "rocm":
            other = target.kind.name if target else None
            raise ArgumentError(
                f"target: this pipeline is for one of `mfmadsl.target`, not {other}"
            )
        module, cached = with_cache_kernels(module, target)
        apart: dict[str, str] = {}
        module, others = scheduled(fused(module, target, apart), target)
        self._report = Report((*with_reasons(others, apart).functions, *cached))
        passes = [*rocm.dataflow_lower_passes(target), *rocm.finalize_passes(target)]
        attributes = {CODE_OBJECT_VERSION: self.code_object_version, SCHEDULED: True}
        ready: tvm.IRModule = tvm.transform.Sequential(passes)(module).with_attrs(attributes)
        return ready


def fused(
    module: tvm.IRModule, target: Target, apart: dict[str, str] | None = None
) -> tvm.IRModule:
    """A module of Relax as calls of PrimFuncs, each of which does as much as one kernel can; why
    some could not become parts of products is told in `apart`."""
    apart = {} if apart is None else apart
    transform = relax.transform
    passes = [
        *rocm.library_dispatch_passes(target),
        # Normalisations of a batch become element-wise, and stand behind the product before them.
        transform.DecomposeOpsForInference(),
        transform.CanonicalizeBindings(),
        transform.DeadCodeElimination(),
        tvm.transform.module_pass(_transposes_fused, opt_level=0),
        transform.LegalizeOps(),
        transform.AnnotateTIROpPattern(),
        transform.FoldConstant(),
        transform.FuseOps(),
        transform.FuseTIR(),
    ]
    parted = multiply_bytes(part_attention(_with_wide_extents(module), target))
    whole: tvm.IRModule = tvm.transform.Sequential(passes)(parted)
    whole = fuse_pairs(fuse_dequantised(whole, target, apart), target)
    return fuse_copies(fuse_norms(whole, target, apart), target, apart)


def _with_wide_extents(module: tvm.IRModule) -> tvm.IRModule:
    """The module with numbers of 64 bits as extents of PrimFuncs, as Relax has them and TVM's
    fusion needs."""
    changed: tvm.IRModule = module.clone()
    for variable, function in module.functions_items():
        if isinstance(function, PrimFunc) and has_narrow_extents(function):
            changed.update_func(variable, in_64_bits(function))
    return changed


def _transposes_fused(module: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
    """Transpositions as parts of the products behind them.

    TVM's pass does not come to its end where both factors are one array, and leaves variables
    without a value where it would write an extent otherwise; such a module keeps them.
    """
    try:
        fused: tvm.IRModule = relax.transform.FuseTransposeMatmul()(_with_symbols_first(module))
    except (IndexError, tvm.error.InternalError):
        return module
    lost = any(
        relax.analysis.free_vars(function)
        for _, function in fused.functions_items()
        if isinstance(function, relax.Function)
    )
    return module if lost else fused


def _with_symbols_first(module: tvm.IRModule) -> tvm.IRModule:
    """The module with extents of s * 2 in place of 2 * s, as TVM's builder writes them."""

    def symbol_first(product: tirx.Mul) -> Expr:
        is_last = isinstance(product.a, IntImm) and not isinstance(product.b, IntImm)
        return tirx.Mul(product.b, product.a) if is_last else product

    module = module.clone()
    for variable, function in list(module.functions_items()):
        if isinstance(function, relax.Function):
            changed = mapped(function, (tirx.Mul, symbol_first))
            module.update_func(variable, changed)
    return module


def scheduled(module: tvm.IRModule, target: Target) -> tuple[tvm.IRModule, Report]:
    """A module whose PrimFuncs are scheduled: products by us, others by dlight's rules."""
    rules = (gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback())
    found: dict[tvm.ir.GlobalVar, PrimFunc] = {}
    report: list[Scheduled] = []
    for variable, function in module.functions_items():
        if not isinstance(function, PrimFunc) or _is_done(function):
            continue
        name = str(variable.name_hint)
        schedule, line = scheduled_product(name, function, target)
        if schedule is None and (schedule := plain_schedule(function)) is not None:
            line = Scheduled(name, "plain", reason=line.reason)
        if schedule is None and (schedule := row_schedule(function)) is not None:
            line = Scheduled(name, "rows", reason=line.reason)
        for rule in rules:
            if schedule is not None:
                break
            schedule = rule.apply(function, target, False)
            if schedule is not None:
                line = Scheduled(name, type(rule).__name__, reason=line.reason)
        report.append(line)
        if schedule is not None:
            found[variable] = schedule.mod["main"].with_attr("tirx.is_scheduled", True)
    module = module.clone()
    for variable, function in found.items():
        module.update_func(variable, function)
    return module, Report(tuple(report))


def _is_done(function: PrimFunc) -> bool:
    """Whether it is scheduled already, or the host's."""
    attributes = function.attrs or {}
    own = attributes.get("target")
    return (
        bool(attributes.get("tirx.is_scheduled", False))
        or bool(attributes.get("tirx.is_host_func", False))
        or (own is not None and own.kind.name != "rocm")
    )


if PIPELINE not in relax.pipeline.PIPELINE_MAP:
    relax.register_pipeline(PIPELINE)(Pipeline)
