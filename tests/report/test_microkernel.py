"""Micro-kernels for people and for programs."""

from __future__ import annotations

from mfmadsl.language import find_microkernel
from mfmadsl.report.microkernel import (
    microkernel_json,
    microkernel_summary,
    microkernel_table,
    vectors_json,
)
from mfmadsl.report.picture import grid_text
from mfmadsl.report.picture.vector import vector_register_grids

DOT = find_microkernel("vnni_u8i8_4x16")
SUM = find_microkernel("sse2_f64_4x4")
TILES = find_microkernel("amx_i8_32x32x64")


def test_the_summary_says_where_elements_lie() -> None:
    assert microkernel_summary(DOT).splitlines()[4:] == [
        "shape      m=4 n=16 k=4",
        "call       llvm.x86.avx512.vpdpbusd.512, 4 times",
        "features   avx512vnni",
        "registers  6 vector registers of 512 bits",
        "a          uint8[i, k] in 4 broadcast registers of 4: register = i, element = k",
        "b          int8[k, j] in 1 register of 64: register = 0, element = j * 4 + k",
        "c          int32[i, j] in 4 registers of 16: register = i, element = j",
    ]


def test_an_expression_and_tile_registers_are_called_so() -> None:
    assert "expression c + a * b, 8 times" in microkernel_summary(SUM)
    told = microkernel_summary(TILES)
    assert "registers  8 tile registers of 16 rows of 512 bits" in told
    assert "a          int8[i, k] in 32 rows of 64: register = i, element = k" in told


def test_the_table_has_a_line_for_each_register() -> None:
    (grid,) = vector_register_grids(SUM.b)
    assert grid_text(grid) == (
        "  |   0   1\n"
        "--+--------\n"
        "0 | 0,0 0,1\n"
        "1 | 0,2 0,3"
    )  # fmt: skip
    (grid,) = vector_register_grids(SUM.a)
    assert grid.title == "A, what each register holds, again and again"
    assert grid_text(grid).splitlines()[2] == "0 | 0,0"


def test_as_json_every_element_has_its_register_and_element() -> None:
    found = vectors_json(DOT, DOT.b)
    assert (found["kind"], found["broadcast"], found["registers"]) == ("microkernel", False, 1)
    assert found["elements"][17] == {"row": 1, "column": 1, "register": 0, "element": 5}
    assert vectors_json(DOT, DOT.a)["elements_per_register"] == 4
    assert microkernel_json(SUM)["call"] is None
    assert microkernel_json(TILES)["tiles"] is True


def test_the_list_is_a_table() -> None:
    head, line = microkernel_table([DOT]).splitlines()
    assert head.split() == ["NAME", "M", "x", "N", "x", "K", "A,", "B", "C", "FEATURES"]
    assert line.split() == ["vnni_u8i8_4x16", "4x16x4", "uint8,", "int8", "int32", "avx512vnni"]
