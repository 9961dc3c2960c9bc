"""Which k the lanes of gfx950 hold, spelled out from the CDNA4 ISA manual: sections 7.1.5, 7.2.1
and 7.5.1. Neither the library nor the emulator has a part in it."""

from __future__ import annotations

HELD: dict[tuple[str, int, int], dict[int, list[range]]] = {
    # (operand, rows, bits of an element): lane -> the k of row 0 that it holds, in order.
    # Scaled and unscaled f8f6f4, A and B alike; k is 128 for 16 rows and 64 for 32.
    ("f8f6f4", 16, 8): {
        0: [range(16), range(64, 80)],
        16: [range(16, 32), range(80, 96)],
        32: [range(32, 48), range(96, 112)],
        48: [range(48, 64), range(112, 128)],
    },
    ("f8f6f4", 32, 8): {
        0: [range(16), range(32, 48)],
        32: [range(16, 32), range(48, 64)],
    },
    **{
        ("f8f6f4", 16, bits): {lane: [range(2 * lane, 2 * lane + 32)] for lane in (0, 16, 32, 48)}
        for bits in (4, 6)
    },
    **{("f8f6f4", 32, bits): {0: [range(32)], 32: [range(32, 64)]} for bits in (4, 6)},
    # B of the smfmac that gfx950 added: k is 64 (16 bits) and 128 (8 bits) for 16 rows.
    ("smfmac", 16, 16): {
        0: [range(8), range(32, 40)],
        16: [range(8, 16), range(40, 48)],
        32: [range(16, 24), range(48, 56)],
        48: [range(24, 32), range(56, 64)],
    },
    ("smfmac", 32, 16): {
        0: [range(8), range(16, 24)],
        32: [range(8, 16), range(24, 32)],
    },
    ("smfmac", 16, 8): {
        0: [range(16), range(64, 80)],
        16: [range(16, 32), range(80, 96)],
        32: [range(32, 48), range(96, 112)],
        48: [range(48, 64), range(112, 128)],
    },
    ("smfmac", 32, 8): {
        0: [range(16), range(32, 48)],
        32: [range(16, 32), range(48, 64)],
    },
}


def held(operand: str, rows: int, bits: int) -> dict[int, list[int]]:
    """Lane -> the k of row 0 that it holds, in the order of its registers."""
    return {
        lane: [k for run in runs for k in run] for lane, runs in HELD[operand, rows, bits].items()
    }
