"""What a loop may be annotated with, and what is said of anything else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV

import mfmadsl
from examples.fused_chain.run import SCALE, SMALL, chain_schedule
from mfmadsl.backend import LoweringError
from mfmadsl.model import OVERLAPS
from mfmadsl.schedule import gemm_schedule
from tests.passes.own_product import assert_right, own_product
from tests.schedule.matrix_core.gemm.workloads import Workload


def built(name: str, value: Any) -> mfmadsl.Kernel:
    """A product, with an annotation of the loop over tiles of N besides its own."""
    sch = gemm_schedule(Workload(65, 33, 100).function())
    main = next(b for b in ("C_update", "C_o_update", "C_rf_o_update") if _has(sch, b))
    loop = sch.get_loops(sch.get_sblock(main))[0]
    sch.annotate(loop, name, value)
    return mfmadsl.build(sch)


def _has(sch: Any, name: str) -> bool:
    try:
        sch.get_sblock(name)
    except Exception:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mfmadsl.pipeline", -1, "is a number from 0 to 4, not -1"),
        ("mfmadsl.pipeline", 5, "is a number from 0 to 4, not 5"),
        ("mfmadsl.pipeline", "yes", "is a number from 0 to 4, not yes"),
        ("mfmadsl.swizzle", 2, "is 0 or 1, not 2"),
        ("mfmadsl.edges", 3, "is names of tiles, not 3"),
        ("mfmadsl.grid.group", 0, "is a number from 1 to 2^31 - 1, not 0"),
        ("mfmadsl.grid.dies", -1, "is a number from 1 to 2^31 - 1, not -1"),
        ("mfmadsl.grid.workgroups", 1 << 31, "is a number from 1 to 2^31 - 1, not 2147483648"),
        ("mfmadsl.grid.groups", 4, "no annotation is called mfmadsl.grid.groups: there are"),
        ("mfmadsl.pipelin", 1, "no annotation is called mfmadsl.pipelin: there are"),
        ("mfmadsl.overlap", "all", "stands on the loop of mfmadsl.pipeline only"),
    ],
)
def test_one_that_says_nothing_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(LoweringError) as caught:
        built(name, value)
    assert message in str(caught.value)


def test_those_of_others_are_none_of_ours() -> None:
    assert not built("pragma_of_mine", "x").remarks


def own(name: str, value: Any, stages: int = 1, k_step: int = 64) -> mfmadsl.Kernel:
    """A product by hand, with an annotation of its main loop besides the pipeline's."""
    sch = own_product(k_step)
    loop = main_loop_of(sch)
    sch.unannotate(loop, "mfmadsl.pipeline")
    sch.annotate(loop, "mfmadsl.pipeline", stages)
    sch.annotate(loop, name, value)
    return mfmadsl.build(sch)


def main_loop_of(sch: Schedule) -> LoopRV:
    """The loop that is annotated for the pipeline."""
    blocks = sch.get_child_blocks(sch.get_sblock("root"))
    loops = [loop for block in blocks for loop in sch.get_loops(block)]
    return next(loop for loop in loops if "mfmadsl.pipeline" in sch.get(loop).annotations)


@pytest.mark.parametrize(
    ("value", "stages", "message"),
    [
        ("some", 1, "is one of nothing, loads, fragments, all, not"),
        ("", 1, "is one of nothing, loads, fragments, all, not"),
        (1, 1, "is one of nothing, loads, fragments, all, not 1"),
        ("loads", 2, '"loads" needs mfmadsl.pipeline of 1'),
        ("nothing", 2, '"nothing" needs mfmadsl.pipeline of 1'),
    ],
)
def test_an_overlap_that_there_is_not_is_refused(value: Any, stages: int, message: str) -> None:
    with pytest.raises(LoweringError) as caught:
        own("mfmadsl.overlap", value, stages)
    assert str(caught.value).startswith(f"annotation mfmadsl.overlap: {message}")


def test_each_overlap_is_another_kernel_and_right() -> None:
    kernels = [own("mfmadsl.overlap", value) for value in OVERLAPS]
    for kernel in kernels:
        assert not kernel.remarks
        assert_right(kernel)
    assert len({kernel.assembly for kernel in kernels}) == len(OVERLAPS)
    assert mfmadsl.build(own_product(64)).assembly == kernels[-1].assembly


def test_of_one_register_step_loads_come_ahead_if_that_is_asked_for() -> None:
    """There are no fragments to read ahead: all else is in turn."""
    kernels = {value: own("mfmadsl.overlap", value, k_step=8) for value in OVERLAPS}
    for kernel in kernels.values():
        assert not kernel.remarks
        assert_right(kernel)
    made = {value: kernel.assembly for value, kernel in kernels.items()}
    assert made["nothing"] == made["fragments"] == made["all"] != made["loads"]


@pytest.mark.parametrize("value", OVERLAPS)
def test_a_loop_that_is_no_sum_keeps_its_order(value: str) -> None:
    """Two products and what is between them: each turn needs what it computed before."""
    sch = chain_schedule(SMALL)
    sch.annotate(main_loop_of(sch), "mfmadsl.overlap", value)
    kernel = mfmadsl.build(sch)
    assert not kernel.remarks
    arrays = SMALL.arrays()
    mfmadsl.sanitize(kernel, arrays)
    plain = SMALL.arrays()
    mfmadsl.emulate(mfmadsl.build(chain_schedule(SMALL)), plain)
    assert arrays[-1].tobytes() == plain[-1].tobytes()
    a, b, c, f = (x.astype(np.float64) for x in arrays)
    e = np.exp(a @ b.T * SCALE)
    assert (np.abs(f - e @ c) <= 2.0**-10 * (e @ np.abs(c))).all()
