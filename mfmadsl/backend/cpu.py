import tvm
from tvm import s_tir, tirx

from mfmadsl.backend.pipeline import of_functions
from mfmadsl.passes.edge_lanes import mask_edge_lanes
from mfmadsl.passes.read_through import read_through_copies

def cpu_pipeline():
    s, t = s_tir.transform, tirx.transform
    @tvm.transform.module_pass(opt_level=0)
    def lower(mod, ctx):
        for each in [
            s.CanonicalizeLoop(),
            s.LowerInitBlock(),
            s.PlanAndUpdateBufferAllocationLocation(),
            s.ConvertBlocksToOpaque(),
            s.CompactBufferAllocation(),
            s.LowerMatchBuffer(),
            s.StmtSimplify(),
            s.AnnotateIrregularLoop(),
            s.LowerOpaqueBlock(),
            t.FlattenBuffer(),
            t.BF16ComputeLegalize(),
            t.NarrowDataType(32),
            s.LoopPartition(),
            of_functions(read_through_copies),
            t.ConvertSSA(),
            of_functions(mask_edge_lanes),
            t.VectorizeLoop(True),
            t.StorageRewrite(),
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
            t.FP8StorageLegalize(),
            t.BF16StorageLegalize(),
        ]:
            mod = each(mod)
        return mod
    from tvm.s_tir.pipeline import finalize_host_passes, finalize_device_passes
    return lower, finalize_host_passes, finalize_device_passes
