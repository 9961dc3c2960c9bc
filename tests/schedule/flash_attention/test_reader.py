"""Attentions as people write them, and what is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.tirx import Expr, PrimFunc

import mfmadsl
from mfmadsl import ScheduleError
from mfmadsl.schedule.flash_attention.reader import is_attention

Q, K, D, C = 40, 70, 32, 16


@dataclass(frozen=True)
class Written:
    """An attention of blocks, each of which may be another one."""

    score: Callable[..., Expr] = lambda s, *_: s
    subtracted: Callable[..., Expr] = lambda largest, *_: largest
    added: Callable[..., Expr] = lambda e, *_: e
    weight: Callable[..., Expr] = lambda e, total: (e / total).astype("float16")
    result: Callable[..., Expr] = lambda t, total: t
    compared: int = K
    key_type: str = "float16"
    value_type: str = "float16"
    rounded: str = "float32"
    power: Callable[[Expr], Expr] = tirx.exp

    def workload(self) -> PrimFunc:
        """Q, K, V and an array of a number for each key, to O."""
        q = te.placeholder((Q, D), "float16", "Q")
        k = te.placeholder((K, D), self.key_type, "K")
        v = te.placeholder((K, C), self.value_type, "V")
        mask = te.placeholder((K,), "int8", "mask")
        d = te.reduce_axis((0, D), "d")

        def product(i: Expr, j: Expr) -> Expr:
            found = q[i, d].astype("float32") * k[j, d].astype("float32")
            return te.sum(found.astype(self.rounded).astype("float32"), axis=[d])

        s = te.compute((Q, K), product, "S")
        x = te.compute((Q, K), lambda i, j: self.score(s[i, j], i, j, mask), "X")
        over = te.reduce_axis((0, self.compared), "j")
        largest = te.compute((Q,), lambda i: te.max(x[i, over], axis=[over]), "row_max")
        e = te.compute(
            (Q, K), lambda i, j: self.power(x[i, j] - self.subtracted(largest[i], i)), "E"
        )
        over_all = te.reduce_axis((0, K), "j")
        total = te.compute((Q,), lambda i: te.sum(self.added(e[i, over_all]), axis=[over_all]), "L")
        p = te.compute((Q, K), lambda i, j: self.weight(e[i, j], total[i]), "P")
        j = te.reduce_axis((0, K), "j")
        t = te.compute((Q, C), lambda i, c: te.sum(
            p[i, j].astype("float32") * v[j, c].astype("float32"), axis=[j]), "T")  # fmt: skip
        o = te.compute((Q, C), lambda i, c: self.result(t[i, c], total[i]), "O")
        return te.create_prim_func([q, k, v, mask, o])


def softmax(x: Any) -> Any:
    """Of rows, in float64."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


