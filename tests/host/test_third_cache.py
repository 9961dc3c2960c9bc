"""The rate of the third cache: measured once, kept, and measured anew where it cannot be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mfmadsl.host import third_cache as module
from mfmadsl.host.cpu import host_cpu
from mfmadsl.host.third_cache import RATES, USUAL, third_rate
from mfmadsl.model import Cpu

CPU, SIZES = Cpu("znver4", ("sse2", "avx")), {1: 32 << 10, 2: 1 << 20, 3: 32 << 20}


class Measured:
    """A measurement that gives one value after the other, and counts."""

    def __init__(self, *values: float | None) -> None:
        self.values: Iterator[float | None] = iter(values)
        self.count = 0

    def __call__(self, cpu: Cpu, sizes: object) -> float | None:
        self.count += 1
        return next(self.values)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MFMADSL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def measuring(monkeypatch: pytest.MonkeyPatch, *values: float | None) -> Measured:
    measured = Measured(*values)
    monkeypatch.setattr(module, "_measured", measured)
    return measured


@pytest.mark.parametrize(
    ("measured", "rate"), [(3.7, 4), (20.8, 24), (19, 16), (0.01, 2), (900.0, 32), (9.7, 8)]
)
def test_a_measurement_is_rounded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, measured: float, rate: int
) -> None:
    """So that noise decides on no tiling."""
    measuring(monkeypatch, measured)
    assert third_rate(CPU, SIZES) == rate


def test_it_is_measured_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = measuring(monkeypatch, 4.0, 24.0)
    assert [third_rate(CPU, SIZES) for _ in range(3)] == [4, 4, 4]
    assert measured.count == 1
    assert [each.name[:12] for each in folder.iterdir()] == ["third-cache-"]


@pytest.mark.parametrize("other", ["name", "features", "size", "model"])
def test_another_cpu_is_measured_by_itself(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Machines may share a home."""
    measuring(monkeypatch, 4.0, 24.0)
    told = tmp_path / "cpuinfo"
    monkeypatch.setattr(module, "_CPUINFO", told)
    told.write_text("model\t: 1\nflags\t: fpu\n\nmodel\t: 7\n")
    assert third_rate(CPU, SIZES) == 4
    cpu = Cpu(
        "rocketlake" if other == "name" else CPU.name, CPU.features[: 1 + (other != "features")]
    )
    sizes = {**SIZES, 2: 2 << 20} if other == "size" else SIZES
    if other == "model":
        told.write_text("model\t: 2\nflags\t: fpu\n")
    assert third_rate(cpu, sizes) == 24
    assert third_rate(cpu, sizes) == 24


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff\xfe", b"{", b"[]", b"null", b'{"cpu": "CPU"}', b'{"cpu": "CPU", "bytes": 5}',
        b'{"cpu": "CPU", "bytes": "4"}', b'{"cpu": "CPU", "bytes": 4.0}',
        b'{"cpu": "CPU", "bytes": true}', b'{"cpu": "another", "bytes": 4}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_made_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    measured = measuring(monkeypatch, 4.0, 24.0)
    third_rate(CPU, SIZES)
    (file,) = folder.iterdir()
    identity = json.loads(file.read_text())["cpu"]
    file.write_bytes(content.replace(b'"CPU"', json.dumps(identity).encode()))
    assert [third_rate(CPU, SIZES) for _ in range(2)] == [24, 24]
    assert measured.count == 2


def test_where_nothing_can_be_kept_it_is_measured_each_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write_text("no folder")
    measuring(monkeypatch, 4.0, 24.0)
    assert [third_rate(CPU, SIZES) for _ in range(2)] == [4, 24]


def test_where_nothing_can_be_measured_it_is_a_usual_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring(monkeypatch, None)
    assert third_rate(CPU, SIZES) == USUAL
    assert not folder.exists()


def test_this_machine_reads_some_bytes(folder: Path) -> None:
    found = module._measured(host_cpu(), SIZES)
    assert found is not None
    assert 0.5 < found < 200
    assert third_rate(host_cpu(), SIZES) in RATES


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("fused", [False, True])
def test_its_code_is_made_for_vectors_of_each_width(lanes: int, fused: bool) -> None:
    assert module._compiled(module._text(lanes, fused)).get_function_address("read")
    assert ("@llvm.fma" in module._text(lanes, fused).partition("declare")[0]) == fused
