"""Workspaces hold nothing before the first launch that takes them."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import te
from tvm.s_tir import Schedule

import mfmadsl


def test_a_workspace_that_nobody_wrote() -> None:
    """Of two kernels, the second alone: it reads what the first would have written."""
    x = te.placeholder((64,), name="X", dtype="float32")
    y = te.compute((64,), lambda i: x[i] + 1.0, name="Y")
    z = te.compute((64,), lambda i: y[i] * 2.0, name="Z")
    sch = Schedule(te.create_prim_func([x, z]))
    for name in "YZ":
        sch.bind(sch.get_loops(sch.get_sblock(name))[0], "threadIdx.x")
    kernel = mfmadsl.build(sch)
    args = [np.arange(64, dtype=np.float32), np.zeros(64, np.float32)]
    assert not mfmadsl.sanitize(kernel, args).faults
    np.testing.assert_array_equal(args[1], 2 * args[0] + 2)
    assert kernel.next is not None
    with pytest.raises(mfmadsl.EmulationError, match=r"`Y`, .*which nobody wrote"):
        mfmadsl.sanitize(kernel.next, args)
