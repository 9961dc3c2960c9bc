"""Attentions of TVM's paged KV cache in the chip model: TVM's own kernels, and ours in their place.

.venv/bin/python -m benchmarks.attention.kv_cache [--arch gfx942]       # after `make demo`

An emulated GPU runs each of them once, for which TVM's need some minutes. Heads of queries and of
keys are 32 and 8, and the depth is 128, in float16.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm.relax.frontend.nn.llm import kv_cache
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.columns import columns
from mfmadsl.device import Options, run_program
from mfmadsl.device.launch import LaunchRecord
from mfmadsl.model import ARCHITECTURES, product_of
from mfmadsl.relax.kv_cache.replace import with_cache_kernels

HEADS, SHARED, DEPTH, PAGE = 32, 8, 128, 16
ROLES = ("tvm", "ours")


@dataclass(frozen=True)
class Case:
    """A call: new queries of each batch, of `keys` that are in the cache; to decode if it is 1."""

    batches: int
    queries: int
    keys: int

    @property
    def name(self) -> str:
        return f"{self.batches}_{self.queries}_{self.keys}"

    def function(self, target: tvm.target.Target) -> PrimFunc:
        """TVM's function for it."""
        sizes = SHARED, HEADS, DEPTH, "float16", False
        made: Callable[..., PrimFunc] = (
            kv_cache._attention_decode if self.queries == 1 else kv_cache._attention_prefill
        )
        return made(*sizes, {}, target)

    def arguments(self, device: Any) -> list[Any]:
        """What the function takes, on a device."""
        rows, pages = self.batches * self.queries, -(-self.keys // PAGE)
        count = self.batches * pages
        generator = np.random.default_rng(1)
        starts = np.arange(self.batches + 1, dtype="int32")
        q = generator.standard_normal((rows, HEADS, DEPTH)).astype("float16")
        pool = generator.standard_normal((count, 2, SHARED, PAGE, DEPTH)).astype("float16")
        last = np.full(self.batches, self.keys - (pages - 1) * PAGE, "int32")
        zeros = np.zeros(self.batches, "int32"), np.zeros(rows, "int32")
        table = [starts * pages, generator.permutation(count).astype("int32"), last]
        arrays = [
            q, *([] if self.queries == 1 else [starts * self.queries]), pool, *table, *zeros,
            np.zeros_like(q), np.zeros((rows, HEADS), "float32"),
        ]  # fmt: skip
        numbers = [*([] if self.queries == 1 else [1]), 0, 1.0, 1e4, DEPTH**-0.5]
        return [*(tvm.runtime.tensor(array, device) for array in arrays), *numbers]


CASES = (Case(1, 1, 2048), Case(8, 1, 2048), Case(1, 128, 2048))


def run(arch: str) -> None:
    """Run all of them on the device that there is."""
    target, device = mfmadsl.target(arch), tvm.rocm(0)
    for case in CASES:
        for role in ROLES:
            name = f"{role}_{case.name}"
            module = tvm.IRModule({name: case.function(target).with_attr("global_symbol", name)})
            if role == "ours":
                module, (line,) = with_cache_kernels(module, target)
                assert line.is_ours, line.reason
            library = tvm.compile(module, target, tir_pipeline="mfmadsl")
            library[name](*case.arguments(device))
            device.sync()


def table(launches: Sequence[LaunchRecord], arch: str) -> str:
    """Microseconds of each case, with the gaps between kernels."""
    gap = product_of(arch).launch * 1e-9
    rows = [("BATCHES", "QUERIES", "KEYS", "TVM US", "OURS US", "TIMES")]
    for case in CASES:
        seconds = []
        for role in ROLES:
            own = [each for each in launches if each.symbol.startswith(f"{role}_{case.name}_k")]
            seconds.append(sum((each.modelled or 0.0) + gap for each in own) - gap)
        theirs, ours = seconds
        sizes = str(case.batches), str(case.queries), str(case.keys)
        rows.append((*sizes, f"{theirs * 1e6:.1f}", f"{ours * 1e6:.1f}", f"{theirs / ours:.1f}"))
    return columns(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code."""
    parser = argparse.ArgumentParser(description="TVM's KV cache in the chip model.")
    parser.add_argument("--arch", choices=list(ARCHITECTURES), default="gfx942")
    parser.add_argument("--inside", action="store_true", help="be the program on the device")
    asked = parser.parse_args(arguments)
    if asked.inside:
        run(asked.arch)
        return 0
    program = [sys.executable, "-m", "benchmarks.attention.kv_cache", "--inside"]
    ended = run_program([*program, "--arch", asked.arch], Options(asked.arch, profile=True))
    if ended.exit_code == 0:
        print(table(ended.launches, asked.arch))
    return int(ended.exit_code)


if __name__ == "__main__":
    sys.exit(main())
