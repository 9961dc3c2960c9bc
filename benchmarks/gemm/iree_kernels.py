"""IREE's GEMM, compiled offline and run here: a peer that `benchmarks/gemm` measures against.

`iree-compile` (PyPI's iree-base-compiler) makes a module of a product, which `iree_module` reads.
It runs as a program of its own, for it brings an LLVM that TVM's must not meet.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import mfmadsl
from benchmarks.gemm.case import Case, Shape
from benchmarks.gemm.iree_module import Binding, Dispatch, Module, read_module
from mfmadsl.emulator.profiler import ChipTime
from mfmadsl.emulator.profiler.chip import together

COMPILER = Path(sys.executable).with_name("iree-compile")
MISSING = "iree-compile is not found: pip install '.[bench]'"
DEFAULT = "default"
PACKED = "data-tiling"
_PRODUCTS = {"gfx942": "mi300x", "gfx950": "mi355x"}
_O3 = "--iree-opt-level=O3"
_UKERNELS = "--iree-rocm-enable-tensor-ukernels"
_STAGES = "--iree-llvmgpu-prefetch-num-stages="
_PARTS = "--iree-dispatch-creation-split-matmul-reduction="
FLAGS: dict[str, tuple[str, ...]] = {
    DEFAULT: (),
    "O3": (_O3,),
    "ukernels": (_O3, _UKERNELS),
    "stages-3": (_O3, f"{_STAGES}3"),
    "stages-4": (_O3, f"{_STAGES}4"),
    "parts-4": (f"{_PARTS}4",),  # which O3 would leave out
    "parts-8": (f"{_PARTS}8",),
    "stages-3-parts-4": (f"{_STAGES}3", f"{_PARTS}4"),
    PACKED: (_O3, "--iree-opt-data-tiling", _UKERNELS),
}
"""Of each setting. All but the first name the product, whose compute units IREE then counts."""
FEW_ROWS = range(9, 65)
"""Rows of which K in parts, and more stages than three, are tried.

Of fewer IREE makes kernels without matrix cores, which K in parts makes a hundred times slower.
"""
_TYPES = {"f16": "f16", "bf16": "bf16", "i8": "i8"}
_FP8 = {"gfx942": "f8E4M3FNUZ", "gfx950": "f8E4M3FN"}


def settings(shape: Shape) -> Iterator[str]:
    """What a user of IREE would try for a product, but data tiling, which packs A and B first."""
    for name, flags in FLAGS.items():
        deep = name == "stages-4" or any(flag.startswith(_PARTS) for flag in flags)
        if name != PACKED and (shape[0] in FEW_ROWS or not deep):
            yield name


def source(case: Case, shape: Shape) -> str:
    """The product, for IREE's compiler."""
    m, n, k = shape
    operand = _TYPES.get(case.kind) or _FP8[case.arch]
    out, zero = ("i32", "0") if case.kind == "i8" else ("f32", "0.0")
    b, b_map = (f"{n}x{k}", "(n, k)") if case.order == "bt" else (f"{k}x{n}", "(k, n)")
    a_type, b_type = f"tensor<{m}x{k}x{operand}>", f"tensor<{b}x{operand}>"
    c_type = f"tensor<{m}x{n}x{out}>"
    maps = ", ".join(f"affine_map<(m, n, k) -> {each}>" for each in ("(m, k)", b_map, "(m, n)"))
    return f"""func.func @product(%a: {a_type}, %b: {b_type}) -> {c_type} {{
  %zero = arith.constant {zero} : {out}
  %empty = tensor.empty() : {c_type}
  %none = linalg.fill ins(%zero : {out}) outs(%empty : {c_type}) -> {c_type}
  %sum = linalg.matmul indexing_maps = [{maps}]
    ins(%a, %b : {a_type}, {b_type}) outs(%none : {c_type}) -> {c_type}
  return %sum : {c_type}
}}
"""


