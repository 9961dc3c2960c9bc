"""Programs in HIP's C++ that are compiled while a program runs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mfmadsl.device import compiler
from mfmadsl.device.compiler import Compiled, CompileError, HipProgram, compile_program
from mfmadsl.emulator.code_object import read_code_object
from mfmadsl.emulator.sanitizer.sanitize import sanitize

GROUPS, THREADS = 3, 128
LANES = np.arange(GROUPS * THREADS)
EMPTY = 'extern "C" __global__ void k() {}'


def source(text: str, *expressions: str) -> HipProgram:
    return HipProgram(text, "program.hip", {}, (), expressions)


def compiled(text: str, *expressions: str) -> Compiled:
    return compile_program(source(text, *expressions), "gfx942")


def ran(body: str, out: Any, *arguments: Any, given: str = "") -> Any:
    """`out` after a kernel whose threads, numbered by i, execute the body, under the sanitizer."""
    kind = {"f": "float", "i": "int", "u": "unsigned long long"}[out.dtype.kind]
    text = (
        f'extern "C" __global__ __launch_bounds__({THREADS}) void k({kind} *out{given}) '
        f"{{ int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}"
    )
    assembly = read_code_object(compiled(text).code).assembly("k")
    found = sanitize(assembly, [out, *arguments], (GROUPS,), (THREADS,))
    assert not found.faults
    return out


def ints() -> Any:
    return np.zeros(LANES.shape, np.int32)


def test_threads_know_their_places() -> None:
    out = ran("out[i] = 1000 * gridDim.x + 100 * gridDim.y + blockDim.x + blockIdx.x;", ints())
    assert (out == 1000 * GROUPS + 100 + THREADS + LANES // THREADS).all()


@pytest.mark.parametrize(
    ("call", "lane"),
    [
        ("__shfl(i, 5)", lambda own: 5 + 0 * own),
        ("__shfl(i, 20, 16)", lambda own: own // 16 * 16 + 4),
        ("__shfl_up(i, 3)", lambda own: np.where(own < 3, own, own - 3)),
        ("__shfl_up(i, 3, 8)", lambda own: np.where(own % 8 < 3, own, own - 3)),
        ("__shfl_down(i, 7)", lambda own: np.where(own + 7 > 63, own, own + 7)),
        ("__shfl_down(i, 7, 32)", lambda own: np.where(own % 32 + 7 > 31, own, own + 7)),
        ("__shfl_xor(i, 33)", lambda own: own ^ 33),
        ("__shfl_xor(i, 33, 32)", lambda own: np.where(own < 32, own, own ^ 33)),
        ("(int)__shfl_xor((long)i, 9)", lambda own: own ^ 9),
    ],
)
def test_lanes_tell_each_other_their_values(call: str, lane: Any) -> None:
    out = ran(f"out[i] = {call};", ints())
    assert (out == LANES // 64 * 64 + lane(LANES % 64)).all()


def test_lanes_are_asked_together() -> None:
    out = ran("out[i] = __ballot(i % 3 == 0) + __any(i == 70) + 2 * __all(i < 64);",
              np.zeros(LANES.shape, np.uint64))  # fmt: skip
    for wave, first in enumerate(LANES[::64]):
        bits = sum(1 << int(i - first) for i in LANES[first : first + 64] if i % 3 == 0)
        expected = bits + (wave == 1) + 2 * (wave == 0)
        assert {int(x) for x in out[first : first + 64]} == {expected}


def test_a_block_shares_memory() -> None:
    body = (
        "__shared__ int s[128]; s[threadIdx.x] = i; __syncthreads(); out[i] = s[127 - threadIdx.x];"
    )
    assert (ran(body, ints()) == LANES // THREADS * THREADS + 127 - LANES % THREADS).all()


def test_atomics_of_all_threads() -> None:
    out = ints()
    ran(
        "atomicAdd(out, i); atomicSub(out + 1, i); atomicMax(out + 2, i); atomicMin(out + 3, -i); "
        "atomicOr(out + 4, 1 << i % 20); atomicXor(out + 5, i); atomicAnd(out + 6, ~(1 << i % 9)); "
        "if (i == 9) out[7] = atomicCAS(out + 8, 0, i) + atomicExch(out + 9, 4);",
        out,
    )
    total = int(LANES.sum())
    assert out[:7].tolist() == [total, -total, LANES[-1], -LANES[-1], (1 << 20) - 1, 0, 0]
    assert out[7:10].tolist() == [0, 9, 4]


def test_vectors_are_as_wide_as_in_memory() -> None:
    four, three = (np.arange(n * LANES.size, dtype=np.float32) for n in (4, 3))
    out = np.zeros(LANES.shape, np.float32)
    ran("float4 v = a[i] * 2.0f; out[i] = v.w + b[i].y;", out, four, three,
        given=", const float4 *a, const float3 *b")  # fmt: skip
    assert (out == 2 * four[3::4] + three[1::3]).all()


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ("sqrtf(x)", np.sqrt), ("rsqrtf(x)", lambda x: 1 / np.sqrt(x)),
        ("expf(-x)", lambda x: np.exp(-x)), ("exp2f(x)", np.exp2),
        ("logf(x)", np.log), ("log2f(x)", np.log2), ("log10f(x)", np.log10),
        ("sinf(x)", np.sin), ("cosf(x)", np.cos), ("tanhf(x)", np.tanh),
        ("erff(x)", np.vectorize(math.erf)), ("powf(x, 1.5f)", lambda x: x**1.5),
        ("fmaf(x, x, 1.0f)", lambda x: x * x + 1), ("floor(x)", np.floor), ("rintf(x)", np.rint),
        ("fmodf(x, 0.75f)", lambda x: np.fmod(x, 0.75)),
        ("fmin(x, 2.0f)", lambda x: np.minimum(x, 2)),
        ("max(x, 2.0f)", lambda x: np.maximum(x, 2)), ("abs(x - 4)", lambda x: np.abs(x - 4)),
    ],
)  # fmt: skip
def test_functions_of_numbers(call: str, function: Any) -> None:
    values = (0.01 + LANES / 53).astype(np.float32)
    out = ran(f"float x = a[i]; out[i] = {call};", np.zeros(LANES.shape, np.float32), values,
              given=", const float *a")  # fmt: skip
    assert np.allclose(out, function(values.astype(np.float64)), 2e-6, 1e-6)


def test_templates_are_found_by_their_names() -> None:
    text = (
        "template <typename T, int N> __global__ void add(T *x) { x[threadIdx.x] += N; }\n"
        "namespace of { __constant__ float table[4]; __device__ int counter; }"
    )
    found = compiled(text, "add<float, 3>", "add<int, (2 + 2)>", "&of::counter", "of::table")
    assert found.symbols == (
        "_Z3addIfLi3EEvPT_", "_Z3addIiLi4EEvPT_", "_ZN2of7counterE", "_ZN2of5tableE"
    )  # fmt: skip
    loaded = read_code_object(found.code)
    assert set(loaded.kernels) == set(found.symbols[:2])
    assert set(found.symbols[2:]) <= set(loaded.variables)
    assert not [name for name in loaded.variables if "mfmadsl" in name]


def test_options_and_headers_are_the_programs_own() -> None:
    text = '#include "of/own.h"\n' + EMPTY.replace("k()", "NAME(int *x)").replace(
        "{}", "{ *x = OWN; }"
    )
    given = HipProgram(text, "p", {"of/own.h": "#define OWN 7"}, ("-DNAME=own", "-g0"), ())
    assert list(read_code_object(compile_program(given, "gfx942").code).kernels) == ["own"]


@pytest.mark.parametrize(
    ("options", "arch"),
    [
        ((), "gfx90a"),
        (("--offload-arch=gfx950",), "gfx950"),
        (("--gpu-architecture=gfx942:sramecc+:xnack-",), "gfx942"),
    ],
)
def test_the_chip_is_that_of_the_options_or_the_devices(
    options: tuple[str, ...], arch: str
) -> None:
    given = replace(source(EMPTY), options=options)
    assert read_code_object(compile_program(given, "gfx90a").code).arch == arch


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (source("__global__ void k() {\n  int x = lost;\n}"),
         r"program.hip:2:11: error: use of undeclared identifier 'lost'"),
        (source('extern "C" __global__ void k(float *x) { *x = lgammaf(*x); }'), "'lgammaf'"),
        (source(EMPTY, "lost<int>"), "undeclared identifier 'lost'"),
        (source(EMPTY, "(const void *)0"), "error"),
        (replace(source(EMPTY), options=("--fmad=false",)), "--fmad=false"),
        (replace(source(EMPTY), options=("-fgpu-rdc",)), "programs are not linked"),
        (replace(source(EMPTY), options=("--offload-arch=gfx1",)), "gfx1"),
        (replace(source(EMPTY), headers={"../../x.h": ""}), "`../../x.h` would lie outside"),
        (source(EMPTY + " #include <thrust/sort.h>"), "error"),
        (source('extern "C" __device__ int f(int); extern "C" __global__ void k(int *x) '
                "{ *x = f(1); }"), "undefined hidden symbol: f"),
    ],
)  # fmt: skip
def test_what_does_not_compile_is_told_by_the_log(given: HipProgram, said: str) -> None:
    with pytest.raises(CompileError, match=said) as caught:
        compile_program(given, "gfx942")
    assert "/tmp" not in str(caught.value)


def test_warnings_are_in_the_log() -> None:
    assert "warning" in compiled(EMPTY + "\n#warning mind this").log


def test_without_a_clang_the_log_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "find_assembler", lambda: None)
    with pytest.raises(CompileError, match="pip install ziglang"):
        compiled(EMPTY)
