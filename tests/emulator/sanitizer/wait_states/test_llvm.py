"""LLVM inserts an `s_nop` wherever one is needed: the sanitizer is of the same opinion."""

from __future__ import annotations

import re

import pytest

from tests.emulator.sanitizer.wait_states.llvm_kernels import KERNELS, assembly
from tests.emulator.sanitizer.wait_states.paths import lacking

CASES = [(name, arch) for name, (archs, _) in KERNELS.items() for arch in archs]


@pytest.mark.parametrize(("name", "arch"), CASES)
def test_each_of_llvms_nops_is_needed_and_no_other(name: str, arch: str) -> None:
    text = assembly(KERNELS[name][1], arch)
    assert lacking(text) == {}
    shorter = one_less(text)
    assert shorter
    for line, mutant in shorter:
        assert min(lacking(mutant), default=0) > line


def one_less(text: str) -> list[tuple[int, str]]:
    """Texts in which one `s_nop` takes one wait state less, each with the line of it."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines):
        if nop := re.fullmatch(r"\ts_nop (\d+)", line):
            left = int(nop[1])
            changed = f"\ts_nop {left - 1}" if left else ""
            found.append((number + 1, "\n".join([*lines[:number], changed, *lines[number + 1 :]])))
    return found