@dataclass(frozen=True)
class Product:
    """What IREE made of a product with one of its settings; it lies in a folder."""

    case: Case
    shape: Shape
    setting: str
    folder: Path

    @cached_property
    def module(self) -> Module:
        """Which kernels run on what."""
        return read_module((self.folder / "module.mlir").read_text())

    def assembly(self, dispatch: Dispatch) -> str:
        """The text of a kernel, out of its code object."""
        (path,) = self.folder.glob(f"*_{dispatch.executable}_*.hsaco")
        return mfmadsl.read_code_object(path.read_bytes()).assembly(dispatch.symbol)

    @cached_property
    def launches(self) -> tuple[tuple[str, Dispatch], ...]:
        """The text of each dispatch, in which the kernel has a name that says nothing."""
        return tuple(
            (re.sub(rf"\b{re.escape(each.symbol)}\b", "kernel", self.assembly(each)), each)
            for each in self.module.dispatches
        )

    def same_as(self, other: Product) -> bool:
        """Whether both run the same instructions."""
        return [(text, one.workgroups, one.bindings) for text, one in self.launches] == [
            (text, one.workgroups, one.bindings) for text, one in other.launches
        ]

    def time(self) -> ChipTime:
        """On the chip, one launch after the other, of arrays that hold ones.

        Those that only pack A or B are left out, as where an earlier kernel has packed them.
        """
        a, b, _ = self.case.arrays(*self.shape)
        memory = self._memory(a, b)
        return together([
            mfmadsl.profile(text, _arguments(each, memory), each.workgroups).on_chip
            for text, each in self.launches if not each.symbol.startswith("_encoding_")
        ])  # fmt: skip

    def multiply(self, a: Any, b: Any) -> Any:
        """What the kernels compute of these arrays, in the emulator."""
        memory = self._memory(a, b)
        for text, each in self.launches:
            mfmadsl.emulate(text, _arguments(each, memory), each.workgroups)
        m, n, _ = self.shape
        return memory[self.module.result].view(self.case.output).reshape(m, n)

    def _memory(self, a: Any, b: Any) -> list[Any]:
        """The bytes of all buffers: those of A and B, and as many others as are asked for."""
        module = self.module
        memory = [np.zeros(size, np.uint8) for size in module.sizes]
        for number, array in zip(module.arguments, (a, b), strict=True):
            bytes_of = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
            if len(bytes_of) != module.sizes[number]:
                raise ValueError(f"{len(bytes_of)} bytes for a buffer of {module.sizes[number]}")
            memory[number] = bytes_of
        return memory


def _arguments(dispatch: Dispatch, memory: list[Any]) -> list[Any]:
    def bound(binding: Binding) -> Any:
        return memory[binding.buffer][binding.offset : binding.offset + binding.length]

    return [bound(each) for each in dispatch.bindings]


def compiled(case: Case, shape: Shape, setting: str, folder: Path) -> Product | None:
    """IREE's kernels for a product, or None if it refuses the setting.

    What lies in the folder already is not compiled again. Raises SystemExit where there is no
    compiler, and RuntimeError where it refuses what every user would ask for.
    """
    path = folder / f"{case}-{'x'.join(map(str, shape))}-{setting}"
    if not (path / "done").exists():
        path.mkdir(parents=True, exist_ok=True)
        (path / "product.mlir").write_text(source(case, shape))
        target = case.arch if setting == DEFAULT else _PRODUCTS[case.arch]
        command: list[str | Path] = [
            COMPILER, path / "product.mlir", "--iree-hal-target-device=hip",
            f"--iree-rocm-target={target}", *FLAGS[setting], "--compile-to=hal",
            "-o", path / "module.mlir", f"--iree-hal-dump-executable-binaries-to={path}",
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise SystemExit(MISSING) from error
        (path / "done").write_text("" if done.returncode == 0 else done.stderr or "refused")
    refused = (path / "done").read_text()
    if refused and setting == DEFAULT:
        raise RuntimeError(f"iree-compile refuses {case}, {shape}: {refused[:500]}")
    return None if refused else Product(case, shape, setting, path)
