"""Registers are told alike, whoever tells them."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from mfmadsl.emulator.profiler import profile
from mfmadsl.gemm import Gemm
from mfmadsl.language import find
from mfmadsl.model import ARCHITECTURES
from mfmadsl.report import kernel_json, kernel_summary
from mfmadsl.report.profile import profile_json, profile_table


@pytest.mark.parametrize("arch", list(ARCHITECTURES))
def test_the_reports_agree_with_each_other_and_with_the_metadata(arch: str) -> None:
    gemm = Gemm(find("mfma_f32_16x16x16_f16"), arch, 64, 64, 64)
    kernel = gemm.build()
    found = profile(kernel, list(gemm.operands()))
    of_kernel, of_profile = kernel_json(kernel, [[]]), profile_json(found)
    for name in ("registers", "spills", "scratch_bytes"):
        assert of_kernel[name] == of_profile[name]
    document = re.search(r"\.amdgpu_metadata\n---\n(.*?)\n\.\.\.", kernel.assembly, re.DOTALL)
    assert document
    (metadata,) = yaml.safe_load(document[1])["amdhsa.kernels"]
    registers = of_kernel["registers"]
    assert registers["accumulation"] == metadata[".agpr_count"]
    assert registers["scalar"] == metadata[".sgpr_count"]
    vector, accumulation = registers["vector"], registers["accumulation"]
    total = max(vector, accumulation) if arch == "gfx908" else vector
    if accumulation and arch != "gfx908":
        total = -(-vector // 4) * 4 + accumulation
    assert total == metadata[".vgpr_count"]
    assert of_profile["allocated"] >= total
    line = f"{vector} vector, {accumulation} of accumulation, {registers['scalar']} scalar"
    assert f"registers  {line}" in kernel_summary(kernel)
    assert f"registers   {line}" in profile_table(found)
    json.dumps([of_kernel, of_profile])
