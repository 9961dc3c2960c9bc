"""How an attention is cut: the values that one tunes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AttentionTiling:
    """Sizes of an attention's kernel.

    A workgroup has so many `waves`, each with so many queries, `rows`, and walks over K and V in
    steps of so many `keys`, which it holds in the LDS. `instruction` names the matrix instruction
    of both products; one read of the LDS feeds `k_pack` of the first, and `value_pack` of the
    second. With `splits`, so many workgroups share the keys of a workgroup's queries, and a second
    kernel joins what they found. With several `stages` each tile has as many places in the LDS,
    which loads fill past the registers where the chip has such loads.
    """

    instruction: str
    waves: int
    rows: int
    keys: int
    k_pack: int
    value_pack: int
    splits: int = 1
    stages: int = 1

    @property
    def block(self) -> int:
        """The queries of a workgroup."""
        return self.waves * self.rows
