"""Vector instructions on integers and bits."""

from __future__ import annotations

from collections.abc import Callable

from tests.emulator.instructions.manual.bits import signed
from tests.emulator.instructions.manual.seeds import next_seed

Model = Callable[..., int]
M = 2**32


def permuted(a: int, b: int, selector: int) -> int:
    """v_perm_b32, byte by byte."""
    pair = (a << 32 | b).to_bytes(8, "little")
    out = []
    for choice in selector.to_bytes(4, "little"):
        if choice < 8:
            out.append(pair[choice])
        elif choice < 12:
            out.append(0xFF if pair[2 * (choice - 8) + 1] >> 7 else 0)
        else:
            out.append(0 if choice == 12 else 0xFF)
    return int.from_bytes(bytes(out), "little")


def from_top(x: int) -> int:
    return 32 - x.bit_length() if x else -1


def from_bottom(x: int) -> int:
    return (x & -x).bit_length() - 1 if x else -1


def sign_run(x: int) -> int:
    flipped = x ^ M - 1 if x >> 31 else x
    return from_top(flipped)


def clamped(x: int, low: int, high: int) -> int:
    return min(max(x, low), high)


def shift_pack(low: int, high: int) -> Model:
    def model(a: int, b: int, c: int) -> int:
        x, y = (clamped(signed(v) >> (c & 31), low, high) & 255 for v in (a, b))
        return x | y << 8

    return model


def low24(x: int) -> int:
    return x & 0xFFFFFF


def differences(a: int, b: int, masked: bool = False) -> int:
    """Of four bytes; with `masked`, of those that are not 0 in the second."""
    pairs = zip(a.to_bytes(4, "little"), b.to_bytes(4, "little"), strict=True)
    return sum(abs(x - y) for x, y in pairs if y or not masked)


def windows(a: int, b: int, c: int, masked: bool) -> int:
    """The differences to each of four words within eight bytes, added to a half each."""
    found = 0
    for place in range(4):
        half = (c >> 16 * place) + differences(a >> 8 * place & M - 1, b, masked)
        found |= (half & 0xFFFF) << 16 * place
    return found


