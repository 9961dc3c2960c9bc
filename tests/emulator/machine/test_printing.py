"""What `printf` prints, compared with C's own."""

from __future__ import annotations

import ctypes
import struct

import pytest

from mfmadsl.emulator.machine.printing import printed


def words(text: str) -> list[int]:
    """A string as it lies in words: with a zero behind it."""
    content = text.encode() + b"\0"
    content += b"\0" * (-len(content) % 8)
    return list(struct.unpack(f"<{len(content) // 8}Q", content))


def double(value: float) -> int:
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return int(bits)


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("%d", -5), ("%5d|", -5), ("%-5d|", 5), ("%05u", 77), ("%+d", 3), ("%x %%", 255),
        ("%#X", 255), ("%o", 8), ("%c", 65), ("%lld", -(1 << 40)), ("%llu", (1 << 64) - 1),
        ("%hhd", 200), ("%.3d", 7), ("no argument, 100%%", 0),
    ],
)  # fmt: skip
def test_integers_are_printed_as_in_c(form: str, value: int) -> None:
    room = ctypes.create_string_buffer(256)
    wide = ctypes.c_longlong if "ll" in form else ctypes.c_int
    ctypes.CDLL(None).snprintf(room, 256, form.encode(), wide(value))
    assert printed([*words(form), value & (1 << 64) - 1]) == room.value.decode()


@pytest.mark.parametrize("form", ["%f", "%10.3e|", "%g", "%-8.2F|", "%.0f", "%G"])
def test_floats_are_printed_as_in_c(form: str) -> None:
    room = ctypes.create_string_buffer(256)
    for value in (1.5, -1e30, 0.1, float("inf")):
        ctypes.CDLL(None).snprintf(room, 256, form.encode(), ctypes.c_double(value))
        assert printed([*words(form), double(value)]) == room.value.decode()


def test_strings_and_widths_lie_between_other_arguments() -> None:
    told = [*words("%s has %*d of %.*f\n"), *words("lane 12345678"), 6, 42, 2, double(3.14159)]
    assert printed(told) == "lane 12345678 has     42 of 3.14\n"


def test_what_is_missing_or_broken_does_not_matter() -> None:
    assert printed([]) == ""
    assert printed(words("%d %s|")) == "0 |"
    assert printed([*words("%9999999d"), 1]) == "%9999999d"
    assert printed([*words("%q"), 1]) == "%q"
