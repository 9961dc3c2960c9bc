"""A product of matrices on a GPU, from plain threads to matrix cores.

    python examples/gpu_gemm/run.py [--arch gfx942] [--run] [--json FILE] [--svg FILE]
    python examples/gpu_gemm/run.py --asm double_buffer

The same schedules for AMD and NVIDIA; README.md beside this file tells what they do.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # `examples`, and mfmadsl beside it

from examples.gpu_gemm.command import main
from examples.process import exit_code

if __name__ == "__main__":
    sys.exit(exit_code(main))
