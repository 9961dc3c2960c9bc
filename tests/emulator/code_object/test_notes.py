"""Names that are words of YAML: in metadata they stay names, to us and to LLVM."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.backend.gpu.linker import link
from mfmadsl.emulator import emulate
from mfmadsl.emulator.code_object import read_code_object
from mfmadsl.emulator.code_object.notes import as_yaml
from mfmadsl.emulator.text.metadata import read_metadata
from tests.emulator.code_object.objects import ONE_KERNEL, object_file

WORDS = (
    "off", "on", "no", "yes", "y", "n", "null", "~", "true", "FALSE", "1e3", "+1e3", "1_000", "12",
    "012", "0x1f", "0o17", "0b1", "1:30", "1.5", ".5", ".inf", "2001-01-01", "=", "<<", "-", "",
    "nan", "Infinity", "0x1p3", "kernel", "a b", "_Z3sumPf", "it's",
)  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_a_name_is_read_as_it_is_written(name: str) -> None:
    argument = {".name": name, ".offset": 8, ".size": 8, ".value_kind": "global_buffer"}
    kernel = {".name": name, ".args": [argument], ".sgpr_count": 12}
    written = as_yaml(kernel, 5)
    found = read_metadata(f".amdgpu_metadata\n{written}.end_amdgpu_metadata", name)
    (own,) = found.arguments
    assert (own.name, own.offset, found.counts) == (name, 8, {"sgpr_count": 12})


@pytest.mark.parametrize(
    ("name", "argument"),
    [("off", "1e3"), ("no", "off"), ("y", "0x10"), ("on", "null"), ("yes", "nan"), ("n", "true")],
)
def test_llvm_reads_and_writes_the_same_names(name: str, argument: str) -> None:
    """The text has the name of the kernel as LLVM writes it, without quotes."""
    code = "\ts_endpgm"
    text = ONE_KERNEL.format(code=code, after="", accum_offset=".amdhsa_accum_offset 16",
                             target="gfx942")  # fmt: skip
    text = text.replace(".name: x", f".name: !str {argument}").replace("kernel.kd", f"{name}.kd")
    text = text.replace("kernel:", f"{name}:").replace(" kernel\n", f" {name}\n")
    text = text.replace("kernel,", f"{name},").replace("-kernel", f"-{name}")
    for _ in range(2):  # LLVM also assembles what is written of what it assembled
        linked = link(object_file(text, "gfx942"))
        assert linked is not None
        found = read_code_object(linked)
        assert list(found.kernels) == [name]
        text = found.assembly(name)
        (own,) = read_metadata(text, name).arguments
        assert own.name == argument
        assert emulate(text, [np.zeros(4, np.float32)], grid=(1,), block=(64,)).waves == 1
