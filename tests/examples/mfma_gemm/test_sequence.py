"""How a main loop is found, folded, and put beside another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from examples.mfma_gemm.sequence import main_loop, short, side_by_side
from mfmadsl.emulator.text.assembly import Instruction, parse_assembly

FRAME = """
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
\t.text
kernel:
{body}
\ts_endpgm
\t.amdhsa_kernel kernel
\t.end_amdhsa_kernel
"""
MFMA = "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]"
READ = "ds_read_b128 v[0:3], v4"


def body(*lines: str) -> list[Instruction]:
    """The instructions of a text, without its end."""
    text = FRAME.format(body="\n".join(f"\t{line}" for line in lines))
    return list(parse_assembly(text).instructions)[:-1]


def test_alike_instructions_are_one_line() -> None:
    assert short(body(READ, READ, READ, MFMA, MFMA)) == [
        "3 ds_read_b128", "2 v_mfma_f32_32x32x8_f16", "nothing scalar",
    ]  # fmt: skip


def test_what_is_repeated_is_told_once_with_the_least_and_the_most() -> None:
    assert short(body(READ, MFMA, READ, MFMA, MFMA, READ, MFMA, MFMA, MFMA)) == [
        "3 times", "  1 ds_read_b128", "  1-3 v_mfma_f32_32x32x8_f16", "nothing scalar",
    ]  # fmt: skip


def test_waits_keep_what_they_wait_for() -> None:
    write = "ds_write_b128 v0, v[0:3]"
    lines = [line for n in (3, 2, 1, 0) for line in (f"s_waitcnt vmcnt({n})", write)]
    assert short(body(*lines, "s_waitcnt vmcnt(8) lgkmcnt(0)", "s_barrier")) == [
        "4 times", "  s_waitcnt vmcnt(3..0)", "  1 ds_write_b128",
        "s_waitcnt vmcnt(8) lgkmcnt(0)", "s_barrier", "nothing scalar",
    ]  # fmt: skip


def test_waits_for_other_counters_are_no_repetition() -> None:
    told = short(body("s_waitcnt vmcnt(0)", READ, "s_waitcnt lgkmcnt(0)", READ))
    assert told[:-1] == [
        "s_waitcnt vmcnt(0)", "1 ds_read_b128", "s_waitcnt lgkmcnt(0)", "1 ds_read_b128",
    ]  # fmt: skip


def test_scalar_instructions_are_counted() -> None:
    assert short(body(MFMA, "s_add_i32 s0, s0, 1", MFMA, "s_nop 0")) == [
        "2 v_mfma_f32_32x32x8_f16", "2 scalar",
    ]  # fmt: skip


def test_loads_into_the_lds_are_not_those_into_registers() -> None:
    load = "buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen"
    straight = "buffer_load_dwordx4 v4, s[0:3], 0 offen lds"
    assert short(body(load, straight))[:2] == [
        "1 buffer_load_dwordx4", "1 buffer_load_dwordx4 lds",
    ]  # fmt: skip


@given(st.lists(st.sampled_from([READ, MFMA, "s_barrier"]), max_size=40))
def test_folding_loses_nothing(lines: list[str]) -> None:
    """What the lines stand for, at the least and at the most, has all instructions between."""
    least = most = 0
    times = 1
    for line in short(body(*lines))[:-1]:
        if line.endswith(" times"):
            times = int(line.split()[0])
            continue
        times = times if line.startswith("  ") else 1
        count = line.split()[0] if line.split()[0][0].isdigit() else "1"
        low, _, high = count.partition("-")
        least, most = least + times * int(low), most + times * int(high or low)
    assert least <= len(lines) <= most


def test_the_innermost_loop_is_found_with_another_around_it() -> None:
    nest = [
        ".LBB0_1:", "\ts_nop 0", f"\t{READ}", ".LBB0_2:", f"\t{MFMA}", "\ts_cbranch_scc1 .LBB0_2",
        f"\t{MFMA}", "\ts_cbranch_scc0 .LBB0_1",
    ]  # fmt: skip
    found = main_loop(FRAME.format(body="\n".join(nest)))
    assert [each.name for each in found] == ["v_mfma_f32_32x32x8_f16", "s_cbranch_scc1"]


def test_without_a_loop_it_is_all_of_the_kernel() -> None:
    found = main_loop(FRAME.format(body=f"\t{MFMA}"))
    assert [each.name for each in found] == ["v_mfma_f32_32x32x8_f16", "s_endpgm"]


def test_two_columns_of_different_lengths() -> None:
    assert side_by_side(["one"], ["two", "three"], ("before: a", "after: b")) == [
        "before: a   after: b",
        "---------   --------",
        "one         two",
        "            three",
    ]
