"""Lines of the source in faults, from debug information and from `.loc`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.code_object import read_code_object
from mfmadsl.emulator.code_object.source_lines import SourceLines
from mfmadsl.emulator.sanitizer import sanitize

SOURCE = """\
#define ADD(a, b) ((a) += (b))
__attribute__((amdgpu_kernel))
void kernel(__attribute__((address_space(1))) int *x, int n) {
  int i = __builtin_amdgcn_workitem_id_x();
  if (i < n)
    ADD(x[i], i);
}
"""


def compiled(folder: Path, *options: str) -> Path:
    """What clang makes of the source, which lies in a folder with a space in its name."""
    folder = folder / "my kernels"
    folder.mkdir(exist_ok=True)
    source, made = folder / "kernel.c", folder / "kernel.out"
    source.write_text(SOURCE)
    command = ["clang", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-nogpulib", "-O2"]
    whole = [sys.executable, "-m", "ziglang", *command, *options, str(source), "-o", str(made)]
    subprocess.run(whole, check=True)
    return made


def linked(made: Path) -> bytes:
    to = made.with_suffix(".co")
    command = [sys.executable, "-m", "ziglang", "ld.lld", "-shared", str(made), "-o", str(to)]
    subprocess.run(command, check=True)
    return to.read_bytes()


def source_of_fault(text: str) -> str | None:
    """Where the source stores beyond the end, by `emulate` and under the sanitizer alike."""
    args = [np.zeros(10, np.int32), np.int32(11)]
    with pytest.raises(EmulationError, match="offset 40 of") as raised:
        emulate(text, args, (1,), (64,))
    found = sanitize(text, args, (1,), (64,), keep_going=True).faults
    assert {fault.source for fault in found} == {raised.value.fault.source}
    return raised.value.fault.source


@pytest.mark.parametrize("version", [4, 5])
def test_a_code_object_tells_its_lines(tmp_path: Path, version: int) -> None:
    data = linked(compiled(tmp_path, f"-gdwarf-{version}", "-c"))
    text = read_code_object(data).assembly("kernel")
    assert source_of_fault(text) == f"{tmp_path}/my kernels/kernel.c:6"


def test_text_of_a_compiler_tells_its_lines(tmp_path: Path) -> None:
    text = compiled(tmp_path, "-g", "-S").read_text()
    assert source_of_fault(text) == f"{tmp_path}/my kernels/kernel.c:6"


def test_without_debug_information_there_is_no_line(tmp_path: Path) -> None:
    data = linked(compiled(tmp_path, "-c"))
    assert SourceLines.of(data).lines == ()
    text = read_code_object(data).assembly("kernel")
    assert ".loc" not in text
    assert source_of_fault(text) is None


def test_broken_debug_information_tells_nothing(tmp_path: Path) -> None:
    data = linked(compiled(tmp_path, "-g", "-c"))
    assert {Path(each.file).name for each in SourceLines.of(data).lines} == {"kernel.c"}
    assert SourceLines.of(data[: len(data) // 2]).lines == ()
