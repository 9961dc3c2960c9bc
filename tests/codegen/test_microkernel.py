"""Modules of micro-kernels: what they say, and what this CPU computes with them."""

from __future__ import annotations

import ast
import struct
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tvm
from tvm import tirx
from tvm.sym import Analyzer

from mfmadsl.codegen import ModuleError, module_text
from mfmadsl.error import ArgumentError
from mfmadsl.generated import _mfma_runtime as mfma
from mfmadsl.host.cpu import host_cpu
from mfmadsl.language import microkernels
from mfmadsl.model import Microkernel
from mfmadsl.schedule import load_intrinsic
from tests.cases import drawn
from tests.codegen.tiled_product import assembly, built, built_for, computed, loops, stores
from tests.language.microkernels import DOT, FMA, described, replaced

KERNELS = microkernels()
EVERY = pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda m: m.name)
SOME = pytest.mark.parametrize("kernel", drawn(KERNELS.values(), 24), ids=lambda m: m.name)
MNEMONICS = {"f32": "ps", "f64": "pd"}


def mnemonic(kernel: Microkernel) -> str:
    """What one step of it is called in assembly."""
    if not kernel.call:
        return "mul" + MNEMONICS[kernel.a.type.short]
    if kernel.call.startswith("llvm.fma"):
        return "vfmadd231" + MNEMONICS[kernel.a.type.short]
    return kernel.call.removeprefix("llvm.x86.").removeprefix("avx512.").partition(".")[0]


@EVERY
def test_the_maps_in_the_text_are_those_of_the_layouts(kernel: Microkernel) -> None:
    names: dict[str, object] = {"T": SimpleNamespace(int32=int)}
    tree = ast.parse(module_text(kernel))
    functions = [s for s in tree.body if isinstance(s, ast.FunctionDef)]
    tree.body = [f for f in functions if f.name.endswith("_slot") or f.name.startswith("index")]
    exec(compile(tree, "maps", "exec"), names)
    for operand in kernel.operands.values():
        slot, index_map = names[f"{operand.name}_slot"], names[f"index_map_{operand.name.upper()}"]
        assert callable(slot)
        assert callable(index_map)
        rows, columns = operand.shape
        for row, column in product(range(rows), range(columns)):
            place = operand.slot(row, column)
            assert slot(row, column) == place
            # B lies in panels of columns, through which k runs.
            tiles = (5, 3) if operand.name == "b" else (3, 5)
            assert index_map(3 * rows + row, 5 * columns + column) == (*tiles, *place)


@SOME
def test_llvm_emits_the_instruction_for_a_cpu_with_these_features(kernel: Microkernel) -> None:
    register = {128: "xmm", 256: "ymm", 512: "tmm" if kernel.tiles else "zmm"}[kernel.bits]
    lines = [x for x in assembly(built(kernel.name)).splitlines() if mnemonic(kernel) in x]
    assert lines
    assert all(f"%{register}" in line for line in lines)


@EVERY
def test_this_cpu_computes_the_product(kernel: Microkernel) -> None:
    if missing := host_cpu().missing(kernel.features):
        pytest.skip(f"this CPU has no {', '.join(missing)}: it is built, and its steps interpreted")
    found, right = computed(kernel, built(kernel.name))
    assert np.array_equal(found, right)


@pytest.mark.parametrize(
    "kernel", drawn([m for m in KERNELS.values() if not m.tiles], 24), ids=lambda m: m.name
)
def test_the_sums_stay_in_registers(kernel: Microkernel) -> None:
    """The loop along k loads, broadcasts and multiplies, and stores nothing: also where the sums
    are more than the 1024 bytes that TVM puts on the stack."""
    found = loops(assembly(built(kernel.name, (2, 2, 64))), mnemonic(kernel))
    assert found
    for body in found:
        assert stores(body) == []


