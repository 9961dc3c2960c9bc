"""A GEMM in Gluon for gfx942 that others have measured, written anew from its description.

AMD's tutorial (ROCm/gfx950-gluon-tutorials, kernels/gemm/gfx942/inter_wave) describes it: tiles of
256 x 256 x 64, eight waves in two groups, of which one multiplies while the other moves. All of the
LDS holds one step; the next one waits in registers.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import warp_pipeline_stage
from triton.experimental.gluon.language.amd.cdna3 import buffer_load, mfma

from benchmarks.measured.gluon_gfx950 import stored, tile_of

ROWS = gl.constexpr(256)
HALF = gl.constexpr(128)
DEPTH = gl.constexpr(64)


@gluon.jit
def ping_pong(
    a_ptr, b_ptr, c_ptr, M, N, K, PER_PHASE: gl.constexpr, DIES: gl.constexpr, GROUP: gl.constexpr
):
    """C = A x B^T by eight waves in two groups; rows of the LDS change places in each, or in each
    second one, so that lanes that read together do not meet, or do."""
    sums: gl.constexpr = gl.amd.AMDMFMALayout(
        version=3, instr_shape=[16, 16, 16], transposed=True, warps_per_cta=[2, 4]
    )
    left: gl.constexpr = gl.DotOperandLayout(0, sums, 8)
    right: gl.constexpr = gl.DotOperandLayout(1, sums, 8)
    # Eight lanes have a row, and those of a wave eight rows that follow each other.
    a_copy: gl.constexpr = gl.DistributedLinearLayout(
        [[0, 1], [0, 2], [0, 4], [8, 0], [128, 0]],
        [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0]],
        [[16, 0], [32, 0], [64, 0]], [], [ROWS, DEPTH],
    )  # fmt: skip
    b_copy: gl.constexpr = gl.DistributedLinearLayout(
        [[1, 0], [2, 0], [4, 0], [0, 8], [0, 128]],
        [[8, 0], [16, 0], [32, 0], [0, 1], [0, 2], [0, 4]],
        [[0, 16], [0, 32], [0, 64]], [], [DEPTH, ROWS],
    )  # fmt: skip
    a_lies: gl.constexpr = gl.SwizzledSharedLayout(8, PER_PHASE, 8, order=[1, 0])
    b_lies: gl.constexpr = gl.SwizzledSharedLayout(8, PER_PHASE, 8, order=[0, 1])
    row, column = tile_of(M, N, DIES, GROUP)
    element: gl.constexpr = a_ptr.dtype.element_ty
    a_lds = gl.allocate_shared_memory(element, [ROWS, DEPTH], a_lies)
    b_lds = gl.allocate_shared_memory(element, [DEPTH, ROWS], b_lies)
    a_rows = gl.arange(0, ROWS, gl.SliceLayout(1, a_copy))
    a_steps = gl.arange(0, DEPTH, gl.SliceLayout(0, a_copy))
    b_rows = gl.arange(0, ROWS, gl.SliceLayout(0, b_copy))
    b_steps = gl.arange(0, DEPTH, gl.SliceLayout(1, b_copy))
    a_at = gl.expand_dims(a_rows, 1) * K + gl.expand_dims(a_steps, 0)
    b_at = gl.expand_dims(b_steps, 1) + gl.expand_dims(b_rows, 0) * K
    a = a_ptr + row * ROWS * K
    b = b_ptr + column * ROWS * K
    top_near = gl.zeros((HALF, HALF), gl.float32, sums)
    top_far = gl.zeros((HALF, HALF), gl.float32, sums)
    low_near = gl.zeros((HALF, HALF), gl.float32, sums)
    low_far = gl.zeros((HALF, HALF), gl.float32, sums)
    b_next = buffer_load(b, b_at)
    a_next = buffer_load(a, a_at)
    b_lds.store(b_next)
    a_lds.store(a_next)
    near = b_lds.slice(0, HALF, 1).load(right)
    steps = gl.cdiv(K, DEPTH)
    gl.assume(steps > 1)
    for _ in range(steps - 1):
        with warp_pipeline_stage("move", priority=1):
            b += DEPTH
            b_next = buffer_load(b, b_at)
            top = a_lds.slice(0, HALF, 0).load(left)
        with warp_pipeline_stage("multiply", priority=0):
            top_near = mfma(top, near, top_near)
        with warp_pipeline_stage("move", priority=1):
            a += DEPTH
            a_next = buffer_load(a, a_at)
            far = b_lds.slice(HALF, HALF, 1).load(right)
        with warp_pipeline_stage("multiply", priority=0):
            top_far = mfma(top, far, top_far)
        with warp_pipeline_stage("move", priority=1):
            low = a_lds.slice(HALF, HALF, 0).load(left)
            b_lds.store(b_next)
        with warp_pipeline_stage("multiply", priority=0):
            low_near = mfma(low, near, low_near)
        with warp_pipeline_stage("move", priority=1):
            near = b_lds.slice(0, HALF, 1).load(right)
            a_lds.store(a_next)
        with warp_pipeline_stage("multiply", priority=0):
            low_far = mfma(low, far, low_far)
    top = a_lds.slice(0, HALF, 0).load(left)
    top_near = mfma(top, near, top_near)
    far = b_lds.slice(HALF, HALF, 1).load(right)
    top_far = mfma(top, far, top_far)
    low = a_lds.slice(HALF, HALF, 0).load(left)
    low_near = mfma(low, near, low_near)
    low_far = mfma(low, far, low_far)
    rows = gl.arange(0, HALF, gl.SliceLayout(1, sums))
    columns = gl.arange(0, HALF, gl.SliceLayout(0, sums))
    c = c_ptr + row * ROWS * N + column * ROWS
    stored(top_near, c, N, rows, columns)
    stored(low_near, c + HALF * N, N, rows, columns)
    stored(top_far, c + HALF, N, rows, columns)
    stored(low_far, c + HALF * N + HALF, N, rows, columns)
