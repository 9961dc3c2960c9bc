"""Attention on matrix cores, from three kernels to the one that `attention_schedule` makes.

    python examples/attention/run.py [--arch gfx942] [--step STEP] [--json FILE] [--svg FILE]
    python examples/attention/run.py --size 16x1024x1024x64

Each step is a file; README.md beside this file tells what it does.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # `examples`, and mfmadsl beside it

from examples.attention.command import main
from examples.process import exit_code

if __name__ == "__main__":
    sys.exit(exit_code(main))
