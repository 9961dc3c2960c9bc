"""The steps in their order."""

from __future__ import annotations

from examples.gpu_gemm import (
    coalesced,
    double_buffer,
    gemm,
    large_tiles,
    mfma,
    naive,
    one_dimension,
    shared_memory,
    thread_tiles,
    two_dimensions,
    vectors,
)
from examples.gpu_gemm.step import Step
from examples.product import Size

CLASSIC = Size(1024, 512, 2048)
"""That of the texts by which people learn this."""

FULL = Size(4096, 4864, 384)
"""Of 128 x 128 tiles four for each of the 304 compute units of an MI300X."""

LADDER = (
    Step("naive", "a workgroup of one thread for each element", naive.schedule),
    Step("one_dimension", "32 threads along rows", one_dimension.schedule),
    Step("two_dimensions", "32 x 32 threads", two_dimensions.schedule),
    Step("coalesced", "neighbours along columns", coalesced.schedule),
    Step("shared_memory", "tiles of A and B in shared memory", shared_memory.schedule),
    Step("thread_tiles", "4 x 4 elements a thread", thread_tiles.schedule),
    Step("large_tiles", "8 x 8 elements a thread", large_tiles.schedule),
    Step("vectors", "four floats a load, A turned", vectors.schedule),
    Step("double_buffer", "the next tile comes meanwhile", double_buffer.schedule),
    Step("tuned", "tiles that a search found"),
    Step("mfma", "matrix cores, by mfma_schedule", matrix=mfma.schedule),
    Step("gemm", "gemm_schedule and its passes", matrix=gemm.schedule),
    Step("gemm_f16", "the same of halves", matrix=gemm.halves, dtype="float16"),
)
