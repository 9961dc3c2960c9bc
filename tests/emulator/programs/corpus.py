"""Small programs as people write them, and what NumPy says that they compute.

Each has a kernel `k(out, in, n)` of 128 threads, in two workgroups: `in` are the numbers of a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

THREADS, N = 128, 7


@dataclass(frozen=True)
class CompiledProgram:
    """A program: its types, its text, and what it makes of `in` and of the threads' numbers."""

    source: str
    out: str
    expected: Callable[[Array, Array], Any]
    given: str = "int32"
    tolerance: float = 0
    language: str = "cl"

    def inputs(self, seed: int) -> Array:
        """The numbers that it reads."""
        generator = np.random.default_rng(seed)
        if self.given.startswith("float"):
            return generator.uniform(-3, 3, THREADS).astype(self.given)
        return generator.integers(-1000, 1000, THREADS).astype(self.given)


def _fibonacci(n: int) -> int:
    return n if n < 2 else _fibonacci(n - 1) + _fibonacci(n - 2)


def _each(function: Callable[[int, int], int]) -> Callable[[Array, Array], Array]:
    """A function of one number and one thread, of all."""
    return lambda x, i: np.array([function(int(a), int(b)) for a, b in zip(x, i, strict=True)])


def _private_array(x: Array, threads: Array) -> Array:
    places = np.zeros((16, THREADS), np.int64)
    for j in range(16):
        places[j * N & 15] = x[threads + j & 127] ^ j
    total = np.zeros(THREADS, np.int64)
    for j in range(16):
        total = total * 3 + places[x + j & 15, threads]
    return total


def _wrapped(value: int, bits: int, signed: bool = True) -> int:
    value %= 1 << bits
    return value - (1 << bits) if signed and value >> bits - 1 else value


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _narrow_integers(x: int) -> int:
    a, b = _wrapped(x, 8), _wrapped(77 * x, 16, signed=False)
    c = _wrapped(300 * a, 16) >> 3
    d = _wrapped(_quotient(b, a | 1), 8, signed=False)
    return a + 2 * b + 3 * c + 5 * d + (7 if a < c else 1)


def _long_integers(x: int) -> int:
    u = _wrapped(x * x * 1234567 << (x & 31), 64, signed=False)
    v = (x << 33) - N
    product = _wrapped(x * v, 64) >> 7
    return _quotient(v, x | 1) + u % 1000003 + product + (u > v % 2**64)


def _fraction(x: Array, n: int) -> Array:
    return np.asarray(x / (1 + _fraction(x * 0.5, n - 1))) if n else x


def _vectors(x: Array, i: Array) -> Array:
    a = x.reshape(32, 4)[i & 31].astype(np.int64)
    b = a[:, ::-1] * N + np.arange(1, 5)
    a[i, x & 3] = 100
    b ^= a
    return np.asarray(b[:, 0] + 3 * b[:, 1] - b[:, 2] + b[i, i & 3])


def _hash(text: str) -> int:
    value = 0
    for letter in text.encode():
        value = _wrapped(31 * value + letter, 32)
    return value


_SQUARES = [i * i - 3 for i in range(16)]

