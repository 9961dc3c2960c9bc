"""How a GEMM is cut: the values that one tunes."""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.model.overlap import DEFAULT_OVERLAP


@dataclass(frozen=True)
class Tiling:
    """Sizes of a GEMM kernel; M comes before N. Make others of one with `dataclasses.replace`.

    `block` is a workgroup's tile of C, shared by `waves`, and `k_step` the elements of K that it
    holds in the LDS at a time. `instruction` names the matrix instruction, and `k_pack` says how
    many of them one LDS read feeds. `swizzle` keeps the LDS free of bank conflicts. `stages` is how
    many tiles of each operand there are in the LDS: while one is multiplied, the others are on
    their way; with none, waves load from memory what they multiply. `split_k` workgroups share a
    tile's K; `persistent` workgroups walk over the tiles, which follow each other in blocks of
    `group` rows. Of each step of K `k_waves` times as many waves take a part, and add up their sums
    in the LDS at the end. What the workgroups of a split K have found, the last one of a tile adds
    up in `one_launch`, or else a second kernel.

    `overlap` says what comes while the matrix cores work: `nothing`; the next step's `loads` from
    memory; with those the next register step's `fragments` from the LDS; or `all` of it, spread
    among the matrix instructions. `transposing_reads` are those in which lanes exchange elements,
    where the chip has them.

    An instruction of several blocks multiplies as many matrices of a batch: `block`, `waves` and
    `k_step` are those of each of them.
    """

    block: tuple[int, int]
    k_step: int
    waves: tuple[int, int]
    instruction: str
    k_pack: int
    swizzle: bool = True
    stages: int = 1
    split_k: int = 1
    persistent: bool = False
    group: int = 8
    k_waves: int = 1
    overlap: str = DEFAULT_OVERLAP
    transposing_reads: bool = True
    one_launch: bool = False

    @property
    def wave_count(self) -> int:
        """How many waves a workgroup has."""
        return self.waves[0] * self.waves[1] * self.k_waves

    @property
    def wave_tile(self) -> tuple[int, int]:
        """A wave's tile of C."""
        return self.block[0] // self.waves[0], self.block[1] // self.waves[1]
