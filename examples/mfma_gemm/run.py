"""A product of matrices on matrix cores, from one instruction to nearly all that they can do.

    python examples/mfma_gemm/run.py [--arch gfx942] [--step STEP] [--json FILE] [--svg FILE]
    python examples/mfma_gemm/run.py --asm swizzle

Each step is a change of a `Tiling`; README.md beside this file tells what it does.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # `examples`, and mfmadsl beside it

from examples.mfma_gemm.command import main
from examples.process import exit_code

if __name__ == "__main__":
    sys.exit(exit_code(main))
