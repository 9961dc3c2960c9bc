"""The target that TVM compiles for."""

from __future__ import annotations

import pytest

import mfmadsl
from mfmadsl.model import ARCHITECTURES


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_it_is_of_rocm_for_the_chip_and_of_llvm_for_the_host(arch: str) -> None:
    target = mfmadsl.target(arch)
    assert (target.kind.name, target.attrs["mcpu"]) == ("rocm", arch)
    assert target.host.kind.name == "llvm"
    assert int(target.attrs["thread_warp_size"]) == ARCHITECTURES[arch].wave_size


@pytest.mark.parametrize(("arch", "why"), [("gfx1100", "an RDNA chip"), ("sm_90", "sm_90")])
def test_another_chip_is_refused_by_its_name(arch: str, why: str) -> None:
    with pytest.raises(mfmadsl.ArgumentError, match=f"arch: .*{why}"):
        mfmadsl.target(arch)
