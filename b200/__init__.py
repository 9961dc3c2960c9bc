"""Runs TIRX kernels for B200 in NumPy, and reports what their synchronisation does not order.

`execute` takes a kernel as `hgemm_vN` returns it, before it is lowered: tile operations as a whole,
PTX instructions one by one. All of it is translated before anything runs, so that what is not
understood is refused by name (`NotUnderstood`) and never skipped.

Who acts: warps, whose threads go the same way with some of them inactive, and beside them TMA and
the tensor cores. Warps take turns in an order that a seed decides. What is asynchronous ends only
when no warp can go on (`late`), or at once; both are allowed, and a right kernel cannot tell.

What orders accesses (vector clocks; `order.py`):
    a barrier hands on what those who arrived knew;
    an mbarrier's phase that counted a TMA load's bytes, hands on that load;
    the mbarrier of a `tcgen05.commit` hands on the MMAs before it, of the same thread;
    `cp.async.bulk.wait_group` hands on the stores of that thread's groups;
    `tcgen05.wait::ld` hands on the warp's reads of tensor memory.
Besides, between threads' accesses to shared memory and those of MMAs and TMA stores there is
`fence.proxy.async`, and between an MMA and a read of tensor memory by other threads there are
`tcgen05.fence::before_thread_sync` (a commit has one within it) and `::after_thread_sync`.

Where this is stricter than a chip: the elected lane is any, a TMA box that leaves its array is a
fault, and so is a CTA that ends before what was issued is known to be over. Where it is coarser:
threads of one warp are in order among themselves and take branches one after the other, the scopes
of releases and acquires are those of the cluster, and a `copy` by a whole CTA gives each warp one
part of the elements.
"""

from b200.launch import execute
from b200.report import Counts, Fault, Kind, NotUnderstood, Report

__all__ = ["Counts", "Fault", "Kind", "NotUnderstood", "Report", "execute"]