INTEGERS: dict[str, Model] = {
    "v_mov_b32": lambda a: a,
    "v_mov_b64": lambda a: a,
    "v_accvgpr_read_b32": lambda a: a,
    "v_accvgpr_write_b32": lambda a: a,
    "v_accvgpr_mov_b32": lambda a: a,
    "v_not_b32": lambda a: ~a,
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_bfi_b32": lambda a, b, c: a & b | ~a & c,
    "v_bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "v_bfm_b32": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31),
    "v_lshlrev_b32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32": lambda a, b: signed(b) >> (a & 31),
    "v_lshlrev_b64": lambda a, b: b << (a & 63),
    "v_lshrrev_b64": lambda a, b: b >> (a & 63),
    "v_ashrrev_i64": lambda a, b: signed(b, 64) >> (a & 63),
    "v_lshl_or_b32": lambda a, b, c: (a << (b & 31)) | c,
    "v_bfe_u32": lambda a, b, c: (a >> (b & 31)) & ((1 << (c & 31)) - 1),
    "v_bfe_i32": lambda a, b, c: signed(signed(a) >> (b & 31) & ((1 << (c & 31)) - 1), c & 31),
    "v_perm_b32": permuted,
    "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "v_alignbyte_b32": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3),
    "v_add_u32": lambda a, b: a + b,
    "v_sub_u32": lambda a, b: a - b,
    "v_subrev_u32": lambda a, b: b - a,
    "v_add_i32": lambda a, b: a + b,
    "v_sub_i32": lambda a, b: a - b,
    "v_add_u16": lambda a, b: a + b,
    "v_sub_u16": lambda a, b: a - b,
    "v_subrev_u16": lambda a, b: b - a,
    "v_add_i16": lambda a, b: a + b,
    "v_sub_i16": lambda a, b: a - b,
    "v_mad_u16": lambda a, b, c: a * b + c,
    "v_mad_legacy_u16": lambda a, b, c: a * b + c,
    "v_mad_legacy_i16": lambda a, b, c: a * b + c,
    "v_mad_i16": lambda a, b, c: a * b + c,
    "v_mul_lo_u16": lambda a, b: a * b,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_lshl_add_u64": lambda a, b, c: (a << (b & 7)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b) % M << (c & 31),
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: a * b >> 32,
    "v_mul_hi_i32": lambda a, b: signed(a) * signed(b) >> 32,
    "v_mul_u32_u24": lambda a, b: low24(a) * low24(b),
    "v_mul_i32_i24": lambda a, b: signed(a, 24) * signed(b, 24),
    "v_mul_hi_u32_u24": lambda a, b: low24(a) * low24(b) >> 32,
    "v_mul_hi_i32_i24": lambda a, b: signed(a, 24) * signed(b, 24) >> 32,
    "v_mad_u32_u24": lambda a, b, c: low24(a) * low24(b) + c,
    "v_mad_i32_i24": lambda a, b, c: signed(a, 24) * signed(b, 24) + c,
    "v_mad_u32_u16": lambda a, b, c: a * b + c,
    "v_mad_i32_i16": lambda a, b, c: signed(a, 16) * signed(b, 16) + c,
    "v_sad_u8": lambda a, b, c: c + sum(
        abs((a >> s & 255) - (b >> s & 255)) for s in (0, 8, 16, 24)),
    "v_sad_u32": lambda a, b, c: abs(a - b) + c,
    "v_sad_hi_u8": lambda a, b, c: c + (differences(a, b) << 16),
    "v_sad_u16": lambda a, b, c: c + sum(
        abs((a >> s & 0xFFFF) - (b >> s & 0xFFFF)) for s in (0, 16)),
    "v_msad_u8": lambda a, b, c: c + differences(a, b, masked=True),
    "v_qsad_pk_u16_u8": lambda a, b, c: windows(a, b, c, masked=False),
    "v_mqsad_pk_u16_u8": lambda a, b, c: windows(a, b, c, masked=True),
    "v_sat_pk_u8_i16": lambda a: clamped(signed(a, 16), 0, 255)
    | clamped(signed(a >> 16, 16), 0, 255) << 8,
    "v_lerp_u8": lambda a, b, c: sum(
        (a >> s & 255) + (b >> s & 255) + (c >> s & 1) >> 1 << s for s in (0, 8, 16, 24)),
    "v_prng_b32": next_seed,
    "v_bcnt_u32_b32": lambda a, b: a.bit_count() + b,
    "v_ffbh_u32": from_top,
    "v_ffbl_b32": from_bottom,
    "v_ffbh_i32": sign_run,
    "v_lshlrev_b16": lambda a, b: b << (a & 15),
    "v_lshrrev_b16": lambda a, b: b >> (a & 15),
    "v_ashrrev_i16": lambda a, b: signed(b, 16) >> (a & 15),
    "v_ashr_pk_i8_i32": shift_pack(-128, 127),
    "v_ashr_pk_u8_i32": shift_pack(0, 255),
}  # fmt: skip


def _ordered(letter: str, size: int) -> None:
    def key(x: int) -> int:
        return signed(x, size) if letter == "i" else x

    kind = f"{letter}{size}"
    INTEGERS.update({
        f"v_min_{kind}": lambda a, b: min(a, b, key=key),
        f"v_max_{kind}": lambda a, b: max(a, b, key=key),
        f"v_min3_{kind}": lambda a, b, c: min(a, b, c, key=key),
        f"v_max3_{kind}": lambda a, b, c: max(a, b, c, key=key),
        f"v_med3_{kind}": lambda a, b, c: sorted((a, b, c), key=key)[1],
    })  # fmt: skip


for _letter in "iu":
    for _size in (16, 32):
        _ordered(_letter, _size)


def _typed(kind: str) -> Callable[[int], int]:
    return lambda x: signed(x, int(kind[1:])) if kind[0] == "i" else x


def _saturated(kind: str, exact: Model) -> Model:
    bits, read = int(kind[1:]), _typed(kind)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "i" else (0, 2**bits - 1)
    return lambda *sources: clamped(exact(*map(read, sources)), low, high)


SATURATING: dict[str, Model] = {
    f"v_{name}_{kind}": _saturated(kind, exact)
    for name, kinds, exact in (
        ("add", ("u32", "i32", "u16", "i16"), lambda a, b: a + b),
        ("sub", ("u32", "i32", "u16", "i16"), lambda a, b: a - b),
        ("subrev", ("u32", "u16"), lambda a, b: b - a),
        ("mad", ("u16", "i16"), lambda a, b, c: a * b + c),
        ("mad_legacy", ("u16", "i16"), lambda a, b, c: a * b + c),
    )
    for kind in kinds
}
"""What those do that `clamp` saturates."""
