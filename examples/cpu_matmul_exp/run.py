"""F = exp(A x B) x C on a CPU, from plain loops on, beside NumPy.

    python examples/cpu_matmul_exp/run.py [--size MxKxNxP] [--json FILE] [--svg FILE]
    python examples/cpu_matmul_exp/run.py --tune 64

README.md beside this file tells what the steps do.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # `examples`, and mfmadsl beside it

from examples.cpu_matmul_exp.command import main
from examples.process import exit_code

if __name__ == "__main__":
    sys.exit(exit_code(main))
