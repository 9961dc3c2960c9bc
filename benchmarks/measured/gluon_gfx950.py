"""GEMMs in Gluon for gfx950 that others have measured, written anew from their descriptions.

AMD's tutorial (ROCm/gfx950-gluon-tutorials) describes each step of its kernels in prose: tiles of
256 x 256 with 128 bytes of K, copies straight into a padded LDS, and instructions of 16 x 16 x 32.
`straight` has four waves, and one stage (the tutorial's v3) or two (v4); `ping_pong` has eight
waves in two groups, of which one multiplies while the other moves.
"""

from __future__ import annotations

from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import warp_pipeline_stage
from triton.experimental.gluon.language.amd.cdna4 import async_copy, mfma, mfma_scaled
from triton.runtime.jit import constexpr_function

ROWS = gl.constexpr(256)
HALF = gl.constexpr(128)
LINE = 128  # bytes of a row that a step reads
VECTOR = 16  # bytes that a lane copies at once


@constexpr_function
def depth_of(size: int) -> int:
    """Elements of `size` bytes of a row that a step reads."""
    return LINE // size


@constexpr_function
def copied(rows: int, waves: int, size: int, rows_first: bool) -> Any:
    """Which lanes copy what of `rows` lines, in elements of `size` bytes.

    Eight lanes copy a line, and those of a wave lines that are 16 apart: the LDS then has lines
    that are read together in different places behind their padding.
    """
    depth = LINE // size
    inner = [1 << bit for bit in range((VECTOR // size).bit_length() - 1)]
    across = [1 << bit for bit in range(len(inner), depth.bit_length() - 1)]
    bits = [1 << bit for bit in range(rows.bit_length() - 1)]
    apart, rest = [16, 32, 64], [bit for bit in bits if bit not in (16, 32, 64)]
    waved = waves.bit_length() - 1

    def at(values: list[int], along_k: bool) -> list[list[int]]:
        first = along_k != rows_first
        return [[value, 0] if first else [0, value] for value in values]

    return gl.DistributedLinearLayout(
        reg_bases=at(inner, True) + at(rest[waved:], False),
        lane_bases=at(across, True) + at(apart, False),
        warp_bases=at(rest[:waved], False),
        block_bases=[],
        shape=[rows, depth] if rows_first else [depth, rows],
    )


@constexpr_function
def padded(rows: int, size: int, rows_first: bool) -> Any:
    """The LDS of so many lines: those that a wave copies at once, then 32 bytes that are empty."""
    depth = LINE // size
    along = [1 << bit for bit in range(depth.bit_length() - 1)]
    bits = [1 << bit for bit in range(rows.bit_length() - 1)]
    order = [16, 32, 64, *(bit for bit in bits if bit not in (16, 32, 64))]
    if rows_first:
        bases = [[0, k] for k in along] + [[row, 0] for row in order]
        shape = [rows, depth]
    else:
        bases = [[k, 0] for k in along] + [[0, row] for row in order]
        shape = [depth, rows]
    pads = [[512, 16]] if size == 2 else [[1024, 16], [2048, 32]]
    return gl.PaddedSharedLayout(pads, bases, [], shape)


@constexpr_function
def product(rows: int, columns: int, size: int) -> Any:
    """The sums of so many waves along the rows and the columns."""
    shape = [16, 16, 32 if size == 2 else 128]
    return gl.amd.AMDMFMALayout(
        version=4, instr_shape=shape, transposed=True, warps_per_cta=[rows, columns]
    )


@gluon.jit
def multiply(a, b, total):
    if a.dtype.primitive_bitwidth == 16:
        result = mfma(a, b, total)
    else:
        result = mfma_scaled(a, None, "e5m2", b, None, "e5m2", total)
    return result


@gluon.jit
def tile_of(M, N, DIES: gl.constexpr, GROUP: gl.constexpr):
    """The tile of a workgroup: each of the dies, which divide the number of tiles, has tiles in a
    row, in groups of rows of tiles."""
    tile_rows, tile_columns = gl.cdiv(M, ROWS), gl.cdiv(N, ROWS)
    tile = gl.program_id(0)
    if DIES > 1:
        tile = tile % DIES * (tile_rows * tile_columns // DIES) + tile // DIES
    if GROUP == 1:
        row, column = tile // tile_columns, tile % tile_columns
    else:
        first = tile // (GROUP * tile_columns) * GROUP
        here = min(tile_rows - first, GROUP)
        place = tile % (GROUP * tile_columns)
        row, column = first + place % here, place // here
    return row, column


@gluon.jit
def stored(total, c, N, rows, columns):
    """Store sums as they lie."""
    offsets = gl.expand_dims(rows, 1) * N + gl.expand_dims(columns, 0)
    gl.amd.cdna4.buffer_store(total.to(c.dtype.element_ty), c, offsets)


@gluon.jit
def straight(
    a_ptr, b_ptr, c_ptr, M, N, K, SIZE: gl.constexpr, STAGES: gl.constexpr,
    DIES: gl.constexpr, GROUP: gl.constexpr,
):  # fmt: skip
    """C = A x B^T by four waves, which copy, wait, read and multiply.

    With two stages the copy of the next step is under way while one is read.
    """
    depth: gl.constexpr = depth_of(SIZE)
    sums: gl.constexpr = product(2, 2, SIZE)
    left: gl.constexpr = gl.DotOperandLayout(0, sums, 16 // SIZE)
    right: gl.constexpr = gl.DotOperandLayout(1, sums, 16 // SIZE)
    a_copy: gl.constexpr = copied(256, 4, SIZE, True)
    b_copy: gl.constexpr = copied(256, 4, SIZE, False)
    row, column = tile_of(M, N, DIES, GROUP)
    element: gl.constexpr = a_ptr.dtype.element_ty
    a_lds = gl.allocate_shared_memory(element, [STAGES, ROWS, depth], padded(256, SIZE, True))
    b_lds = gl.allocate_shared_memory(element, [STAGES, depth, ROWS], padded(256, SIZE, False))
    a_rows = gl.arange(0, ROWS, gl.SliceLayout(1, a_copy))
    a_steps = gl.arange(0, depth, gl.SliceLayout(0, a_copy))
    b_rows = gl.arange(0, ROWS, gl.SliceLayout(0, b_copy))
    b_steps = gl.arange(0, depth, gl.SliceLayout(1, b_copy))
    a_offsets = gl.expand_dims(a_rows, 1) * K + gl.expand_dims(a_steps, 0)
    b_offsets = gl.expand_dims(b_steps, 1) + gl.expand_dims(b_rows, 0) * K
    a = a_ptr + row * ROWS * K
    b = b_ptr + column * ROWS * K
    total = gl.zeros((ROWS, ROWS), gl.float32, sums)
    steps = gl.cdiv(K, depth)
    if STAGES == 1:
        for _ in range(steps):
            async_copy.buffer_load_to_shared(a_lds.index(0), a, a_offsets)
            async_copy.buffer_load_to_shared(b_lds.index(0), b, b_offsets)
            async_copy.commit_group()
            async_copy.wait_group(0)
            a_values = a_lds.index(0).load(left)
            b_values = b_lds.index(0).load(right)
            total = multiply(a_values, b_values, total)
            a += depth
            b += depth
    else:
        async_copy.buffer_load_to_shared(a_lds.index(0), a, a_offsets)
        async_copy.buffer_load_to_shared(b_lds.index(0), b, b_offsets)
        async_copy.commit_group()
        for step in range(steps - 1):
            a += depth
            b += depth
            here = step % 2
            async_copy.buffer_load_to_shared(a_lds.index(1 - here), a, a_offsets)
            async_copy.buffer_load_to_shared(b_lds.index(1 - here), b, b_offsets)
            async_copy.commit_group()
            async_copy.wait_group(1)
            a_values = async_copy.load_shared_relaxed(a_lds.index(here), left)
            b_values = async_copy.load_shared_relaxed(b_lds.index(here), right)
            total = multiply(a_values, b_values, total)
        async_copy.wait_group(0)
        last = (steps - 1) % 2
        a_values = async_copy.load_shared_relaxed(a_lds.index(last), left)
        b_values = async_copy.load_shared_relaxed(b_lds.index(last), right)
        total = multiply(a_values, b_values, total)
    c = c_ptr + row * ROWS * N + column * ROWS
    stored(
        total, c, N, gl.arange(0, ROWS, gl.SliceLayout(1, sums)),
        gl.arange(0, ROWS, gl.SliceLayout(0, sums)),
    )  # fmt: skip


@gluon.jit
def ping_pong(
    a_ptr, b_ptr, c_ptr, M, N, K, SIZE: gl.constexpr, DIES: gl.constexpr, GROUP: gl.constexpr
):
    """C = A x B^T by eight waves in two groups, for an even number of steps.

    A tile of C is four quadrants. In each of four turns of a step a group multiplies one of them,
    and in the next stage reads the half of A or B that comes next and copies that of two steps
    later, while the other group multiplies.
    """
    depth: gl.constexpr = depth_of(SIZE)
    sums: gl.constexpr = product(2, 4, SIZE)
    left: gl.constexpr = gl.DotOperandLayout(0, sums, 16 // SIZE)
    right: gl.constexpr = gl.DotOperandLayout(1, sums, 16 // SIZE)
    a_copy: gl.constexpr = copied(128, 8, SIZE, True)
    b_copy: gl.constexpr = copied(128, 8, SIZE, False)
    a_lies: gl.constexpr = padded(128, SIZE, True)
    b_lies: gl.constexpr = padded(128, SIZE, False)
    row, column = tile_of(M, N, DIES, GROUP)
    element: gl.constexpr = a_ptr.dtype.element_ty
    top_lds = gl.allocate_shared_memory(element, [2, HALF, depth], a_lies)
    low_lds = gl.allocate_shared_memory(element, [2, HALF, depth], a_lies)
    near_lds = gl.allocate_shared_memory(element, [2, depth, HALF], b_lies)
    far_lds = gl.allocate_shared_memory(element, [2, depth, HALF], b_lies)
    a_rows = gl.arange(0, HALF, gl.SliceLayout(1, a_copy))
    a_steps = gl.arange(0, depth, gl.SliceLayout(0, a_copy))
    b_rows = gl.arange(0, HALF, gl.SliceLayout(0, b_copy))
    b_steps = gl.arange(0, depth, gl.SliceLayout(1, b_copy))
    top_at = gl.expand_dims(a_rows, 1) * K + gl.expand_dims(a_steps, 0)
    near_at = gl.expand_dims(b_steps, 1) + gl.expand_dims(b_rows, 0) * K
    low_at = top_at + HALF * K
    far_at = near_at + HALF * K
    a = a_ptr + row * ROWS * K
    b = b_ptr + column * ROWS * K
    top_near = gl.zeros((HALF, HALF), gl.float32, sums)
    low_near = gl.zeros((HALF, HALF), gl.float32, sums)
    top_far = gl.zeros((HALF, HALF), gl.float32, sums)
    low_far = gl.zeros((HALF, HALF), gl.float32, sums)
    for step in gl.static_range(2):
        async_copy.buffer_load_to_shared(near_lds.index(step), b, near_at + step * depth)
        async_copy.commit_group()
        async_copy.buffer_load_to_shared(top_lds.index(step), a, top_at + step * depth)
        async_copy.commit_group()
        async_copy.buffer_load_to_shared(low_lds.index(step), a, low_at + step * depth)
        async_copy.commit_group()
        async_copy.buffer_load_to_shared(far_lds.index(step), b, far_at + step * depth)
        async_copy.commit_group()
    a += 2 * depth
    b += 2 * depth
    async_copy.wait_group(6)
    near = near_lds.index(0).load(right)
    top = top_lds.index(0).load(left)
    steps = gl.cdiv(K, depth)
    for _ in range(steps // 2 - 1):
        for here in gl.static_range(2):
            async_copy.wait_group(5)
            with warp_pipeline_stage("multiply", priority=0):
                top_near = multiply(top, near, top_near)
            with warp_pipeline_stage("move", priority=1):
                low = low_lds.index(here).load(left)
                async_copy.buffer_load_to_shared(near_lds.index(here), b, near_at + here * depth)
                async_copy.commit_group()
            async_copy.wait_group(5)
            with warp_pipeline_stage("multiply", priority=0):
                low_near = multiply(low, near, low_near)
            with warp_pipeline_stage("move", priority=1):
                far = far_lds.index(here).load(right)
                async_copy.buffer_load_to_shared(top_lds.index(here), a, top_at + here * depth)
                async_copy.commit_group()
            async_copy.wait_group(5)
            with warp_pipeline_stage("multiply", priority=0):
                top_far = multiply(top, far, top_far)
            with warp_pipeline_stage("move", priority=1):
                near = near_lds.index(1 - here).load(right)
                async_copy.buffer_load_to_shared(low_lds.index(here), a, low_at + here * depth)
                async_copy.commit_group()
            async_copy.wait_group(5)
            with warp_pipeline_stage("multiply", priority=0):
                low_far = multiply(low, far, low_far)
            with warp_pipeline_stage("move", priority=1):
                top = top_lds.index(1 - here).load(left)
                async_copy.buffer_load_to_shared(far_lds.index(here), b, far_at + here * depth)
                async_copy.commit_group()
                if here == 1:
                    a += 2 * depth
                    b += 2 * depth
    async_copy.wait_group(0)
    for here in gl.static_range(2):
        low = low_lds.index(here).load(left)
        far = far_lds.index(here).load(right)
        top_near = multiply(top, near, top_near)
        low_near = multiply(low, near, low_near)
        top_far = multiply(top, far, top_far)
        low_far = multiply(low, far, low_far)
        if here == 0:
            near = near_lds.index(1).load(right)
            top = top_lds.index(1).load(left)
    rows = gl.arange(0, HALF, gl.SliceLayout(1, sums))
    columns = gl.arange(0, HALF, gl.SliceLayout(0, sums))
    c = c_ptr + row * ROWS * N + column * ROWS
    stored(top_near, c, N, rows, columns)
    stored(low_near, c + HALF * N, N, rows, columns)
    stored(top_far, c + HALF, N, rows, columns)
    stored(low_far, c + HALF * N + HALF, N, rows, columns)
