"""A scaled instruction without its scales: whose it can be, and what stays."""

from __future__ import annotations

import pytest

from mfmadsl.error import ArgumentError
from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic, packed, unscaled

SCALED = [i for i in library().values() if i.scales]


@pytest.mark.parametrize("scaled", SCALED, ids=lambda i: i.name)
def test_eight_bits_have_a_plain_product(scaled: Intrinsic) -> None:
    if {scaled.a.type.bits, scaled.b.type.bits} != {8}:
        with pytest.raises(ArgumentError, match="only of elements of eight bits"):
            unscaled(scaled)
        return
    plain = unscaled(scaled)
    assert plain.unscaled
    assert not plain.scales
    assert plain.name == f"{scaled.name}_unscaled"
    assert (plain.a, plain.b, plain.c, plain.call) == (scaled.a, scaled.b, scaled.c, scaled.call)
    assert unscaled(plain) is plain
    assert packed(plain, 2).k == 2 * scaled.k


def test_a_plain_instruction_is_its_own() -> None:
    plain = find("mfma_f32_16x16x16_f16")
    assert unscaled(plain) is plain
