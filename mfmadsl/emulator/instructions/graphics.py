"""Vector instructions for textures, which compute as well (CDNA3 ISA, V_CUBEID_F32, V_LERP_U8)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mfmadsl.emulator.instructions.row import Row, row
from mfmadsl.emulator.machine.bits import Array


def _of_faces(*faces: Callable[[Array, Array, Array], Array]) -> Row:
    """A function for each face of a cube, by the coordinate of the largest size: of +x, -x, +y, -y,
    +z and -z; of equal ones the last counts."""

    def compute(x: Array, y: Array, z: Array) -> Array:
        x, y, z = np.broadcast_arrays(x, y, z)
        ax, ay, az = np.abs(x), np.abs(y), np.abs(z)
        along_z = (az >= ax) & (az >= ay)
        along_y = ~along_z & (ay >= ax)
        conditions = [along_z & (z < 0), along_z, along_y & (y < 0), along_y, x < 0]
        chosen = [faces[5], faces[4], faces[3], faces[2], faces[1]]
        results = [np.broadcast_to(face(x, y, z), x.shape) for face in chosen]
        return np.select(conditions, results, faces[0](x, y, z)).astype(np.float32)

    return row("f32 f32 f32", compute)


def _number(face: int) -> Callable[[Array, Array, Array], Array]:
    return lambda x, y, z: np.full(x.shape, face, np.float32)


def _mean_of_bytes(a: Array, b: Array, rounding: Array) -> Array:
    """v_lerp_u8: the mean of two bytes, rounded up where the lowest bit of a third is set."""
    found = np.zeros((), np.uint32)
    for shift in range(0, 32, 8):
        x, y, z = (v >> np.uint32(shift) & np.uint32(0xFF) for v in (a, b, rounding))
        found = found | (x + y + (z & 1) >> np.uint32(1)) << np.uint32(shift)
    return np.asarray(found)


def _sixteenths(a: Array) -> Array:
    """v_cvt_off_f32_i4: the lowest four bits, with a sign, as sixteenths."""
    nibble = (a & np.uint32(15)).astype(np.int32)
    return ((nibble ^ 8) - 8).astype(np.float32) / np.float32(16)


GRAPHICS: dict[str, Row] = {
    "v_cubeid_f32": _of_faces(*map(_number, range(6))),
    "v_cubesc_f32": _of_faces(
        lambda x, y, z: -z, lambda x, y, z: z, lambda x, y, z: x, lambda x, y, z: x,
        lambda x, y, z: x, lambda x, y, z: -x,
    ),
    "v_cubetc_f32": _of_faces(
        lambda x, y, z: -y, lambda x, y, z: -y, lambda x, y, z: z, lambda x, y, z: -z,
        lambda x, y, z: -y, lambda x, y, z: -y,
    ),
    "v_cubema_f32": _of_faces(
        *(2 * [lambda x, y, z: 2 * x]), *(2 * [lambda x, y, z: 2 * y]),
        *(2 * [lambda x, y, z: 2 * z]),
    ),
    "v_lerp_u8": row("u32 u32 u32", _mean_of_bytes),
    "v_cvt_off_f32_i4": row("u32", _sixteenths),
}  # fmt: skip