def test_what_is_broadcast_may_be_b(tmp_path: Path) -> None:
    """Registers of rows, and one column after the other."""
    text = FMA.replace("_2x32", "").replace("m=2 n=32", "m=32 n=2")
    text = text.replace("use vectors", "layout down(x, y) {\n  register = x / 16 * Y + y\n"
                        "  element  = x % 16\n}\nlayout each(k, x) {\n  register = x\n"
                        "  element  = k\n}\n")  # fmt: skip
    text = text.replace("rows(i, k)  broadcast", "down(i, k)").replace(
        "sums(i, j, width=16)", "down(i, j)"
    )
    text = text.replace("columns(k, j, width=16, pack=1)", "each(k, j)  broadcast")
    kernel = described(tmp_path, text)
    assert kernel.registers_needed == 4 + 2 + 1
    assert "mfma.repeated(B, step % 2, 16)" in module_text(kernel)
    if missing := host_cpu().missing(kernel.features):
        pytest.skip(f"this CPU has no {', '.join(missing)}")
    found, right = computed(kernel, built_for(kernel))
    assert np.array_equal(found, right)


def test_several_steps_along_k_are_one_module(tmp_path: Path) -> None:
    kernel = described(tmp_path, DOT)
    assert "A[step // 2" not in module_text(kernel)
    assert "mfma.repeated(A, step // 2, 16)" in module_text(kernel)
    assert "B[step // 4 * 2 + step % 2, T.ramp(0, 1, 64)]" in module_text(kernel)
    if missing := host_cpu().missing(kernel.features):
        pytest.skip(f"this CPU has no {', '.join(missing)}")
    found, right = computed(kernel, built_for(kernel))
    assert np.array_equal(found, right)


def test_products_of_bytes_are_exact_at_their_limits() -> None:
    """255 * -128, four of them a step: VNNI widens before it adds."""
    kernel = KERNELS["vnni_u8i8_4x16"]
    if missing := host_cpu().missing(kernel.features):
        pytest.skip(f"this CPU has no {', '.join(missing)}")
    a, b = np.full((8, 20), 255, np.uint8), np.full((20, 48), -128, np.int8)
    c = tvm.runtime.tensor(np.zeros((8, 48), np.int32))
    built(kernel.name)(tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)
    assert (c.numpy() == 20 * 255 * -128).all()


def test_the_shapes_of_tile_registers_are_those_of_intels_manual() -> None:
    """LDTILECFG: palette 1, then from byte 16 the bytes of a row, from byte 48 the rows."""
    shapes = [int(Analyzer().simplify(mfma.tile_shapes(tirx.const(x, "int32")))) for x in range(64)]
    assert bytes(shapes) == struct.pack("<BB14x8H16x8B8x", 1, 0, *[64] * 8, *[16] * 8)


def test_the_module_says_what_it_needs() -> None:
    module = load_intrinsic("amx_bf16_16x16x32")
    assert (module.M, module.N, module.K) == (16, 16, 32)
    assert (module.A_DTYPE, module.B_DTYPE, module.OUT_DTYPE) == ("bfloat16", "bfloat16", "float32")
    assert module.FEATURES == ("amx-bf16",)
    assert module.LLVM_INTRINSIC == "llvm.x86.tdpbf16ps"
    assert load_intrinsic("sse2_f32_6x8").LLVM_INTRINSIC is None


def test_what_a_module_cannot_say_is_refused(tmp_path: Path) -> None:
    layout = "layout back(i, j) {\n  register = I - 1 - i + j / 16 * I\n  element = j % 16\n}\n"
    kernel = described(tmp_path, layout + replaced(FMA, "sums(i, j, width=16)", "back(i, j)"))
    with pytest.raises(ModuleError, match="elements of C count down along an index"):
        module_text(kernel)
    with pytest.raises(ArgumentError, match="is a micro-kernel, of which only k_pack=1 can be"):
        module_text(KERNELS["avx2_f32_6x16"], k_pack=2)
