"""Causal order: workgroups that see most keys begin first.

This is the kernel of `mfmadsl.attention_schedule` for a causal attention.
"""

from __future__ import annotations

from tvm.s_tir import Schedule

from examples.attention import skewed
from examples.attention.kernel import CAUSAL, cut_of, scheduled
from examples.attention.size import Size


def schedule(size: Size, arch: str) -> Schedule:
    """The work of the step before, in another order."""
    cut = cut_of(size, CAUSAL[arch], arch, causal=True)
    return scheduled(cut, skewed.body, last_first=True)
