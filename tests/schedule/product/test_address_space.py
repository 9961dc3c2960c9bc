"""Arrays beyond all addresses are refused in words of ours, on GPUs and CPUs."""

from __future__ import annotations

import pytest

import mfmadsl
from mfmadsl.schedule import ScheduleError, prepared

MOST = 2**31 - 1


@pytest.mark.parametrize("size", [(MOST, MOST, MOST), (2**24, 2**24, 2**12), (16, 2**30, 2**30)])
def test_more_bytes_than_addresses_are_refused(size: tuple[int, int, int]) -> None:
    workload = mfmadsl.matmul(*size, "float32", "float32")
    with pytest.raises(ScheduleError, match=r"has \S+ bytes, and addresses have 48 bits"):
        mfmadsl.gemm_schedule(workload, arch="gfx942")
    with pytest.raises(ScheduleError, match=r"has \S+ bytes, and addresses have 48 bits"):
        mfmadsl.cpu_gemm_schedule(workload)


def test_what_addresses_reach_is_taken() -> None:
    assert prepared(mfmadsl.matmul(2**23, 2**23, 64, "float32", "float32")) is not None
