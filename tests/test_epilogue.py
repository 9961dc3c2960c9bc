"""What follows a product, in NumPy: its values, and how far a kernel may be off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mfmadsl.epilogue import STEPS, check_steps, model
from mfmadsl.schedule import ScheduleError

GRID = np.linspace(-6, 6, 120001)
ROUNDING = 2.0**-24


@pytest.mark.parametrize("name", STEPS)
def test_a_slope_is_the_steepest_of_its_step(name: str) -> None:
    """By differences of neighbours; of a scale it is the scale's own."""
    step = STEPS[name]
    values = step.model(GRID, np.ones(1))
    steepest = np.abs(np.diff(values) / np.diff(GRID)).max()
    slope = 1 if step.slope is None else step.slope  # what it reads is 1
    assert slope - 0.005 < steepest <= slope + 1e-9


@pytest.mark.parametrize("name", ["bias", "scale", "residual"])
def test_each_vector_and_matrix_stands_there_once(name: str) -> None:
    check_steps((name, "relu"), "float32")
    with pytest.raises(ScheduleError, match=f"`{name}` can stand there once only"):
        check_steps((name, "relu", name), "float32")
    check_steps(("relu", "relu"), "float32")


@pytest.mark.parametrize("name", ["scale", "gelu", "silu"])
def test_some_steps_are_of_floats(name: str) -> None:
    with pytest.raises(ScheduleError, match=f"`{name}` is of floats, and the sums are int32"):
        check_steps((name,), "int32")
    check_steps(("bias", "residual", "relu"), "int32")


def operands(names: tuple[str, ...], shape: tuple[int, int]) -> list[Any]:
    generator = np.random.default_rng(len(names))
    sizes = {"vector": shape[-1:], "matrix": shape}
    return [
        generator.standard_normal(sizes[STEPS[n].takes]) * np.exp2(generator.integers(-9, 9))
        for n in names if STEPS[n].takes
    ]  # fmt: skip


CHAINS = [("bias",), ("scale",), ("residual",), ("relu",), ("gelu",), ("silu",),
          ("bias", "gelu"), ("scale", "residual", "relu"), ("silu", "scale", "bias")]  # fmt: skip


@pytest.mark.parametrize("names", CHAINS, ids=",".join)
def test_an_error_of_the_product_stays_within_its_bound(names: tuple[str, ...]) -> None:
    """As the steps make it grow, also where they cancel what was before."""
    generator = np.random.default_rng(1)
    shape = (64, 96)
    product = generator.standard_normal(shape) * np.exp2(generator.integers(-8, 8, shape))
    errors = np.abs(product) * 2.0**-12
    given = operands(names, shape)
    if names == ("residual",):
        given = [-product]
    exact, bounds = model(names, product, errors, given, ROUNDING)
    for sign in (-1, 1):
        off, _ = model(names, product + sign * errors, errors, given, ROUNDING)
        assert (np.abs(off - exact) <= bounds).all()


@pytest.mark.parametrize("names", CHAINS[:7], ids=",".join)
def test_what_float32_rounds_away_stays_within_the_bound(names: tuple[str, ...]) -> None:
    generator = np.random.default_rng(2)
    shape = (64, 96)
    product = (generator.standard_normal(shape) * 4).astype(np.float32)
    given = [each.astype(np.float32) for each in operands(names, shape)]
    wide = [each.astype(np.float64) for each in given]
    exact, bounds = model(names, product.astype(np.float64), np.zeros(shape), wide, ROUNDING)
    rounded = product
    rest = iter(given)
    for name in names:
        taken = next(rest) if STEPS[name].takes else np.zeros(0, np.float32)
        rounded = np.asarray(STEPS[name].model(rounded, taken), np.float32)  # type: ignore[arg-type]
    assert (np.abs(rounded - exact) <= bounds).all()
    assert (bounds <= 2.0**-17 * (1 + np.abs(exact) + np.abs(product)) * 2**10).all()
