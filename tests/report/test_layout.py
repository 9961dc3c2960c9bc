"""Where modifiers make an instruction read its operands from."""

from __future__ import annotations

import pytest

from mfmadsl.language import find
from mfmadsl.model import Modifiers
from mfmadsl.report.layout import locate


@pytest.mark.parametrize(("cbsz", "moved"), [(0, True), (1, False)])
def test_abid_chooses_a_set_of_the_index_only_if_cbsz_is_0(cbsz: int, moved: bool) -> None:
    """CDNA3 ISA, section 7.1.5: else it is the first set."""
    index = find("smfmac_f32_16x16x32_f16").operand("index")
    for row, column in ((0, 0), (7, 13), (15, 31)):
        plain = locate(index, row, column)
        found = locate(index, row, column, 0, Modifiers(cbsz=cbsz, abid=3))
        assert (found.lane, found.register) == (plain.lane, plain.register)
        assert found.low - plain.low == found.high - plain.high == (24 if moved else 0)
