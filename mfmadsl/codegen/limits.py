"""What the language can say and a generated module cannot."""

from __future__ import annotations

from mfmadsl.error import MfmadslError
from mfmadsl.model import Intrinsic
from mfmadsl.model.signature import SCALED_FORMATS


class ModuleError(MfmadslError, ValueError):
    """No module can be made of an intrinsic; the message says why."""


def check_expressible(intrinsic: Intrinsic) -> None:
    """Raises ModuleError for an intrinsic that the templates do not cover."""
    kind = "sparse" if intrinsic.sparse else "scaled" if intrinsic.scales else ""
    if kind and intrinsic.blocks > 1:
        raise ModuleError(f"{intrinsic.name} is {kind} and has several blocks: there is no such")
    for operand in (intrinsic.a, intrinsic.b):
        narrow = operand.type.short in SCALED_FORMATS
        if intrinsic.scales and not narrow:
            raise ModuleError(
                f"{intrinsic.name} is scaled, so that `{operand.name}` is one of "
                f"{', '.join(SCALED_FORMATS)}, and not {operand.type.name}"
            )
        if operand.type.bits < 8 and not intrinsic.scales:
            raise ModuleError(
                f"{intrinsic.name} has no scales, but `{operand.name}` is {operand.type.name}: "
                "elements of fewer than eight bits are for scaled instructions"
            )
    if intrinsic.index is not None:
        _check_index(intrinsic)


def _check_index(intrinsic: Intrinsic) -> None:
    """The template takes all indices of a lane as one number of 8, 16 or 32 bits."""
    index = intrinsic.index
    assert index is not None
    try:
        octets = index.layout.packed(index.type.bits).elements_per_lane
    except (KeyError, ValueError):
        octets = 0  # those of one lane do not lie in neighbouring bits
    if octets not in (1, 2, 4):
        raise ModuleError(
            f"{intrinsic.name}: the indices that a lane holds are not 8, 16 or 32 bits side by side"
        )
