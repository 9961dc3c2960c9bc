"""LLVM's assembler, which `ziglang` brings: a witness of what is an instruction."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path


def accepted(lines: Sequence[str], arch: str) -> list[bool]:
    """Whether LLVM assembles each line for a chip."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "lines.s"
        source.write_text("".join(f"{line}\n" for line in lines))
        target = ["-target", "amdgcn-amdhsa-none", f"-mcpu={arch}"]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "ziglang",
                "cc",
                *target,
                "-c",
                source,
                "-o",
                source.with_suffix(".o"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    wrong = {int(n) for n in re.findall(r"^[^\n]*?lines\.s:(\d+):\d+: error:", done.stderr, re.M)}
    if done.returncode and not wrong:
        raise RuntimeError(done.stderr)
    return [number not in wrong for number in range(1, len(lines) + 1)]
