"""Triton's kernels whose programs wait for one another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.sanitizer import sanitize
from tests.triton.compiled import compile_cases

ROOT = Path(__file__).parent.parent.parent
ARCHITECTURES = ("gfx90a", "gfx942", "gfx950")
CASES = [f"{arch}.{name}" for arch in ARCHITECTURES for name in ("locked_sum", "passed_on")]
SIZE = 512
MANY = 80
"""Programs of four waves: more than start at once."""

pytestmark = pytest.mark.xdist_group("triton")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_cases(tmp_path_factory.mktemp("locks"), CASES)


class Rows:
    """Integers, so that the order of sums does not matter."""

    def __init__(self, case: str, programs: int) -> None:
        self._sum = case.endswith("locked_sum")
        self.x = (np.arange(programs * SIZE, dtype=np.float32) % 97).reshape(programs, SIZE)
        self.y = np.zeros(SIZE if self._sum else (programs, SIZE), np.float32)
        self.args = [self.x, self.y, np.zeros(programs, np.int32), None, None]

    def expected(self) -> npt.NDArray[np.float32]:
        return np.asarray(self.x.sum(axis=0) if self._sum else np.cumsum(self.x, axis=0))


def launch(folder: Path, case: str, programs: int) -> dict[str, Any]:
    lds = json.loads((folder / f"{case}.json").read_text())["lds_bytes"]
    return {"grid": (programs,), "block": (256,), "lds_bytes": lds}


@pytest.mark.parametrize("case", CASES)
def test_programs_that_wait_for_others_are_right_and_not_accused(case: str, compiled: Path) -> None:
    text = (compiled / f"{case}.s").read_text()
    usual: dict[str, Any] = {}
    for options in (usual, {"order": "random", "seed": 1}):
        rows = Rows(case, 6)
        found = sanitize(text, rows.args, keep_going=True, **launch(compiled, case, 6), **options)
        assert [str(fault) for fault in found.faults] == []
        assert (rows.y == rows.expected()).all()


@pytest.mark.parametrize("case", ["gfx942.passed_on"])
def test_a_program_may_wait_for_one_that_starts_later(case: str, compiled: Path) -> None:
    rows = Rows(case, MANY)
    emulate((compiled / f"{case}.s").read_text(), rows.args, **launch(compiled, case, MANY))
    assert (rows.y == rows.expected()).all()


@pytest.mark.parametrize("case", ["gfx942.locked_sum", "gfx942.passed_on"])
def test_a_lock_that_nobody_releases_is_told_though_the_loop_has_barriers(
    case: str, compiled: Path
) -> None:
    text = (compiled / f"{case}.s").read_text()
    kept = "\n".join(line for line in text.splitlines() if "global_atomic_swap" not in line)
    assert kept != text
    with pytest.raises(EmulationError, match=r"global_atomic_cmpswap.*waits in a loop for offset"):
        emulate(kept, Rows(case, MANY).args, **launch(compiled, case, MANY))


@pytest.mark.parametrize("case", ["gfx942.passed_on", "gfx950.locked_sum"])
def test_a_release_that_lacks_its_write_back_is_a_race(case: str, compiled: Path) -> None:
    text = (compiled / f"{case}.s").read_text()
    lacking = text.replace("\tbuffer_wbl2 sc1\n", "")
    assert lacking != text
    with pytest.raises(EmulationError, match="there it needs `buffer_wbl2 sc1`"):
        sanitize(lacking, Rows(case, 6).args, **launch(compiled, case, 6))
