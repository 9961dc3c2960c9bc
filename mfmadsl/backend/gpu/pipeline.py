"""The passes that make kernels of a PrimFunc: TVM's for S-TIR, in its order, and ours among them.

What differs from `tvm/s_tir/pipeline.py`: these are left out, besides those that only an option of
TVM's switches on,

- BF16ComputeLegalize, FP8ComputeLegalize: they would make float32 of the registers that a matrix
  core takes; `narrow_types` changes what is computed only.
- CommonSubexprElim: it would hide the lane index from LowerWarpMemory; LLVM does its work.
- MergeSharedMemoryAllocations: its views of one allocation lose the address space of LDS.
- TransformMmaBufferLayout, InferFragment: fragments of NVIDIA's tensor cores.
- StorageRewrite: it makes vectors of elements of what are registers, or elements of LDS.
- ThreadSync of shared.dyn: `lower` makes it `shared`.
- VerifyVTCMLimit, LowerVtcmAlloc: memory of Hexagon.
"""

from __future__ import annotations

from tvm import s_tir, tirx

from mfmadsl.backend.function_pass import Pass, of_functions
from mfmadsl.model import Architecture
from mfmadsl.passes import expand_functions, move_bits, narrow_types, prefer_numbers
from mfmadsl.passes.kernel.ahead import load_ahead
from mfmadsl.passes.kernel.cases import one_case
from mfmadsl.passes.kernel.extent_symbols import use_extents, without_uses
from mfmadsl.passes.kernel.host import check_host
from mfmadsl.passes.kernel.last_workgroup import by_last_workgroups
from mfmadsl.passes.kernel.offset import without_offsets
from mfmadsl.passes.kernel.reduction import reduce_by_waves
from mfmadsl.passes.kernel.registers import registers, unroll_over_registers
from mfmadsl.passes.kernel.requirement import asserted
from mfmadsl.passes.kernel.short_circuit import short_circuit
from mfmadsl.passes.kernel.vectors import serial_where_filled
from mfmadsl.passes.kernel.wide_index import wide_indices
from mfmadsl.passes.main_loop.analysis.cycles import hand_on_cycles
from mfmadsl.passes.main_loop.analysis.parsed import scalar_loops
from mfmadsl.passes.types.small_bfloats import small_bfloats
from mfmadsl.passes.types.small_floats import small_floats
from mfmadsl.passes.types.small_integers import small_integers
from mfmadsl.passes.types.small_nibbles import small_nibbles
from mfmadsl.passes.types.sums import wrapping_sums


def device_passes(chip: Architecture) -> list[Pass]:
    """The passes that split a module with a target into host code and kernels, in their order."""
    s, t = s_tir.transform, tirx.transform
    return [
        of_functions(asserted),
        s.CanonicalizeLoop(),
        s.LowerCrossThreadReduction(),
        s.LowerInitBlock(),
        s.PlanAndUpdateBufferAllocationLocation(),
        s.ConvertBlocksToOpaque(),
        s.LiftThreadBinding(),
        s.ManifestSharedMemoryLocalStage(),
        s.CompactBufferAllocation(),
        s.LowerAutoCopy(),
        s.UnifyThreadBinding(),
        s.LowerMatchBuffer(),
        s.StmtSimplify(),
        s.InjectPermutedLayout(),
        s.AnnotateIrregularLoop(),
        s.InjectSoftwarePipeline(),
        of_functions(lambda function: hand_on_cycles(function, chip)),
        s.LowerOpaqueBlock(),
        of_functions(wide_indices),
        of_functions(registers),
        t.FlattenBuffer(),
        of_functions(without_offsets),
        of_functions(scalar_loops),
        of_functions(lambda function: small_floats(function, chip)),
        of_functions(small_nibbles),
        of_functions(small_integers),
        of_functions(lambda function: small_bfloats(function, chip)),
        of_functions(lambda function: narrow_types(function, chip)),
        of_functions(expand_functions),
        of_functions(load_ahead),
        t.NarrowDataType(32),
        of_functions(wrapping_sums),
        s.LoopPartition(),
        of_functions(serial_where_filled),
        t.VectorizeLoop(True),
        s.InjectVirtualThread(),
        s.InjectDoubleBuffer(),
        of_functions(unroll_over_registers),
        s.HoistIfThenElse(),
        t.UnrollLoop(),
        s.RenormalizeSplitPattern(),
        t.StmtSimplify(),
        t.RemoveNoOp(),
        s.RewriteUnsafeSelect(),
        of_functions(short_circuit),
        t.VerifyMemory(),
        t.AnnotateEntryFunc(),
        s.ThreadSync("shared"),
        s.ThreadSync("warp"),
        of_functions(lambda function: reduce_by_waves(function, chip)),
        s.LowerThreadAllreduce(),
        of_functions(by_last_workgroups),
        of_functions(use_extents),
        of_functions(one_case),
        t.SplitHostDevice(),
        of_functions(without_uses),
        of_functions(check_host),
        t.MakePackedAPI(),
        of_functions(prefer_numbers),
        of_functions(move_bits),
        t.FP8StorageLegalize(),
        t.BF16StorageLegalize(),
    ]
