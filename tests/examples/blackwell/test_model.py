"""Laws of the teaching model, and what it says of the ladder."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.blackwell_gemm.ladder import STEPS, Step
from examples.blackwell_gemm.model import (
    Span,
    kib_distinct,
    kib_loaded,
    limit,
    share,
    timeline,
    units,
)

BY_NAME = {step.name: step for step in STEPS}
a_step = st.sampled_from(STEPS)
a_latency = st.floats(0, 20)


def of(engine: str, spans: list[Span]) -> list[Span]:
    return [span for span in spans if span.engine == engine]


@settings(max_examples=60, deadline=None)
@given(a_step, a_latency, st.integers(1, 12), st.integers(1, 4))
def test_every_step_is_loaded_before_it_is_multiplied_and_written_after(
    step: Step, latency: float, steps: int, tiles: int
) -> None:
    spans = timeline(step, latency, steps, tiles)
    loads, mmas, writes = (of(engine, spans) for engine in ("load", "mma", "write"))
    assert len(loads) == len(mmas) == steps * tiles
    assert len(writes) == tiles
    assert all(load.end <= mma.start for load, mma in zip(loads, mmas, strict=True))
    assert all(write.start == mmas[(i + 1) * steps - 1].end for i, write in enumerate(writes))


@settings(max_examples=60, deadline=None)
@given(a_step, a_latency, st.integers(1, 12), st.integers(1, 4))
def test_a_tensor_core_does_one_thing_at_a_time_and_a_stage_holds_one(
    step: Step, latency: float, steps: int, tiles: int
) -> None:
    spans = timeline(step, latency, steps, tiles)
    loads, mmas = of("load", spans), of("mma", spans)
    assert all(a.end <= b.start for a, b in pairwise(mmas))
    reused = zip(mmas, loads[step.stages :], strict=False)
    assert all(mma.end <= load.start for mma, load in reused)


@settings(max_examples=60, deadline=None)
@given(a_step, a_latency, a_latency)
def test_more_latency_is_never_faster(step: Step, one: float, other: float) -> None:
    assert share(step, min(one, other)) >= share(step, max(one, other))


@settings(max_examples=60, deadline=None)
@given(a_latency)
def test_no_step_is_slower_than_the_one_before(latency: float) -> None:
    shares = [share(step, latency) for step in STEPS]
    assert all(a <= b + 1e-9 for a, b in pairwise(shares))


def test_without_latency_the_tensor_core_always_works() -> None:
    assert [share(step, 0) for step in STEPS] == [1.0] * len(STEPS)


@pytest.mark.parametrize(
    ("name", "latency", "period"),
    [("v4", 4, 5), ("v5", 4, 2.5), ("v8", 4, 1.25), ("v8", 2, 1), ("v9", 10, 3), ("v10", 8, 4)],
)
def test_a_step_along_k_takes_its_share_of_a_load_or_its_mma(
    name: str, latency: float, period: float
) -> None:
    """max(MMA, (latency + MMA) / stages), in the middle of a tile."""
    step = BY_NAME[name]
    mmas = of("mma", timeline(step, latency, 64, 1))
    assert (mmas[60].start - mmas[20].start) / 40 == period


def test_larger_tiles_load_less_for_the_same_products() -> None:
    loaded = {step.name: kib_loaded(step) for step in STEPS}
    assert set(loaded.values()) == {32.0, 16.0, 12.0}
    assert (loaded["v8"], loaded["v9"], loaded["v10"]) == (32, 16, 12)
    assert {step.name: units(step) for step in STEPS if units(step) > 1} == {"v9": 2, "v10": 4}


def test_a_row_of_tiles_shares_what_it_loads() -> None:
    """148 tiles of 32 x 32: columns of 32 touch 32 + 5 panels, columns of 8 touch 8 + 19."""
    assert kib_distinct(BY_NAME["v5"]) == (32 + 5) * 16 / 148
    assert kib_distinct(BY_NAME["v6"]) == (8 + 19) * 16 / 148


def test_what_limits_a_step_is_said() -> None:
    assert limit(BY_NAME["v1"], 4) == "a load, an MMA, a store, in turn"
    assert limit(BY_NAME["v4"], 4) == "every load"
    assert limit(BY_NAME["v7"], 4) == "loads: 2 of 5 stages"
    assert limit(BY_NAME["v9"], 4) == "the end of a tile"
