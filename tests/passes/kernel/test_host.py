"""What is computed in no kernel is refused: the host only launches."""

from __future__ import annotations

import pytest
from tvm import te
from tvm.s_tir import Schedule

from mfmadsl.backend import LoweringError, build


def test_a_block_whose_loops_are_bound_to_nothing() -> None:
    x = te.placeholder((128,), name="X", dtype="float32")
    y = te.compute((128,), lambda i: x[i] + 1.0, name="Y")
    z = te.compute((128,), lambda i: y[i] * 2.0, name="Z")
    sch = Schedule(te.create_prim_func([x, z]))
    group, thread = sch.split(sch.get_loops(sch.get_sblock("Z"))[0], [None, 64])
    sch.bind(group, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    with pytest.raises(LoweringError, match="`Y` is computed in no kernel: bind the loops"):
        build(sch)
    sch.compute_inline(sch.get_sblock("Y"))
    assert build(sch).next is None
