"""What a kernel takes of the register files, as LLVM counts it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl.emulator.text.assembly import parse_assembly
from mfmadsl.emulator.text.registers import (
    asked_scalar_registers,
    asked_vector_registers,
    registers_of,
)
from mfmadsl.model import ARCHITECTURES
from tests.emulator.resource_kernel import Resources, assembly, said

ARCHS = list(ARCHITECTURES)
RESOURCES = st.builds(
    Resources,
    vector=st.integers(1, 128),
    accumulation=st.integers(0, 128),
    scalar=st.integers(0, 96),
    lds_bytes=st.integers(0, 65536),
    threads=st.sampled_from([64, 128, 192, 256]),
)


@settings(max_examples=60)
@given(st.sampled_from(ARCHS), RESOURCES, st.sampled_from(["", "-xnack"]))
def test_the_counts_are_llvms(arch: str, wanted: Resources, features: str) -> None:
    """Not those of the descriptor, which LLVM raises where the LDS keeps other waves away."""
    text = assembly(arch, wanted, features)
    found = registers_of(text, "kernel")
    assert found.vector == said(text, "NumVgprs")
    assert found.accumulation == said(text, "NumAgprs")
    assert (found.spilled, found.scratch_bytes) == (0, 0)
    program = parse_assembly(text)
    assert program.registers == found
    asked = asked_vector_registers(program.directives, found, arch)
    assert asked == said(text, "NumVGPRsForWavesPerEU")
    scalars = asked_scalar_registers(program.directives)
    assert scalars == said(text, "NumSGPRsForWavesPerEU")


@settings(max_examples=60)
@given(st.sampled_from(ARCHS), RESOURCES)
def test_without_symbols_the_metadata_counts(arch: str, wanted: Resources) -> None:
    """As in the text of LLVM 19 and older, which has no symbols: a little too large at most."""
    text = assembly(arch, wanted)
    older = re.sub(r"^\s*\.set kernel\.num_.*\n", "", text, flags=re.MULTILINE)
    exact, found = registers_of(text, "kernel"), registers_of(older, "kernel")
    assert found.accumulation == exact.accumulation
    if arch == "gfx908":
        assert found.vector == max(exact.vector, exact.accumulation)
    else:
        assert exact.vector <= found.vector < exact.vector + 4
    if not wanted.accumulation:
        assert found == exact


@pytest.mark.parametrize("arch", ARCHS)
def test_where_the_linker_counts_the_metadata_says_what_to_ask_for(arch: str) -> None:
    """`.amdhsa_next_free_vgpr` may be an expression of symbols, where functions are called."""
    text = assembly(arch, Resources(9, 32))
    symbolic = re.sub(r"(\.amdhsa_(?:next_free_vgpr|accum_offset)) \d+", r"\1 max(a, b)", text)
    assert symbolic != text
    plain, counted = parse_assembly(text), parse_assembly(symbolic)
    assert counted.directive("next_free_vgpr") == plain.directive("next_free_vgpr")
    assert counted.directive("accum_offset") == plain.directive("accum_offset")


@pytest.mark.parametrize(("arch", "expected"), [("gfx942", (12, 32)), ("gfx908", (32, 0))])
def test_a_text_without_metadata_has_its_directives(arch: str, expected: tuple[int, int]) -> None:
    """Those of gfx908 tell the larger file, and nothing of the other."""
    text = assembly(arch, Resources(9, 32))
    bare = text.partition("	.amdgpu_metadata")[0]
    bare = re.sub(r"^\s*\.set kernel\.num_.*\n", "", bare, flags=re.MULTILINE)
    found = parse_assembly(bare).registers
    assert (found.vector, found.accumulation) == expected
