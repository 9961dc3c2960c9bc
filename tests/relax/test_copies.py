"""What is copied of a product's result into a cache is in the product's kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.script import tirx as T  # noqa: N812 - as TVM has it

import mfmadsl
from mfmadsl.relax.pipeline import fused, scheduled
from tests.relax.emulated import kernels_of

K, HEADS, HEAD = 64, 2, 16
COLUMNS = 3 * HEADS * HEAD
TARGET = mfmadsl.target("gfx942")
FULL = 7.0
"""What is in a cache before."""


@dataclass(frozen=True)
class Model:
    """A layer for queries, keys and values of some rows; the last two are kept in a cache.

    A cache may be read `before` that, and what is kept be `doubled`.
    """

    rows: int = 1
    before: bool = False
    doubled: bool = False

    def module(self) -> tvm.IRModule:
        """`step(x, weight, keys, values)` with the layer's result and both caches."""
        tokens = tirx.Var("tokens", "int64")
        cache = relax.TensorType((tokens, HEADS, HEAD), "float16")
        x = relax.Var("x", relax.TensorType((self.rows, K), "float16"))
        weight = relax.Var("weight", relax.TensorType((COLUMNS, K), "float16"))
        keys, values = (relax.Var(name, cache) for name in ("keys", "values"))
        builder = relax.BlockBuilder()
        with builder.function("step", [x, weight, keys, values]):
            with builder.dataflow():
                y = builder.emit(relax.op.matmul(x, relax.op.permute_dims(weight)))
                own = builder.emit(relax.op.reshape(y, (self.rows, 3 * HEADS, HEAD)))
                added = builder.emit(relax.op.add(keys, keys)) if self.before else y
                write = builder.add_func(_write(self.rows, self.doubled), "write")
                both = builder.emit(
                    relax.call_tir_inplace(write, [own, keys, values], [1, 2], [cache, cache])
                )
                parts = [builder.emit(relax.TupleGetItem(both, n)) for n in range(2)]
                result = builder.emit_output(relax.Tuple([y, added, *parts]))
            builder.emit_func_output(result)
        found: tvm.IRModule = builder.get()
        return found


def _write(rows: int, doubled: bool) -> tirx.PrimFunc:
    """Store keys and values behind those of others."""

    @T.prim_func(private=True, s_tir=True)  # type: ignore[untyped-decorator]
    def write(o: T.handle, k: T.handle, v: T.handle) -> None:
        tokens = T.int64()
        own = T.match_buffer(o, (T.int64(rows), T.int64(3 * HEADS), T.int64(HEAD)), "float16")
        keys = T.match_buffer(k, (tokens, T.int64(HEADS), T.int64(HEAD)), "float16")
        values = T.match_buffer(v, (tokens, T.int64(HEADS), T.int64(HEAD)), "float16")
        for i, h, d in T.grid(T.int64(rows), T.int64(HEADS), T.int64(HEAD)):
            with T.sblock("write"):
                vi, vh, vd = T.axis.remap("SSS", [i, h, d])
                keys[tokens - rows + vi, vh, vd] = own[vi, HEADS + vh, vd]
                values[tokens - rows + vi, vh, vd] = own[vi, 2 * HEADS + vh, vd]

    def twice(store: tirx.BufferStore) -> tirx.BufferStore:
        return tirx.BufferStore(store.buffer, store.value + store.value, store.indices)

    found: tirx.PrimFunc = write
    return tvm_ffi.structural_map(found, (tirx.BufferStore, twice)) if doubled else found


def lowered(model: Model) -> tuple[tvm.IRModule, list[str]]:
    """The scheduled module, and the names of our kernels."""
    with TARGET:
        module, report = scheduled(fused(model.module(), TARGET), TARGET)
    return module, [each.function for each in report.functions if each.is_ours]


@pytest.mark.parametrize("rows", [1, 3, 16])
def test_each_element_is_stored_at_all_of_its_places(rows: int) -> None:
    module, ours = lowered(Model(rows))
    assert len(ours) == 1
    assert ours[0].endswith("_write")
    (kernel,) = kernels_of(module, "gfx942").values()
    random = np.random.default_rng(rows)
    x, weight = (random.integers(-3, 4, (n, K)).astype("float16") for n in (rows, COLUMNS))
    for tokens in (rows, rows + 5):
        keys, values = (np.full((tokens, HEADS, HEAD), FULL, "float16") for _ in range(2))
        found = np.zeros((rows, COLUMNS), "float16")
        arrays = [x, weight, keys, values, found]
        assert mfmadsl.sanitize(kernel, arrays, keep_going=True).faults == ()
        y = x.astype("float64") @ weight.T.astype("float64")
        np.testing.assert_array_equal(found, y.astype("float16"))
        kept = y.reshape(rows, 3, HEADS, HEAD)
        for n, cache in ((1, keys), (2, values)):
            np.testing.assert_array_equal(cache[-rows:], kept[:, n])
            assert (cache[:-rows] == FULL).all()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Model(rows=17), "it has 17 rows: up to 16 are copied"),
        (Model(before=True), "an array that it writes is used between them"),
        (Model(doubled=True), "it does more than to copy each element"),
    ],
)
def test_others_stay_a_kernel_of_their_own_and_the_report_says_why(
    model: Model, reason: str
) -> None:
    apart: dict[str, str] = {}
    with TARGET:
        fused(model.module(), TARGET, apart)
    assert apart["write"].startswith(f"apart from NT_matmul: {reason}")
    module, ours = lowered(model)
    assert not any("write" in name for name in ours)
    assert "write" in {str(name.name_hint) for name, _ in module.functions_items()}
