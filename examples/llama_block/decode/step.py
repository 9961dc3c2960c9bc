"""Runs an exported step on a device, in a process that knows nothing of how it was made.

    python examples/llama_block/decode/step.py DEVICE FOLDER

DEVICE is `rocm` or `cpu`. FOLDER has the library DEVICE.so and arguments.npz, with the arguments in
their order; y and the last of keys and values go to results.npz.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tvm
from tvm import relax


def main(kind: str, folder: Path) -> None:
    """Run the step once."""
    device = tvm.device(kind, 0)
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(folder / f"{kind}.so")), device)
    with np.load(folder / "arguments.npz") as stored:
        given = {name: tvm.runtime.tensor(stored[name], device) for name in stored.files}
    y = machine["step"](*given.values()).numpy()
    keys, values = (given[name].numpy() for name in ("keys", "values"))
    np.savez(folder / "results.npz", y=y[0], key=keys[-1], value=values[-1])


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("rocm", "cpu"):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    main(sys.argv[1], Path(sys.argv[2]))
