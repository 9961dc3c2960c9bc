"""An emulated GPU has what its product has, as far as this machine goes."""

from __future__ import annotations

import os

import pytest

from mfmadsl.device.gpu import Gpu, Options


@pytest.mark.parametrize(("here", "expected"), [(1 << 36, 1 << 36), (1 << 50, 192 << 30)])
def test_its_memory_is_that_of_the_product_or_of_this_machine(
    here: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": here // 4096}
    monkeypatch.setattr(os, "sysconf", known.__getitem__)
    assert Gpu(Options(product="MI300X")).memory_bytes == expected
