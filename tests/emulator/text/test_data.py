"""Data in text, as sections at addresses."""

from __future__ import annotations

import random

import pytest

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.text.data import CODE, DataSection, data_of, data_text

CONTENTS = {
    "values": bytes(range(200)),
    "zeros": bytes(1000),
    "values_between_zeros": bytes(320) + b"position" + bytes(129) + b"x",
    "few": b"abc",
    "random": random.Random(7).randbytes(333),
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("writable", [False, True])
def test_what_is_written_is_read(name: str, writable: bool) -> None:
    text = data_text(".rodata", 0x1230, CONTENTS[name], writable, code=False)
    (found,) = data_of(text.splitlines())
    assert found == DataSection(".rodata", CODE + 0x1230, CONTENTS[name], writable)
    assert name != "zeros" or len(text) < 100


def test_sections_are_in_the_order_of_their_addresses() -> None:
    parts = [data_text(f".part{place}", place, b"12345678", False, False) for place in (64, 8, 32)]
    lines = "\n".join(["\ts_nop 0", *parts, "\t.text", "\ts_endpgm"]).splitlines()
    assert [each.address - CODE for each in data_of(lines)] == [8, 32, 64]


def test_sections_without_an_address_are_none() -> None:
    assert data_of(['\t.section\t.rodata,"a",@progbits', "\t.quad\t0x1"]) == ()


def test_data_far_away_is_refused() -> None:
    lines = data_text(".rodata", 1 << 40, b"12345678", False, False).splitlines()
    with pytest.raises(EmulationError, match=r"line 1: .*ends at 0x10000000008: data is read"):
        data_of(lines)


def test_what_is_no_data_is_refused() -> None:
    lines = [*data_text(".rodata", 8, b"12345678", False, False).splitlines(), "\ts_nop 0"]
    with pytest.raises(EmulationError, match="line 3: `s_nop 0`: this is no data"):
        data_of(lines)
