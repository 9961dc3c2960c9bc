"""A model that is nothing but the attention of TVM's paged KV cache, and what is done with it.

`python -m tests.relax.kv_cache.model FOLDER` runs FOLDER/model.so on `tvm.rocm(0)`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache

HEADS, SHARED, DEPTH, PAGE = 8, 2, 64, 16


@dataclass(frozen=True)
class Turn:
    """New tokens of some sequences: one for each to decode, else any number."""

    sequences: Sequence[int]
    tokens: Sequence[int]

    @property
    def qkv(self) -> Any:
        """Queries, keys and values of all of them."""
        count = sum(self.tokens)
        shape = (count, 1) if max(self.tokens) == 1 else (1, count)
        generator = np.random.default_rng(count + len(self.sequences))
        numbers = generator.standard_normal((*shape, HEADS + 2 * SHARED, DEPTH))
        return numbers.astype("float16")


TURNS = (
    Turn([0, 1, 2], [20, 3, 37]),  # prefill
    Turn([0, 1, 2], [1, 1, 1]),
    Turn([2, 0], [5, 17]),  # of what the cache has, too: sequence 0 gets a page behind those of 2
    Turn([1, 2], [1, 1]),
    Turn([0, 2, 1], [1, 1, 1]),
)


class Model(nn.Module):  # type: ignore[misc]
    """A cache, and attention with it."""

    def __init__(self, target: tvm.target.Target) -> None:
        self.target = target

    def create(
        self, most_batches: tirx.Var, most_tokens: tirx.Var, chunk: tirx.Var, page_size: tirx.Var,
        slides: tirx.Var,
    ) -> PagedKVCache:  # fmt: skip
        return TIRPagedKVCache(
            "mha", most_batches, most_tokens, chunk, page_size, slides,
            layer_partition=relax.ShapeExpr([0, 1]), num_hidden_layers=1,
            num_attention_heads=HEADS, num_key_value_heads=SHARED, qk_head_dim=DEPTH,
            v_head_dim=DEPTH, mla_original_qk_head_dim=0, mla_original_v_head_dim=0,
            rope_mode=RopeMode.NORMAL, rope_scale=1, rope_theta=10000, rope_scaling={},
            rope_ext_factors=relax.prim_value(0), rotary_dim=DEPTH, enable_disaggregation=False,
            dtype="float16", target=self.target,
        )  # fmt: skip

    def forward(self, qkv: nn.Tensor, cache: PagedKVCache) -> tuple[nn.Tensor, PagedKVCache]:
        return cache.attention_with_fused_qkv(0, qkv, HEADS, sm_scale=0.2), cache


def exported(target: tvm.target.Target) -> tvm.IRModule:
    """The model as a module of Relax."""
    modes = {"param_mode": "none", "effect_mode": "none"}
    numbers = dict.fromkeys(("most_batches", "most_tokens", "chunk", "page_size", "slides"), int)
    qkv = nn.spec.Tensor(["b", "s", HEADS + 2 * SHARED, DEPTH], "float16")
    given = {"qkv": qkv, "cache": nn.spec.Object(object_type=PagedKVCache)}
    specs = {"create": {**numbers, "$": modes}, "forward": {**given, "$": modes}}
    module: tvm.IRModule = Model(target).export_tvm(specs)[0]
    return module


def results(library: Any, device: Any) -> list[Any]:
    """What the model makes of each turn."""
    machine = relax.VirtualMachine(library, device)
    shape = tvm.runtime.ShapeTuple
    cache = machine["create"](*(shape([n]) for n in (4, 512, 128, PAGE, 0)))
    for sequence in range(3):
        _builtin("kv_state_add_sequence")(cache, sequence)
    found = []
    for turn in TURNS:
        _builtin("kv_state_begin_forward")(cache, shape(turn.sequences), shape(turn.tokens))
        o, cache = machine["forward"](tvm.runtime.tensor(turn.qkv, device), cache)
        _builtin("kv_state_end_forward")(cache)
        found.append(o.numpy())
    return found


def _builtin(name: str) -> Any:
    return tvm.get_global_func(f"vm.builtin.{name}")


def main(folder: Path) -> None:
    """Run it, and write what it makes."""
    library = tvm.runtime.load_module(str(folder / "model.so"))
    found = results(library, tvm.rocm(0))
    np.savez(folder / "results.npz", **{f"turn{n}": each for n, each in enumerate(found)})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
