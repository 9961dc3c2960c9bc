"""What a loop may be annotated with, and what is said of anything else."""

from __future__ import annotations

from typing import Any

import pytest

import mfmadsl
from mfmadsl.backend import LoweringError
from mfmadsl.schedule import gemm_schedule
from tests.schedule.gemm.workloads import Workload


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
        ("mfmadsl.pipeline", 0, "is a number from 1 to 4, not 0"),
        ("mfmadsl.pipeline", 5, "is a number from 1 to 4, not 5"),
        ("mfmadsl.pipeline", "yes", "is a number from 1 to 4, not yes"),
        ("mfmadsl.swizzle", 2, "is 0 or 1, not 2"),
        ("mfmadsl.edges", 3, "is names of tiles, not 3"),
        ("mfmadsl.grid.group", 0, "is a number from 1 to 2^31 - 1, not 0"),
        ("mfmadsl.grid.dies", -1, "is a number from 1 to 2^31 - 1, not -1"),
        ("mfmadsl.grid.workgroups", 1 << 31, "is a number from 1 to 2^31 - 1, not 2147483648"),
        ("mfmadsl.grid.groups", 4, "no annotation is called mfmadsl.grid.groups: there are"),
        ("mfmadsl.pipelin", 1, "no annotation is called mfmadsl.pipelin: there are"),
    ],
)
def test_one_that_says_nothing_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(LoweringError) as caught:
        built(name, value)
    assert message in str(caught.value)


def test_those_of_others_are_none_of_ours() -> None:
    assert not built("pragma_of_mine", "x").remarks
