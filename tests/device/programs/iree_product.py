"""IREE's runtime, as it comes, on the emulated GPU: prints how many elements of a product differ.

    mfmadsl device -- python iree_product.py MODULE STREAMS

MODULE is what `iree-compile` makes of product.mlir; STREAMS says whether IREE runs its work on
streams (true), or by graphs (false).
"""

from __future__ import annotations

import sys

import numpy as np
from iree import runtime

runtime.flags.parse_flags(f"--hip_use_streams={sys.argv[2]}")
module = runtime.load_vm_flatbuffer_file(sys.argv[1], driver="hip")
random = np.random.default_rng(1)
a, b = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((64, 96), (96, 128)))
found = module.product(a, b).to_host()
print(int((found != a.astype(np.float64) @ b.astype(np.float64)).sum()), "differ")
