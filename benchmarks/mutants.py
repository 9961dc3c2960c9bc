"""Every mutant of a correct GEMM kernel, and what catches it.

    python -m benchmarks.mutants

The test suite takes a sample of these (tests/emulator/sanitizer/test_mutants.py). A mutant is
harmless if the sanitizer finds nothing, its result is right, and right too on a chip that does
everything as late as it may, its waves in three random orders.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import cache

from benchmarks.call import command
from mfmadsl.emulator import emulate
from tests.emulator.sanitizer.late import emulate_late
from tests.emulator.sanitizer.mutants import Mutant, mutants
from tests.emulator.sanitizer.verdict import BUDGET, problem, verdict

SEEDS = 3


def judged(k: int, mutant: Mutant) -> str:
    """What catches a mutant; `ESCAPED` if nothing does and it is not harmless."""
    gemm, right = _right(k)
    caught = verdict(gemm, mutant, right)
    if caught == "harmless":
        for seed in range(SEEDS):
            a, b, c = gemm.operands()
            emulate_late(mutant, [a, b, c], seed, BUDGET)
            if not gemm.compare(a, b, c).agrees:
                return "ESCAPED"
    return caught


@cache
def _right(k: int):  # type: ignore[no-untyped-def]
    gemm, kernel = problem(k)
    a, b, c = gemm.operands()
    emulate(kernel, [a, b, c])
    return gemm, c


def main() -> None:
    """Print the table: kinds of mutants in rows, what caught them in columns."""
    command(__doc__).parse_args()
    chosen = [(128, mutant) for mutant in mutants(problem(128)[1])]
    chosen += [(512, m) for m in mutants(problem(512)[1]) if m.kind == "bound wrong"]
    table: dict[str, Counter[str]] = defaultdict(Counter)
    with ProcessPoolExecutor() as pool:
        ks, found = zip(*chosen, strict=True)
        for mutant, caught in zip(found, pool.map(judged, ks, found, chunksize=8), strict=True):
            table[mutant.kind][caught] += 1
    columns = sorted({caught for counts in table.values() for caught in counts})
    print(f"| mutant | all | {' | '.join(columns)} |")
    print(f"| --- |{' --- |' * (len(columns) + 1)}")
    for kind, counts in table.items():
        cells = " | ".join(str(counts[column]) for column in columns)
        print(f"| {kind} | {counts.total()} | {cells} |")
    total = " | ".join(str(sum(c[column] for c in table.values())) for column in columns)
    print(f"| all | {len(chosen)} | {total} |")


if __name__ == "__main__":
    main()
