"""Runs exported libraries on a device, in a process that knows nothing of how they were made.

    python examples/llama_block/infer.py DEVICE FOLDER

DEVICE is `rocm` or `cpu`. For each type there is FOLDER/DEVICE.TYPE.so, and FOLDER/TYPE.npz with
the parameters, in the order in which the functions take them, and tokens of each turn. The results
of each turn go to FOLDER/DEVICE.TYPE.results.npz.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ml_dtypes  # bfloat16 for NumPy
import numpy as np
import numpy.typing as npt
import tvm
from tvm import relax


def main(kind: str, folder: Path) -> None:
    """Run each library on its tokens: the first turn fills the cache, others extend it."""
    device = tvm.device(kind, 0)
    stored_types = [path.stem for path in sorted(folder.glob("*.npz")) if "." not in path.stem]
    if not stored_types:
        sys.exit(f"{folder}: there is nothing to run: `run.py --keep FOLDER` writes it")
    for dtype in stored_types:
        given = folder / f"{dtype}.npz"
        stored = {name: _typed(array, dtype) for name, array in np.load(given).items()}
        library = tvm.runtime.load_module(str(folder / f"{kind}.{dtype}.so"))
        machine = relax.VirtualMachine(library, device)
        parameters = [
            tvm.runtime.tensor(array, device)
            for name, array in stored.items()
            if not name.startswith("turn")
        ]
        results = {}
        cache: list[tvm.runtime.Tensor] = []
        turns = [array for name, array in stored.items() if name.startswith("turn")]
        for number, x in enumerate(turns):
            function = machine["extend" if cache else "prefill"]
            y, *cache = function(tvm.runtime.tensor(x, device), *cache, *parameters)
            for name, value in zip(("y", "keys", "values"), (y, *cache), strict=True):
                results[f"{name}{number}"] = value.numpy().view(np.uint16)
        written = folder / f"{kind}.{dtype}.results.npz"
        np.savez(written, **results)
        print(f"{dtype}: {len(turns)} turns on {kind}, {written.name}")


def _typed(array: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    """NumPy's files know no bfloat16: they hold its bits."""
    return array.view(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("rocm", "cpu"):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    main(sys.argv[1], Path(sys.argv[2]))
