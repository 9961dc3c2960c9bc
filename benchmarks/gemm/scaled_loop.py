"""The main loops of scaled products on the model of one of an MI355X's compute units.

    python -m benchmarks.gemm.scaled_loop

The loop's time is what 4096 more of K take: so it has no prologue and no epilogue. The traffic of
scales is what the loop's accesses touch besides A and B, in cycles of the vector L1 cache. It takes
two minutes.
"""

from __future__ import annotations

import click

import mfmadsl
from benchmarks.gemm.scaled import ARCH, TYPES, arrays
from mfmadsl.emulator.profiler.profile import Profile
from mfmadsl.model import ELEMENT_TYPES, Tiling, architecture

SIZE = 4096


def profile(types: tuple[str, str], k: int, tiling: Tiling, order: str) -> Profile:
    shape = (SIZE, SIZE, k)
    workload = mfmadsl.scaled_matmul(*shape, *types, scale_order=order)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=ARCH, tiling=tiling), ARCH)
    return mfmadsl.profile(kernel, arrays(types, shape, order))


def row(kind: str, order: str) -> str:
    """How busy the matrix cores are, and what scales take of the loop's cycles."""
    types = TYPES[kind]
    workload = mfmadsl.scaled_matmul(SIZE, SIZE, SIZE, *types, scale_order=order)
    tiling = mfmadsl.gemm_tiling(workload, arch=ARCH)
    short, long = (profile(types, k, tiling, order) for k in (SIZE, 2 * SIZE))
    cycles = long.timing.cycles - short.timing.cycles
    busy = (long.matrix_bound - short.matrix_bound) / cycles
    loop = long.loop
    assert loop is not None
    # A workgroup's tiles for all of the loop's K, of which A and B are known.
    entry = mfmadsl.find(tiling.instruction)
    rows, columns = tiling.wave_tile
    k = loop.instructions["matrix"] * entry.m * entry.n * entry.k // (rows * columns)
    chip = architecture(ARCH)
    of_rows = [tiling.k_step * ELEMENT_TYPES[each].bits // 8 for each in types]
    lines = (max(each, chip.line_bytes) for each in of_rows)
    operands = sum(side * each for side, each in zip(tiling.block, lines, strict=True))
    scales = loop.line_bytes * tiling.wave_count - operands * (k // tiling.k_step)
    share = scales / chip.l1_bytes_per_cycle / (cycles * k / SIZE)
    cells = [kind, order, f"{tiling.block[0]}x{tiling.block[1]}x{tiling.k_step}"]
    cells += [f"{busy:.1%}", f"{share * short.workgroups:.1%}", f"{loop.lds_conflict_cycles}"]
    return f"| {' | '.join(cells)} |"


@click.command()
def main() -> None:
    """Print the table."""
    print("| modelled | scales | tile | matrix cores busy | scale traffic | LDS conflict cycles |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in TYPES:
        for order in ("words", "shuffled"):
            print(row(kind, order), flush=True)


if __name__ == "__main__":
    main()
