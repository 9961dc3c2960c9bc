"""Where modifiers make an instruction read its operands from."""

from __future__ import annotations

import pytest

from mfmadsl.language import Source, find, load_source
from mfmadsl.model import Modifiers
from mfmadsl.report.layout import locate
from mfmadsl.report.picture.look import Look
from mfmadsl.report.picture.table import look_text
from tests.language.entries import HALF


@pytest.mark.parametrize(("cbsz", "moved"), [(0, True), (1, False)])
def test_abid_chooses_a_set_of_the_index_only_if_cbsz_is_0(cbsz: int, moved: bool) -> None:
    """CDNA3 ISA, section 7.1.5: else it is the first set."""
    index = find("smfmac_f32_16x16x32_f16").operand("index")
    for row, column in ((0, 0), (7, 13), (15, 31)):
        plain = locate(index, row, column)
        found = locate(index, row, column, 0, Modifiers(cbsz=cbsz, abid=3))
        assert (found.lane, found.register) == (plain.lane, plain.register)
        assert found.low - plain.low == found.high - plain.high == (24 if moved else 0)


def test_a_layout_that_no_formula_tells_is_drawn_all_the_same() -> None:
    text = HALF.replace("operand(i, k, pack=4)", "turned(i, k)") + (
        "layout turned(i, k) { lane = (i + k) % 16 + 16 * (k / 4) register = k % 4 }"
    )
    (intrinsic,) = load_source(Source("turned.mfma", text))
    told = look_text(Look(intrinsic, ("a",)))
    assert "a       float16[i, k] in 2 registers a lane, where no sum of digits says" in told
    assert "b       float16[k, j] in 2 registers a lane: lane = k // 4 * 16 + j" in told
    assert "31:1[16:31]" in told  # A[10, 5]: lane 15 + 16, register 1 of four 16-bit ones
