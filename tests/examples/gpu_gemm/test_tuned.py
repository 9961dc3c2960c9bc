"""The search draws tiles, times them by the profiler, and finds the same each time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from examples.gpu_gemm import tuned
from examples.gpu_gemm.large_tiles import TILE
from examples.product import Size

pytestmark = pytest.mark.xdist_group("gpu_gemm_tuned")  # one process keeps the search

SIZE = Size(256, 128, 64)


@pytest.fixture(scope="module")
def trials() -> list[tuned.Trial]:
    return tuned.tune(SIZE, "gfx942", trials=3, seed=9)


@pytest.mark.thorough
def test_the_fastest_comes_first(trials: list[tuned.Trial]) -> None:
    times = [trial.microseconds for trial in trials if trial.microseconds is not None]
    assert times == sorted(times)
    assert 2 <= len(trials) <= 4


@pytest.mark.thorough
def test_the_tile_by_hand_is_among_them(trials: list[tuned.Trial]) -> None:
    assert TILE in [trial.tile for trial in trials]


@pytest.mark.thorough
def test_each_tile_is_of_the_space(trials: list[tuned.Trial]) -> None:
    for trial in trials:
        assert trial.tile.k_step in tuned.K_STEPS
        assert set(trial.tile.threads) <= set(tuned.THREADS)
        assert set(trial.tile.parts) <= set(tuned.PARTS)


@pytest.mark.thorough
def test_the_times_are_those_of_the_profiler(trials: list[tuned.Trial]) -> None:
    from examples.gpu_gemm.predict import predict

    ranked = Size(256, 128, 64)
    for trial in trials[:2]:
        again = predict(tuned.schedule(ranked, trial.tile), ranked, "gfx942").microseconds
        assert trial.microseconds == pytest.approx(again)


@pytest.mark.thorough
def test_a_search_takes_neither_rpc_nor_xgboost_and_comes_out_the_same(
    trials: list[tuned.Trial],
) -> None:
    """In a process of its own, where nobody else has imported anything."""
    code = (
        "import sys\n"
        "for name in ('xgboost', 'tornado', 'psutil'): sys.modules[name] = None\n"
        "from examples.gpu_gemm import tuned\n"
        "from examples.product import Size\n"
        f"print(tuned.tune({SIZE!r}, 'gfx942', trials=3, seed=9) )\n"
        "print('tvm.s_tir.tensor_intrin' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(trials), "False"]


def test_a_tile_without_a_kernel_is_told_and_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """128 + 128 rows of 128 of K are more than a workgroup's shared memory."""
    monkeypatch.setattr(tuned, "CHOICES", ((2,), (2,), (16,), (16,), (128,)))
    found = tuned.tune(Size(128, 128, 128), "gfx942", trials=1, seed=9)
    assert [trial.microseconds is None for trial in found] == [False, True]
    assert found[0].tile == TILE
