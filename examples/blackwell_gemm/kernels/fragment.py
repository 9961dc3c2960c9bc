"""The registers by which a warpgroup reads sums out of tensor memory."""

from __future__ import annotations

from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TileLayout, tid_in_wg

LANES = 128  # of tensor memory: one for each thread of a warpgroup


@T.meta_class
class Fragment:
    """`columns` sums of one row in each thread: `sums` in float32, `halves` rounded to float16.

    Thread t of a warpgroup reads lane t of tensor memory, which is row t of the tile.
    """

    def __init__(self, columns):
        self.sums = T.alloc_local((columns,), "float32")
        self.halves = T.alloc_local((columns,), "float16")
        self.rows = self.sums.view(
            LANES, columns, layout=TileLayout(S[(LANES, columns) : (1 @ tid_in_wg, 1)])
        )

    @T.inline
    def load(self, tensor_memory, column, columns):
        """Read a warpgroup's rows of `columns` sums from `column` on; wait for them; round them."""
        Tx.wg.copy_async(self.rows[:, :], tensor_memory[:, column : column + columns])
        T.ptx.tcgen05.wait__ld.sync.aligned()
        Tx.cast(self.halves[:], self.sums[:])
