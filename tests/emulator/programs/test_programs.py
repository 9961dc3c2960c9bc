"""Programs in C run as compilers make them: calls, tables, variables, stacks, generic pointers."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.code_object import CodeObjectError, read_code_object
from mfmadsl.emulator.sanitizer.sanitize import sanitize
from mfmadsl.model import ARCHITECTURES
from tests.emulator.programs.compiled import compiled
from tests.emulator.programs.corpus import PROGRAMS, THREADS, Array, CompiledProgram, N

SEED = int(os.environ["MFMADSL_SEED"])
LEVELS = (0, 1, 2, 3)


def check(program: CompiledProgram, out: Array, given: Array) -> None:
    wide = given.astype("float64" if given.dtype.kind == "f" else "int64")
    expected = np.asarray(program.expected(wide, np.arange(THREADS)))
    if program.tolerance:
        assert np.allclose(out, expected, program.tolerance, program.tolerance)
    else:
        assert (out == expected.astype(np.int64).astype(out.dtype)).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_what_numpy_does(name: str) -> None:
    """On one chip and at one level, and another of each under the eyes of the sanitizer."""
    program, generator = PROGRAMS[name], random.Random(f"{SEED} {name}")
    draws = [(arch, level) for arch in ARCHITECTURES for level in LEVELS]
    for run, (arch, level) in zip((emulate, sanitize), generator.sample(draws, 2), strict=True):
        data = compiled(program.source, arch, level, program.language)
        given, out = program.inputs(SEED), np.zeros(THREADS, program.out)
        text = read_code_object(data).assembly("k")
        run(text, [out, given, np.int32(N)], (2,), (64,))  # type: ignore[operator]
        check(program, out, given)


def ran(source: str, *arguments: Array, level: int = 2, kernel: str = "k") -> None:
    text = read_code_object(compiled(source, "gfx942", level, "c")).assembly(kernel)
    emulate(text, arguments, (1,), (64,))


def test_each_launch_begins_with_variables_as_the_program_has_them() -> None:
    source = "global int v = 5; kernel void k(global int *out) { out[LANE] = v; v = 9; }"
    for _ in range(2):
        out = np.zeros(64, np.int32)
        ran(source, out)
        assert (out == 5).all()


def test_several_kernels_share_functions_and_tables() -> None:
    source = (
        "const constant int t[3] = {7, 8, 9}; NOINLINE int f(int i) { return t[i % 3]; }\n"
        "kernel void k(global int *out) { out[LANE] = f(LANE); }\n"
        "kernel void other(global int *out) { out[LANE] = -f(LANE + 1); }"
    )
    out = np.zeros(64, np.int32)
    ran(source, out)
    assert (out == 7 + np.arange(64) % 3).all()
    ran(source, out, kernel="other")
    assert (out == -7 - np.arange(1, 65) % 3).all()


def test_arguments_that_nobody_wrote_are_found_beside_data() -> None:
    source = (
        "static const constant int t[3] = {7, 8, 9};\n"
        "kernel void k(global int *out, global int *in) { out[LANE] = in[LANE] + t[LANE % 3]; }"
    )
    text = read_code_object(compiled(source, "gfx942", 2, "c")).assembly("k")
    arrays = [np.zeros(64, np.int32), np.zeros(64, np.int32)]
    assert not sanitize(text, arrays, (1,), (64,), unwritten=[0]).faults
    with pytest.raises(EmulationError, match="offset 0 of `1`, which has 256 bytes, which nobody"):
        sanitize(text, arrays, (1,), (64,), unwritten=[1])


def test_a_constant_is_not_written() -> None:
    source = (
        "static const constant int t[3] = {7, 8, 9};\n"
        "kernel void k(global int *out) { *(volatile int *)(t + (out[0] & 1)) = 3; }"
    )
    with pytest.raises(EmulationError, match=r"writes to `\.rodata`, which is constant"):
        ran(source, np.zeros(64, np.int32))


def test_what_lies_beyond_a_table_is_out_of_bounds() -> None:
    source = (
        "static const constant int t[3] = {7, 8, 9};\n"
        "kernel void k(global int *out) { out[0] = t[out[0]]; }"
    )
    with pytest.raises(EmulationError, match=r"s_load_dword.*far from every argument"):
        ran(source, np.full(64, -100_000, np.int32))


def test_recursion_deeper_than_the_stack_is_out_of_bounds() -> None:
    source = (
        "NOINLINE int f(int x) { volatile int a[16]; a[x & 15] = x;"
        " return x ? f(x - 1) + a[x & 15] : 0; }\n"
        "kernel void k(global int *out) { out[LANE] = f(out[LANE]); }"
    )
    out = np.full(64, 5, np.int32)
    ran(source, out)
    assert (out == 15).all()
    with pytest.raises(EmulationError, match="but it has 1024, as much as HIP gives where"):
        ran(source, np.full(64, 100, np.int32))


def test_an_array_of_variable_length_lies_on_the_stack() -> None:
    source = (
        "NOINLINE int f(int n, int x) { int *a = __builtin_alloca(4 * n);\n"
        "  for (int j = 0; j < n; ++j) a[j] = x * j; int s = 0;\n"
        "  for (int j = 0; j < n; ++j) s += a[n - 1 - j] ^ j; return s; }\n"
        "kernel void k(global int *out) { out[LANE] = f(7, out[LANE]); }"
    )
    out = np.arange(64, dtype=np.int32)
    expected = sum((out * (6 - j)) ^ j for j in range(7))
    ran(source, out)
    assert (out == expected).all()


def test_a_trap_is_a_fault() -> None:
    source = (
        "kernel void k(global int *out) { if (out[LANE] > 3) __builtin_trap(); out[LANE] = 1; }"
    )
    out = np.zeros(64, np.int32)
    ran(source, out)
    assert (out == 1).all()
    out[7] = 4
    with pytest.raises(EmulationError, match=r"s_trap 2.*stops itself by trap 2") as raised:
        ran(source, out)
    assert raised.value.fault.kind == "trap"


def test_a_trap_for_debuggers_does_nothing() -> None:
    out = np.zeros(64, np.int32)
    ran("kernel void k(global int *out) { __builtin_debugtrap(); out[LANE] = 2; }", out)
    assert (out == 2).all()


def test_a_symbol_that_is_defined_elsewhere_is_refused() -> None:
    data = compiled(
        '__attribute__((visibility("default"))) extern global int elsewhere;\n'
        "kernel void k(global int *out) { out[LANE] = elsewhere; }",
        "gfx942", 2, "c", "--unresolved-symbols=ignore-all",
    )  # fmt: skip
    with pytest.raises(CodeObjectError, match="it needs `elsewhere`, which it does not define"):
        read_code_object(data)
