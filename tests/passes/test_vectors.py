"""`check_vectors`: what a vectorized loop would lose is refused."""

from __future__ import annotations

import pytest
from tvm import te
from tvm.s_tir import Schedule

import mfmadsl
from mfmadsl.passes import LoweringError


def copied(through: int) -> Schedule:
    """A copy of vectors of four, by registers that are filled in loop `through`."""
    a = te.placeholder((256,), name="A", dtype="float32")
    sch = Schedule(te.create_prim_func([a, te.compute((256,), lambda i: a[i] + 1, name="B")]))
    block = sch.get_sblock("B")
    thread, vector = sch.split(sch.get_loops(block)[0], [64, 4])
    sch.bind(thread, "threadIdx.x")
    sch.vectorize(vector)
    sch.compute_at(sch.cache_read(block, 0, "local"), sch.get_loops(block)[through])
    return sch


def test_one_register_for_all_turns_of_a_vector() -> None:
    with pytest.raises(LoweringError, match=r"fills one place of `A_local` in all its turns"):
        mfmadsl.build(copied(1))


def test_a_register_for_each_is_built() -> None:
    assert mfmadsl.build(copied(0)).registers.vector
