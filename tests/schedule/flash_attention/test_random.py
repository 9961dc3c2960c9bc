"""Random attentions, in random tilings, under the sanitizer."""

from __future__ import annotations

import os
import random
from dataclasses import fields, replace
from typing import Any

import pytest

import mfmadsl
from mfmadsl import ScheduleError
from mfmadsl.model import EIGHT_BIT_FLOATS
from tests.conftest import ALL
from tests.schedule.flash_attention.attended import Case
from tests.schedule.flash_attention.packed_case import PackedCase

SEED = int(os.environ["MFMADSL_SEED"])


def drawn(number: int) -> tuple[Case, str, dict[str, Any]]:
    """An attention, a chip, and what of its tiling is changed."""
    random_one = random.Random(f"attention {SEED} {number}")
    choose, chance = random_one.choice, random_one.random
    shared = choose([1, 1, 2, 3])
    length = [1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 190]
    symbolic = choose(["", "", "queries", "keys", "queries keys"])
    case = Case(
        choose([1, 1, 2]), shared * choose([1, 1, 2, 4]), choose(length), choose(length),
        choose([16, 32, 40, 64, 80, 96, 128]), choose(["float16", "float16", "bfloat16"]),
        value_depth=choose([None, None, 16, 24, 64]), kv_heads=shared,
        layout=choose(["bhsd", "bshd"]), scale=choose([None, None, 1.0, 0.01]),
        causal=chance() < 0.5, window=choose([None, None, None, 1, 40]),
        cap=choose([None, None, None, 2.0]), bias=chance() < 0.3, log_sum=chance() < 0.7,
        symbolic=symbolic, index_type=choose(["int32", "int64"]),
    )  # fmt: skip
    if chance() < 0.25:
        most = case.keys
        ends = [choose([0, 1, most, random_one.randint(0, most)]) for _ in range(case.batch)]
        case = replace(case, lengths=tuple(ends))
    if chance() < 0.25:
        size = choose([1, 2, 8, 16, 64])
        case = replace(case, page_size=size, keys=-(-case.keys // size) * size)
    arch = choose(["gfx90a", "gfx942", "gfx942", "gfx950"])
    case = _in_eight_bits(case, arch, random_one)
    if chance() < 0.2:
        case = _packed(case, random_one)
    elif chance() < 0.2:
        case = replace(case, symbolic=f"{case.symbolic} batch")
    tiling: dict[str, Any] = {}
    if chance() < 0.5:
        tiling = {"waves": choose([1, 2, 4]), "keys": choose([32, 32, 64, 64, 96, 128])}
    if chance() < 0.3:
        tiling["splits"] = choose([2, 3, 7])
    return case, arch, tiling


def _packed(case: Case, random_one: random.Random) -> PackedCase:
    """Two to four batches of it, of which each has queries and keys of its own number."""
    batch = random_one.choice([2, 3, 4])
    queries, keys = (
        tuple(random_one.choice([0, 1, most, random_one.randint(0, most)]) for _ in range(batch))
        for most in (case.queries, case.keys)
    )
    queries = (*queries[1:], max(queries[0], 1 - sum(queries[1:])))  # arrays are not empty
    keys = (*keys[1:], max(keys[0], 1 - sum(keys[1:])))
    packed = "queries" if case.page_size is not None else random_one.choice(["queries", "all"])
    if random_one.random() < 0.5 and "batch" not in case.symbolic:
        case = replace(case, symbolic=f"{case.symbolic} batch")
    given = vars(case) | {"batch": batch, "lengths": keys}
    behind = random_one.choice([0, 0, 3])
    own = {field.name: given[field.name] for field in fields(Case)}
    return PackedCase(**own, packed=packed, q_lengths=queries, behind=behind)


def _in_eight_bits(case: Case, arch: str, random_one: random.Random) -> Case:
    """The attention, or one of a smaller cache, or of eight bits in all."""
    choose, chance = random_one.choice, random_one.random
    of_chip = {"gfx942": ["float8_e4m3fnuz", "float8_e5m2fnuz"]}.get(arch, [])
    if arch == "gfx950":
        of_chip = ["float8_e4m3fn", "float8_e5m2"]
    if of_chip and chance() < 0.2:
        return replace(case, dtype=choose(of_chip), scales=choose([None, "head"]))
    if chance() < 0.25:
        kv_dtype = choose(["int8", *EIGHT_BIT_FLOATS])
        return replace(case, kv_dtype=kv_dtype, scales=choose([None, "head", "token"]))
    return case


@pytest.mark.parametrize("number", range(160))
def test_it_is_right_or_refused(number: int) -> None:
    case, arch, tiling = drawn(number)
    if tiling and _refuses(case, arch, tiling):
        tiling = {}  # what is chosen is legal
    case.check(arch, **tiling)


@pytest.mark.thorough
def test_most_tilings_are_taken() -> None:
    given = [drawn(number) for number in range(0, 160, 1 if ALL else 10)]
    assert sum(_refuses(*each) for each in given if each[2]) < len(given) / 8


def _refuses(case: Case, arch: str, tiling: dict[str, Any]) -> bool:
    """Whether a tiling is refused, by one of its fields."""
    own = replace(mfmadsl.attention_tiling(case.workload(), arch), **tiling)
    try:
        mfmadsl.attention_schedule(case.workload(), arch, own)
    except ScheduleError as error:
        if not str(error).startswith("tiling."):
            raise
        return True
    return False
