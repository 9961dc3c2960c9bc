"""Where two paths meet behind a matrix instruction, LLVM 22 may count the longer one only."""

from __future__ import annotations

import pytest

from mfmadsl.emulator.sanitizer.wait_states import lacking, ways
from mfmadsl.emulator.text.assembly import parse_assembly
from tests.emulator.sanitizer.message import compiled
from tests.emulator.sanitizer.wait_states.joined import joined, kinds

READ = "v_accvgpr_read_b32 v0, a0"


@pytest.mark.parametrize(("first", "second"), [("long", "short"), ("short", "long")])
def test_the_shorter_path_is_told(first: str, second: str) -> None:
    text = compiled(joined(first, second), "gfx942")
    assert kinds(text) == {"wait-states"}
    assert text.count(READ) == 1
    assert kinds(text.replace(READ, f"s_nop 10\n\t{READ}")) == set()


@pytest.mark.parametrize(("first", "second"), [("long", "short"), ("short", "long")])
def test_what_is_missing_on_the_worst_path_is_known_without_running_it(
    first: str, second: str
) -> None:
    text = compiled(joined(first, second), "gfx942")
    program = parse_assembly(text)
    found = lacking(program, [program.entry], range(len(program.instructions)))
    early = min(found)
    assert program.instructions[early].text == READ
    states = found[early]
    assert kinds(text.replace(READ, f"s_nop {states - 1}\n\t{READ}")) == set()
    less = f"s_nop {states - 2}\n\t{READ}" if states > 1 else READ
    assert kinds(text.replace(READ, less)) == {"wait-states"}


def test_an_instruction_that_is_not_emulated_may_touch_each_operand() -> None:
    text = compiled(joined("long", "short"), "gfx942").replace(
        READ, f"v_of_nobody v40, a0\n\t{READ}"
    )
    program = parse_assembly(text)
    assert (
        program.instructions[
            min(lacking(program, [program.entry], range(len(program.instructions))))
        ].name
        == "v_of_nobody"
    )


def test_ways_lead_over_labels_and_branches_and_past_what_is_not_read() -> None:
    text = """
first:
	v_of_nobody v0, what:ever
	s_cbranch_scc1 .last
	s_branch first
	s_setpc_b64 s[0:1]
.last: ; %bb.1
	s_cbranch_vccnz nowhere
	s_nop 0
	s_endpgm
"""
    assert ways(text) == [[1], [4, 2], [0], [], [5], [6], []]
