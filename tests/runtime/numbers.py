"""Runs what `exported` wrote, in another process.

python -m tests.runtime.numbers FOLDER
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from mfmadsl.runtime import autoload
from tests.runtime import exported
from tests.runtime.exported import K, M, N


def on(device: Any, values: np.ndarray[Any, Any]) -> Any:
    return tvm.runtime.tensor(values, device)


def shifts(library: Any, device: Any, n: int, stream: int | None = None) -> None:
    """Values that name their position, of any number, times 2 and shifted by two scalars."""
    if stream is not None:
        device.set_raw_stream(stream)
    a, b = np.arange(n, dtype="float32"), on(device, np.full(n, -1, "float32"))
    library["shifted"](on(device, a), b, -3, 1 << 33, 2.0)
    np.testing.assert_array_equal(b.numpy(), a * 2 - 3 + np.float32(1 << 33))
    library["shifted"](on(device, a), b, -3, 5, 2.0)
    np.testing.assert_array_equal(b.numpy(), a * 2 + 2)


def turns(library: Any, device: Any) -> None:
    """The LDS is an argument of the launch."""
    a, b = np.arange(256, dtype="float32"), on(device, np.zeros(256, "float32"))
    library["through_lds"](on(device, a), b)
    np.testing.assert_array_equal(b.numpy(), a[::-1])


def multiplies(library: Any, device: Any) -> None:
    numbers = np.random.default_rng(7)
    a, b = (numbers.standard_normal(s).astype("float16") for s in ((M, K), (K, N)))
    c = on(device, np.zeros((M, N), "float32"))
    library["main"](on(device, a), on(device, b), c)
    np.testing.assert_allclose(
        c.numpy(), a.astype("float64") @ b.astype("float64"), rtol=0, atol=1e-4
    )


def main(folder: Path) -> None:
    autoload()
    device = tvm.rocm(0)
    assert device.exist
    simple = tvm.runtime.load_module(str(folder / "simple.so"))
    product = tvm.runtime.load_module(str(folder / "product.so"))
    for n in (1, 63, 64, 1000):
        shifts(simple, device, n)
    shifts(simple, device, 100, device.create_raw_stream())
    device.set_raw_stream(0)
    twice = on(device, np.arange(128, dtype="int32"))
    simple["doubled"](twice)
    np.testing.assert_array_equal(twice.numpy(), 2 * np.arange(128))
    turns(simple, device)
    multiplies(product, device)
    multiplies(exported.product(), device)  # built by a process that was forked from this one
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda n: shifts(simple, device, n), (200, 300)))
    at_once = exported.simple()
    at_once["doubled"](twice)
    np.testing.assert_array_equal(twice.numpy(), 4 * np.arange(128))
    assert "v_lshlrev_b32" in at_once.mod.imports[0].inspect_source("asm")
    assert simple.time_evaluator("doubled", device, number=1)(twice).mean > 0
    print(device.compute_version, "right")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
