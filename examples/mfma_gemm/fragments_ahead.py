"""Fragments ahead: a second set of registers takes the next fragments while these are used."""

from __future__ import annotations

from dataclasses import replace

from examples.mfma_gemm import loads_in_flight
from mfmadsl.schedule import Tiling


def tiling(arch: str) -> Tiling:
    """Also those of the next step along K, which are read under the last products of this one."""
    return replace(loads_in_flight.tiling(arch), overlap="fragments")
