"""The numbers in hip.h are those of AMD's header, as hip-python has them."""

from __future__ import annotations

import ctypes
import re

import pytest
from hip import hip

from tests.test_readme import ROOT

HEADER = (ROOT / "mfmadsl/runtime/hip.h").read_text()


def constant(name: str) -> int:
    (value,) = re.findall(rf"\b{name} = (\d+)[,;]", HEADER)
    return int(value)


def test_what_is_asked_of_a_device() -> None:
    (names,) = re.findall(r"enum Attribute \{(.*?)\}", HEADER, re.DOTALL)
    asked = re.findall(r"k(\w+) = ", names)
    assert len(asked) == 10
    for name in asked:
        theirs = getattr(hip.hipDeviceAttribute_t, f"hipDeviceAttribute{name}")
        assert constant(f"k{name}") == int(theirs), name


def test_directions_of_copies() -> None:
    (kinds,) = re.findall(r"enum CopyKind \{(.*?)\}", HEADER)
    for name, value in re.findall(r"k(\w+) = (\d)", kinds):
        assert int(value) == int(getattr(hip.hipMemcpyKind, f"hipMemcpy{name}"))
    assert constant("kEventDisableTiming") == hip.hipEventDisableTiming


@pytest.mark.parametrize("key", ["BUFFER_POINTER", "BUFFER_SIZE", "END"])
def test_keys_of_a_launch(key: str) -> None:
    name = "k" + key.title().replace("_", "")
    (value,) = re.findall(rf"{name} = reinterpret_cast<void\*>\((\d)\)", HEADER)
    theirs = getattr(hip, f"HIP_LAUNCH_PARAM_{key}")
    assert int(value) == (theirs if isinstance(theirs, int) else int(theirs))


def test_where_the_name_of_the_chip_lies() -> None:
    properties = hip.hipDeviceProp_t()
    assert constant("kPropertiesBytes") == properties.c_sizeof()
    ctypes.memset(int(properties), 0, properties.c_sizeof())
    ctypes.memmove(int(properties) + constant("kGcnArchNameOffset"), b"gfx942", 6)
    assert properties.gcnArchName == b"gfx942"