EXP = tirx.const(-np.inf, "float32")
TAKEN: dict[str, tuple[Written, Callable[..., Any]]] = {
    "normalised first": (Written(), lambda s, i, j, m: s),
    "normalised last": (
        Written(weight=lambda e, _: e.astype("float16"), result=lambda t, total: t / total),
        lambda s, i, j, m: s,
    ),
    "slopes": (
        Written(lambda s, i, j, _: s - (i - j).astype("float32") * tirx.const(0.1, "float32")),
        lambda s, i, j, m: s - (i - j) * 0.1,
    ),
    "a negative factor": (
        Written(lambda s, *_: s * tirx.const(-2.0, "float32")), lambda s, i, j, m: s * -2
    ),
    "masked by a finite number": (
        Written(lambda s, i, j, _: tirx.Select(j < i, s, tirx.const(-1e9, "float32"))),
        lambda s, i, j, m: np.where(j < i, s, -1e9),
    ),
    "masked by the least number": (
        Written(lambda s, i, j, _: tirx.Select(j < i, s, tirx.min_value("float32"))),
        lambda s, i, j, m: np.where(j < i, s, -3.4e38),
    ),
    "first keys masked by a finite number": (
        Written(lambda s, i, j, _: tirx.Select(j >= 66, s, tirx.const(-1e9, "float32"))),
        lambda s, i, j, m: np.where(j >= 66, s, -1e9),
    ),
    "large scores": (
        Written(lambda s, *_: s * tirx.const(1e9, "float32")), lambda s, i, j, m: s * 1e9
    ),
    "a mask of keys": (
        Written(lambda s, i, j, mask: tirx.Select(mask[j] > tirx.const(0, "int8"), s, EXP)),
        lambda s, i, j, m: np.where(m[j] > 0, s, -np.inf),
    ),
    "a mask of keys under a condition": (
        Written(lambda s, i, j, mask: s + tirx.if_then_else(
            j > 2, mask[j], tirx.const(0, "int8")).astype("float32")),
        lambda s, i, j, m: s + np.where(j > 2, m, 0),
    ),
    "every other key": (
        Written(lambda s, i, j, _: tirx.Select((i + j) % 2 < 1, s, EXP)),
        lambda s, i, j, m: np.where((i + j) % 2 < 1, s, -np.inf),
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", list(TAKEN))
def test_what_is_written_is_computed(form: str) -> None:
    written, score = TAKEN[form]
    workload = written.workload()
    assert is_attention(workload)
    generator = np.random.default_rng(3)
    q, k, v = (
        generator.standard_normal(shape).astype(np.float16) for shape in ((Q, D), (K, D), (K, C))
    )
    mask = (np.arange(K) % 3 > 0).astype(np.int8)
    o = np.full((Q, C), 7, np.float32)
    kernel = mfmadsl.build(mfmadsl.attention_schedule(workload))
    mfmadsl.sanitize(kernel, [q, k, v, mask, o])
    i, j = np.arange(Q)[:, None], np.arange(K)[None]
    weights = softmax(score(q.astype(np.float64) @ k.T.astype(np.float64), i, j, mask))
    bound = weights @ np.abs(v.astype(np.float64))
    assert (np.abs(o - weights @ v.astype(np.float64)) <= 2.0**-10 * bound + 2.0**-20).all()


ONE = tirx.const(1, "float32")
REFUSED = {
    "a mask of a key that there may not be": (
        Written(lambda s, i, j, mask: s + tirx.if_then_else(
            j > 2, mask[j - 3], tirx.const(0, "int8")).astype("float32")),
        "under a condition, where the array may have nothing",
    ),
    "the largest of some scores": (Written(compared=K - 1), "`row_max` is not the largest"),
    "another number subtracted": (
        Written(subtracted=lambda largest, _: largest + ONE), "less the largest",
    ),
    "a sum of squares": (Written(added=lambda e: e * e), "product"),
    "a sum of more": (Written(added=lambda e: e + ONE), "not the sum of the exponentials"),
    "weights of float32": (Written(weight=lambda e, total: e / total), "of float32, in which"),
    "bytes in the sum": (
        Written(added=lambda e: e.astype("int8").astype("float32")), "not the sum of the exponent",
    ),
    "bytes in the weights": (
        Written(weight=lambda e, _: e.astype("int8").astype("float16")), "in which no kernel",
    ),
    "values of float32": (
        Written(weight=lambda e, total: e / total, value_type="float32"), "no kernel attends: cast",
    ),
    "keys of another type": (Written(key_type="bfloat16"), "multiplies bfloat16, and"),
    "rounded products": (Written(rounded="int8"), "no product of queries and keys"),
    "powers of 2": (
        Written(power=tirx.exp2), r"; `T` has `exp2`: write `exp\(x \* log\(2\)\)` for it",
    ),
    "another function": (
        Written(power=tirx.sigmoid), r"`T` multiplies elements with `T.sigmoid\(.*\) / L\[v_i\]`",
    ),
    "no sum": (
        Written(weight=lambda e, _: e.astype("float16")),
        "there are `S`, `row_max`, `T`: none adds up the exponentials",
    ),
    "no maximum": (
        Written(subtracted=lambda largest, _: ONE),
        "`L` is no sum of products, .*; an attention also has a block of the largest score of each",
    ),
    "another quotient": (
        Written(weight=lambda e, total: (e / (total + ONE)).astype("float16")), "not by their sum",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", list(REFUSED))
def test_what_is_no_attention_is_refused(form: str) -> None:
    written, reason = REFUSED[form]
    with pytest.raises(ScheduleError, match=reason):
        mfmadsl.attention_schedule(written.workload())


def test_a_product_is_refused() -> None:
    with pytest.raises(ScheduleError, match="no sum multiplies exponentials"):
        mfmadsl.attention_schedule(mfmadsl.matmul(32, 32, 32, "float16", "float32"))


BAD = [
    ("instruction", "mfma_f32_16x16x4_f32", "multiplies float32"),
    ("instruction", "mfma", "no intrinsic is called"),
    ("rows", 24, "no multiple of the 32 columns"),
    ("rows", 512, "a lane has 1024 sums of 512 queries, but 512 registers"),
    ("keys", 48, "no multiple of 32"),
    ("waves", 32, "at most 1024"),
    ("splits", 0, "from 1"),
    ("splits", 2000, "at most 1024"),
    ("stages", 5, "at most 4"),
]


@pytest.mark.parametrize(("field", "value", "reason"), BAD)
def test_an_illegal_tiling_is_refused(field: str, value: object, reason: str) -> None:
    workload = mfmadsl.attention(1, 1, 64, 64, 64)
    own = vars(mfmadsl.attention_tiling(workload)) | {field: value}
    with pytest.raises(mfmadsl.MfmadslError, match=f"tiling.{field}: .*{reason}"):
        mfmadsl.attention_schedule(workload, tiling=mfmadsl.AttentionTiling(**own))


def test_a_depth_that_the_lds_does_not_hold_is_refused() -> None:
    with pytest.raises(ScheduleError, match="workload: a depth of 4096 and 4096 columns of V"):
        mfmadsl.attention_schedule(mfmadsl.attention(1, 1, 64, 64, 4096))


def test_tiles_that_the_lds_does_not_hold_are_refused() -> None:
    workload = mfmadsl.attention(1, 1, 64, 512, 256)
    own = vars(mfmadsl.attention_tiling(workload)) | {"keys": 128}
    with pytest.raises(ScheduleError, match=r"tiling\.keys: .* 139264 bytes .* 56 keys in one"):
        mfmadsl.attention_schedule(workload, tiling=mfmadsl.AttentionTiling(**own))