PROGRAMS: dict[str, CompiledProgram] = {
    "call": CompiledProgram(
        "NOINLINE int f(int a, int b) { return a * 3 - b; }\n"
        "kernel void k(global int *out, global const int *in, int n)"
        "{ out[ID] = f(in[ID], f(n, ID)); }",
        "int32", lambda x, i: 3 * x - (3 * N - i),
    ),
    "recursion": CompiledProgram(
        "NOINLINE int f(int x) { return x < 2 ? x : f(x - 1) + f(x - 2); }\n"
        "kernel void k(global int *out, global const int *in, int n) { out[ID] = f(in[ID] & 7); }",
        "int32", _each(lambda x, _: _fibonacci(x & 7)), language="c",
    ),
    "function_pointers": CompiledProgram(
        "typedef int (*F)(int); NOINLINE int f(int x) { return x + 1; }\n"
        "NOINLINE int g(int x) { return x * 5; } NOINLINE int h(int x) { return -x; }\n"
        "kernel void k(global int *out, global const int *in, int n) {\n"
        "  F p = (in[ID] & 3) == 0 ? f : (in[ID] & 3) == 1 ? g : h; out[ID] = p(in[ID]); }",
        "int32", _each(lambda x, _: {0: x + 1, 1: 5 * x}.get(x & 3, -x)), language="c",
    ),
    "table_of_functions": CompiledProgram(
        "typedef int (*F)(int); NOINLINE int f(int x) { return x + 1; }\n"
        "NOINLINE int g(int x) { return x * 5; }\n"
        "const constant F table[3] = {g, f, g};\n"
        "kernel void k(global int *out, global const int *in, int n) {"
        "  out[ID] = table[GROUP + (n == 7)](in[ID]); }",
        "int32", lambda x, i: np.where(i < 64, x + 1, 5 * x), language="c",
    ),
    "constant_table": CompiledProgram(
        f"__constant int t[16] = {{{','.join(map(str, _SQUARES))}}};\n"
        "kernel void k(global int *out, global const int *in, int n)"
        "{ out[ID] = t[in[ID] & 15] + t[n]; }",
        "int32", lambda x, i: np.array(_SQUARES)[x & 15] + _SQUARES[N],
    ),
    "switch": CompiledProgram(
        "kernel void k(global int *out, global const int *in, int n) { int x = in[ID], r;\n"
        "switch (x & 7) { case 0: r = x * x; break; case 1: r = x + 77; break;\n"
        "case 2: r = x >> 1; break; case 3: r = ~x; break; case 5: r = x / 3; break;\n"
        "case 6: r = 1000 / (x | 1); break; default: r = -1; } out[ID] = r; }",
        "int32", _each(lambda x, _: {
            0: x * x, 1: x + 77, 2: x >> 1, 3: ~x, 5: int(x / 3), 6: int(1000 / (x | 1)),
        }.get(x & 7, -1)),
    ),
    "global_variable": CompiledProgram(
        "global int counter = 5; global int scale[4] = {2, 3, 5, 7};\n"
        "kernel void k(global int *out, global const int *in, int n) {\n"
        "  if (ID == 3) counter = 11; BARRIER; out[ID] = scale[LANE & 3] * in[ID];\n"
        "  if (ID == 3) out[ID] = counter; }",
        "int32", lambda x, i: np.where(i == 3, 11, np.array([2, 3, 5, 7])[i & 3] * x),
    ),
    "zeroed_variable": CompiledProgram(
        "global int zeros[1024]; global int sum;\n"
        "kernel void k(global int *out, global const int *in, int n) {\n"
        "  zeros[ID] += in[ID]; out[ID] = zeros[ID] * 2 + zeros[ID + 512]; }",
        "int32", lambda x, i: 2 * x,
    ),
    "addresses_in_data": CompiledProgram(
        "global int a = 17; global int b[3] = {1, 2, 40}; global int *global p[2] = {&a, &b[2]};\n"
        "kernel void k(global int *out, global const int *in, int n) {"
        "  out[ID] = *p[ID & 1] + in[ID]; }",
        "int32", lambda x, i: np.where(i & 1, 40, 17) + x,
    ),
    "private_array": CompiledProgram(
        "kernel void k(global int *out, global const int *in, int n) { int a[16];\n"
        "for (int j = 0; j < 16; ++j) a[(j * n) & 15] = in[(ID + j) & 127] ^ j;\n"
        "int s = 0; for (int j = 0; j < 16; ++j) s = s * 3 + a[(in[ID] + j) & 15]; out[ID] = s; }",
        "int32", _private_array,
    ),
    "private_bytes": CompiledProgram(
        "kernel void k(global int *out, global const int *in, int n) { volatile uchar a[24];\n"
        "for (int j = 0; j < 24; ++j) a[j] = in[ID] + j * n; volatile short *h;\n"
        "out[ID] = a[in[ID] & 15] * 256 + a[(in[ID] & 7) + 3]; }",
        "int32", lambda x, i: (x + (x & 15) * N & 255) * 256 + (x + ((x & 7) + 3) * N & 255),
    ),
    "generic_pointers": CompiledProgram(
        "NOINLINE void put(int *p, int v) { *p = v; } NOINLINE int get(const int *p)"
        "{ return *p; }\n"
        "kernel void k(global int *out, global const int *in, int n) { local int shared[64];\n"
        "  int mine[3] = {in[ID], 2, 3}; put(shared + (LANE ^ 1), in[ID]); put(mine + 1, n);\n"
        "  BARRIER; put(out + ID, get(shared + LANE) * get(mine + 1) + get(mine)); }",
        "int32", lambda x, i: x[i ^ 1] * N + x,
    ),
    "mixed_pointers": CompiledProgram(
        "kernel void k(global int *out, global const int *in, int n) { local int shared[64];\n"
        "  int mine = in[ID] * 3; shared[LANE] = in[ID] + 1; BARRIER;\n"
        "  int *p; int which = in[ID] & 3; if (which == 0) p = &mine; else if (which == 1)\n"
        "  p = shared + (LANE ^ 5); else p = (int *)in + (127 - ID);\n"
        "  volatile int *q = p; out[ID] = *q; }",
        "int32", lambda x, i: np.select(
            [x & 3 == 0, x & 3 == 1], [3 * x, x[i ^ 5] + 1], x[127 - i]),
    ),
    "address_spaces_asked": CompiledProgram(
        "NOINLINE int which(const void *p) {"
        "  return __builtin_amdgcn_is_shared(p) * 2 + __builtin_amdgcn_is_private(p); }\n"
        "kernel void k(global int *out, global const int *in, int n) { local int s; int m = n;\n"
        "  s = 1; const void *p = (ID & 3) == 0 ? (void *)&s : (ID & 3) == 1 ? (void *)&m"
        " : (void *)in;\n  out[ID] = which(p) * 10 + m; }",
        "int32", lambda x, i: np.select([i & 3 == 0, i & 3 == 1], [20, 10], 0) + N,
    ),
    "struct_by_value": CompiledProgram(
        "typedef struct { int a; float b; long c; char d[5]; } S;\n"
        "NOINLINE S f(S s, int x) { s.a += x; s.b *= 2; s.c -= x; s.d[x & 3] = 9; return s; }\n"
        "kernel void k(global int *out, global const int *in, int n) {\n"
        "  S s = {n, 1.5f, 1L << 33, {1, 2, 3, 4, 5}}; s = f(s, in[ID]);\n"
        "  out[ID] = s.a + (int)s.b + (int)(s.c >> 16) + s.d[0] + 100 * s.d[4]; }",
        "int32", lambda x, i: N + x + 3 + ((1 << 33) - x >> 16) + np.where(x & 3 == 0, 9, 1) + 500,
    ),
    "many_arguments": CompiledProgram(
        "NOINLINE int f(" + ", ".join(f"int a{j}" for j in range(40)) + ") { return "
        + " + ".join(f"{j + 1} * a{j}" for j in range(40)) + "; }\n"
        "kernel void k(global int *out, global const int *in, int n) { int x = in[ID];\n"
        "  out[ID] = f(" + ", ".join(f"x ^ {j}" for j in range(40)) + "); }",
        "int32", lambda x, i: sum((j + 1) * (x ^ j) for j in range(40)),
    ),
    "atomics": CompiledProgram(
        "global int total; kernel void k(global int *out, global const int *in, int n) {\n"
        "  local int sum; if (LANE == 0) sum = 0; BARRIER;\n"
        "  __opencl_atomic_fetch_add((local atomic_int *)&sum, in[ID], __ATOMIC_RELAXED, 2);\n"
        "  __opencl_atomic_fetch_max((global atomic_int *)&total, in[ID], __ATOMIC_RELAXED, 2);\n"
        "  BARRIER; out[ID] = sum; }".replace(", 2)", ", __OPENCL_MEMORY_SCOPE_DEVICE)"),
        "int32", lambda x, i: np.where(i < 64, x[:64].sum(), x[64:].sum()),
    ),
    "generic_atomics": CompiledProgram(
        "NOINLINE int add(int *p, int v) { return __opencl_atomic_fetch_add((atomic_int *)p, v,"
        " __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE); }\n"
        "kernel void k(global int *out, global const int *in, int n) { local int s[64];\n"
        "  s[LANE] = 4; BARRIER; add(s + (LANE ^ 3), in[ID]); add(out + ID, 1000); BARRIER;\n"
        "  out[ID] += s[LANE]; }",
        "int32", lambda x, i: 1000 + 4 + x[i ^ 3],
    ),
    "narrow_integers": CompiledProgram(
        "kernel void k(global int *out, global const int *in, int n) { char a = in[ID];\n"
        "  ushort b = in[ID] * 77; short c = (short)(a * 300) >> 3; uchar d = b / (a | 1);\n"
        "  out[ID] = a + b * 2 + c * 3 + d * 5 + (a < c ? 7 : 1); }",
        "int32", _each(lambda x, _: _narrow_integers(x)),
    ),
    "long_integers": CompiledProgram(
        "kernel void k(global long *out, global const int *in, int n) { long x = in[ID];\n"
        "  ulong u = (ulong)(x * x * 1234567) << (in[ID] & 31); long v = (x << 33) - n;\n"
        "  out[ID] = v / (x | 1) + (long)(u % 1000003) + (x * v >> 7) + (u > (ulong)v); }",
        "int64", _each(lambda x, _: _long_integers(x)),
    ),
    "division": CompiledProgram(
        "kernel void k(global int *out, global const int *in, int n) { int x = in[ID];\n"
        "  uint u = x; out[ID] = x / n + x % n + u / (uint)(ID + 1) + u % 13u + x / -9; }",
        "int32", _each(lambda x, i: int(x / N) + int(math.fmod(x, N)) + (x % 2**32) // (i + 1)
                       + (x % 2**32) % 13 + int(x / -9)),
    ),
    "float_math": CompiledProgram(
        "kernel void k(global float *out, global const float *in, int n) { float x = in[ID];\n"
        "  out[ID] = __builtin_sqrtf(x * x + 1.0f) / (x * x + 0.5f) - __builtin_floorf(x)"
        " + __builtin_fmaf(x, x, 3.0f) + __builtin_fabsf(x) + (float)n; }",
        "float32", lambda x, i: np.sqrt(x * x + 1) / (x * x + 0.5) - np.floor(x)
        + x * x + 3 + np.abs(x) + N, "float32", 2e-6,
    ),
    "double_math": CompiledProgram(
        "NOINLINE double f(double x, int n) { return n ? x / (1 + f(x * 0.5, n - 1)) : x; }\n"
        "kernel void k(global double *out, global const double *in, int n) { double x = in[ID];\n"
        "  out[ID] = __builtin_sqrt(x * x + 1) / (x * x + 0.25) - __builtin_trunc(x)"
        " + f(x * x, 5) + (double)(long)(x * 1e9); }",
        "float64", lambda x, i: np.sqrt(x * x + 1) / (x * x + 0.25) - np.trunc(x)
        + _fraction(x * x, 5) + np.trunc(x * 1e9), "float64", 1e-13,
        "c",
    ),
    "half_math": CompiledProgram(
        "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
        "kernel void k(global float *out, global const float *in, int n) {\n"
        "  half h = (half)in[ID]; half2_t: ; out[ID] = (float)(h * h + (half)1.5f); }"
        .replace(" half2_t: ;", ""),
        "float32", lambda x, i: x.astype("f2").astype("f4") ** 2 + 1.5, "float32", 3e-3,
    ),
    "vectors": CompiledProgram(
        "kernel void k(global int *out, global const int *in, int n) {\n"
        "  int4 a = ((global const int4 *)in)[ID & 31]; int4 b = a.wzyx * n + (int4)(1, 2, 3, 4);\n"
        "  a[in[ID] & 3] = 100; b ^= a; out[ID] = b.x + 3 * b.y - b.z + b[ID & 3]; }",
        "int32", _vectors,
    ),
    "array_of_pointers": CompiledProgram(
        "kernel void k(global int *out, global const int *in, int n) {\n"
        "  global const int *p[4] = {in, in + 32, in + 64, in + 96}; int s = 0;\n"
        "  for (int j = 0; j < 4; ++j) s += p[(in[ID] + j) & 3][(LANE + j) & 31] * (j + 1);\n"
        "  out[ID] = s; }",
        "int32", lambda x, i: sum(x[32 * (x + j & 3) + (i + j & 31)] * (j + 1) for j in range(4)),
    ),
    "strings": CompiledProgram(
        "__constant char text[] = \"position\"; kernel void k(global int *out,"
        " global const int *in, int n) {\n"
        "  __constant const char *p = in[ID] & 1 ? text : \"others\"; int s = 0;\n"
        "  while (*p) s = s * 31 + *p++; out[ID] = s; }",
        "int32", _each(lambda x, _: _hash("position" if x & 1 else "others")),
    ),
    "clock": CompiledProgram(
        "kernel void k(global int *out, global const int *in, int n) {\n"
        "  ulong a = __builtin_readcyclecounter(), c = __builtin_amdgcn_s_memrealtime();\n"
        "  int s = 0; for (int j = 0; j < n; ++j) s += in[(ID + j) & 127] / (j + 2);\n"
        "  ulong b = __builtin_readcyclecounter(), d = __builtin_amdgcn_s_memrealtime();\n"
        "  out[ID] = (b > a) + 2 * (d >= c) + (s == 12345678); }",
        "int32", lambda x, i: np.full(THREADS, 3),
    ),
    "exchange_of_lanes": CompiledProgram(
        "kernel void k(global int *out, global const int *in, int n) { int x = in[ID];\n"
        "  int y = __builtin_amdgcn_ds_bpermute(4 * ((LANE + 9) & 63), x);\n"
        "  int z = __builtin_amdgcn_readfirstlane(x), w = __builtin_amdgcn_readlane(x, n);\n"
        "  ulong m = __builtin_amdgcn_uicmp(x, 0, 40);\n"
        "  out[ID] = y + z * 2 + w * 3 + __builtin_popcountl(m); }",
        "int32", lambda x, i: x[(i & 64) + (i + 9 & 63)] + 2 * x[i & 64] + 3 * x[(i & 64) + N]
        + np.where(i < 64, (x[:64] < 0).sum(), (x[64:] < 0).sum()),
    ),
}  # fmt: skip
