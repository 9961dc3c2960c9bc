"""The CPU's benchmark beside MKL: which one it takes, and what it says where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.cpu import gemm
from benchmarks.cpu.mkl import MISSING, mkl
from benchmarks.cpu.timing import model_name


def test_where_mkl_is_not_installed_there_is_none(tmp_path: Path) -> None:
    assert mkl(tmp_path) is None


@pytest.mark.parametrize("there", [False, True])
def test_a_table_says_whether_mkl_is_there_and_which_cpu_it_is_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], there: bool
) -> None:
    stand_in = ("MKL 1", lambda a, b, c: np.matmul(a, b, out=c)) if there else None
    monkeypatch.setattr(gemm, "mkl", lambda: stand_in)
    monkeypatch.setattr(gemm, "fresh", lambda threads: None)
    monkeypatch.setattr(gemm, "_compared", lambda extents, threads, peers: [2.0] * len(peers))
    monkeypatch.setattr("sys.argv", ["gemm", "--shapes", "2"])
    gemm.main()
    first, header, *means = capsys.readouterr().out.splitlines()
    assert model_name() in first
    assert (MISSING in first) != there
    assert ("MKL" in header) == there
    names = ["NumPy", "MKL"] if there else ["NumPy"]
    assert means == [f"of {name}'s speed: geometric mean 2.000, least 2.00" for name in names]


def test_wrong_numbers_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(a: object, b: object, c: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
        c[:] = 0

    monkeypatch.setattr("benchmarks.cpu.timing._LONGEST", 0.0)
    with pytest.raises(SystemExit, match="9x8x7: wrong numbers"):
        gemm._compared((9, 8, 7), 1, [wrong])
