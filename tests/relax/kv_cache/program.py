"""Calls functions of a library on `tvm.rocm(0)`: python program.py FOLDER.

FOLDER/library.so has them. Each FOLDER/NAME.call.npz is a call: its arrays, in order, how many
elements each begins behind its pointer, the numbers behind them, and the function. What the arrays
hold then goes to FOLDER/NAME.done.npz. Those of 16 bits are bits there, with their type.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import tvm


def placed(array: Any, offset: int, device: Any) -> Any:
    """An array on the device, with others around it."""
    around = np.full(offset, 100, array.dtype), array.ravel(), np.full(9, 100, array.dtype)
    whole = tvm.runtime.tensor(np.concatenate(around), device)
    return whole._create_view(array.shape, str(array.dtype), offset * array.itemsize)


def main(folder: Path) -> None:
    """All calls."""
    library, device = tvm.runtime.load_module(str(folder / "library.so")), tvm.rocm(0)
    for path in sorted(folder.glob("*.call.npz")):
        call = np.load(path)
        kind = ml_dtypes.bfloat16 if str(call["dtype"]) == "bfloat16" else np.float16
        arrays = [call[f"array{n}"] for n in range(len(call["offsets"]))]
        arrays = [each.view(kind) if each.dtype == np.uint16 else each for each in arrays]
        places = zip(arrays, call["offsets"], strict=True)
        tensors = [placed(array, int(offset), device) for array, offset in places]
        numbers = [int(each) if each == int(each) else float(each) for each in call["numbers"]]
        library[str(call["function"])](*tensors, *numbers)
        device.sync()
        found = {f"array{n}": _bits(each.numpy()) for n, each in enumerate(tensors)}
        np.savez(path.with_name(path.name.replace(".call.", ".done.")), **found)


def _bits(array: Any) -> Any:
    return array.view(np.uint16) if array.dtype.itemsize == 2 else array


if __name__ == "__main__":
    main(Path(sys.argv[1]))
