"""The passes that make a function for a CPU of a PrimFunc: TVM's for S-TIR, and ours among them.

What differs from `tvm/s_tir/pipeline.py`: passes that are for threads of a GPU only, or that an
option of TVM's switches on, are left out; so is BF16ComputeLegalize, which would make float32 of
the panels that tile registers take.
"""

from __future__ import annotations

import tvm
from tvm import s_tir, tirx
from tvm.ir import PrimType
from tvm.s_tir.pipeline import finalize_device_passes, finalize_host_passes
from tvm.tirx import Buffer, PrimFunc, Var
from tvm.tirx.compilation_pipeline import register_tir_pipeline

from mfmadsl.backend.function_pass import Pass, of_functions
from mfmadsl.passes.cpu.bfloat import compute_bfloats
from mfmadsl.passes.cpu.edge_lanes import mask_edge_lanes
from mfmadsl.passes.cpu.exponential import expand_exponentials
from mfmadsl.passes.cpu.interleave import interleave_rows
from mfmadsl.passes.cpu.prefetch import prefetch_vectors
from mfmadsl.passes.cpu.read_through import read_through_copies
from mfmadsl.passes.cpu.stack import apart, keep_on_stack
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.passes.types.bits import move_bits
from mfmadsl.passes.types.sums import wrapping_sums

CPU_PIPELINE = "mfmadsl_cpu"
"""What `tvm.compile(..., tir_pipeline=)` and `tvm.tirx.build` know the passes by."""


def cpu_passes() -> list[Pass]:
    """The passes, in their order."""
    s, t = s_tir.transform, tirx.transform
    return [
        s.CanonicalizeLoop(),
        s.LowerInitBlock(),
        s.PlanAndUpdateBufferAllocationLocation(),
        s.ConvertBlocksToOpaque(),
        s.CompactBufferAllocation(),
        s.LowerMatchBuffer(),
        s.StmtSimplify(),
        s.AnnotateIrregularLoop(),
        s.LowerOpaqueBlock(),
        of_functions(at_any_address),
        t.FlattenBuffer(),
        of_functions(compute_bfloats),
        t.NarrowDataType(32),
        of_functions(wrapping_sums),
        s.LoopPartition(),
        of_functions(read_through_copies),
        t.ConvertSSA(),
        of_functions(interleave_rows),
        of_functions(mask_edge_lanes),
        # Where it stands several times, each has variables of its own.
        expand_exponentials(),
        t.ConvertSSA(),
        t.VectorizeLoop(True),
        of_functions(prefetch_vectors),
        of_functions(apart),
        t.StorageRewrite(),
        of_functions(keep_on_stack),
        s.HoistIfThenElse(),
        t.UnrollLoop(),
        s.RenormalizeSplitPattern(),
        t.StmtSimplify(),
        t.RemoveNoOp(),
        s.RewriteUnsafeSelect(),
        t.CommonSubexprElim(),
        t.FP8ComputeLegalize(),
        t.VerifyMemory(),
        t.AnnotateEntryFunc(),
        t.SplitHostDevice(),
        t.MakePackedAPI(),
        of_functions(move_bits),
        t.FP8StorageLegalize(),
        t.BF16StorageLegalize(),
    ]


def at_any_address(function: PrimFunc) -> PrimFunc:
    """The function, whose arguments may begin at any of their elements.

    TVM takes them for multiples of 64 bytes, as its own arrays are; NumPy's are not, and a load
    that wants it would end the process.
    """
    own: dict[object, Buffer] = {}
    for parameter in function.params:
        if not isinstance(parameter.ty, PrimType):
            size = max(1, int(tvm.DataType(str(parameter.dtype)).bits) // 8)
            own[parameter.__chandle__()] = tirx.decl_buffer(
                parameter.shape, parameter.dtype, parameter.name, strides=parameter.strides,
                elem_offset=parameter.elem_offset, offset_factor=parameter.offset_factor,
                data_alignment=size,
            )  # fmt: skip
    body = mapped(function.body, (Var, lambda v: own.get(v.__chandle__(), v)))
    parameters = [own.get(p.__chandle__(), p) for p in function.params]
    return PrimFunc(parameters, body, function.ret_type, function.attrs)


def _pipeline() -> tuple[tvm.transform.Pass, object, object]:
    """In the form in which TVM wants it."""

    def lowered(module: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        for each in cpu_passes():
            module = each(module)
        return module

    whole = tvm.transform.module_pass(lowered, opt_level=0)
    return whole, finalize_host_passes, finalize_device_passes


register_tir_pipeline(CPU_PIPELINE, _pipeline)
