"""Instructions of all kinds that may have native code, as text."""

from __future__ import annotations

from collections.abc import Iterator

from mfmadsl.emulator.instructions.compare import COMPARE
from mfmadsl.emulator.instructions.packed import PAIRS_OF_F32, PAIRS_OF_HALVES
from mfmadsl.emulator.instructions.row import Row
from mfmadsl.emulator.instructions.scalar import SAVE_EXEC, SCALAR, SCALAR_COMPARE, WRITE_EXEC
from mfmadsl.emulator.instructions.vector import vector_rows
from mfmadsl.emulator.machine.bits import width_of
from mfmadsl.emulator.native.elementwise import FUNCTIONS

_DPP = (
    "quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
    "row_shr:1 row_mask:0xa bank_mask:0xf",
    "row_shl:3 row_mask:0xf bank_mask:0x5 bound_ctrl:0",
    "row_ror:4 row_mask:0xf bank_mask:0xf",
    "row_mirror row_mask:0xf bank_mask:0xf",
    "row_half_mirror row_mask:0xf bank_mask:0xf bound_ctrl:0",
    "row_bcast:15 row_mask:0xa bank_mask:0xf",
    "row_bcast:31 row_mask:0xc bank_mask:0xf",
    "wave_shr:1 row_mask:0xf bank_mask:0xf",
    "row_newbcast:5 row_mask:0xf bank_mask:0xf",
)
_SDWA = (
    "dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1 src1_sel:WORD_1",
    "dst_sel:BYTE_2 dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:DWORD",
    "dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_3",
)


def register(bank: str, index: int, words: int) -> str:
    """A register, or several."""
    return f"{bank}{index}" if words == 1 else f"{bank}[{index}:{index + words - 1}]"


def _words(kind: str) -> int:
    return 2 if kind != "u8" and width_of(kind) == 64 else 1


def _sources(row: Row, banks: str) -> list[str]:
    """A source for each of a row's: `banks` says for each of them v, a, s, or c for a constant."""
    found = []
    for place, kind in enumerate(row.kinds[: row.source_count - row.accumulates]):
        bank = banks[place % len(banks)]
        if bank == "c":
            found.append(("1.0", "-4.0", "0.5")[place % 3] if kind[0] == "f" else "5")
        else:
            found.append(register(bank, 8 + 4 * place, _words(kind)))
    return found


def row_texts(name: str) -> Iterator[str]:
    """A row of the tables with all its encodings; some of these do not exist."""
    row = vector_rows("gfx950").get(name) or vector_rows("gfx942")[name]
    target = register(row.banks[0], 2, row.result_words)
    ends = ("", "_e32", "_e64")
    if "accvgpr" in name:
        bank = row.banks[1][0]
        yield f"{name} {target}, {register(bank, 8, 1)}"
        return
    for end in ends:
        for banks in ("v", "sv", "cv", "vvs", "vvc"):
            yield f"{name}{end} {target}, {', '.join(_sources(row, banks))}"
    plain = _sources(row, "v")
    overlapping = [register("v", 2, _words(row.kinds[0])), *plain[1:]]
    yield f"{name} {target}, {', '.join(overlapping)}"
    modified = [f"-|{plain[0]}|", *(f"-{each}" for each in plain[1:])]
    scalar = [f"|{_sources(row, 's')[0]}|", *plain[1:]]
    for sources in (plain, modified, scalar):
        for modifiers in ("", "clamp", "mul:2", "div:2 clamp"):
            yield f"{name}_e64 {target}, {', '.join(sources)} {modifiers}"
    count = len(row.kinds) - row.accumulates
    for flags in range(1 << count + 1):
        bits = ",".join(str(flags >> place & 1) for place in range(count + 1))
        yield f"{name} {target}, {', '.join(plain)} op_sel:[{bits}]"
    for modifiers in _DPP:
        yield f"{name}_dpp {target}, {', '.join(plain)} {modifiers}"
    for modifiers in _SDWA:
        kept = " ".join(x for x in modifiers.split() if count > 1 or not x.startswith("src1"))
        extended = [f"sext({plain[0]})", *plain[1:]]
        for sources in (plain, modified, extended):
            yield f"{name}_sdwa {target}, {', '.join(sources)} {kept}"


def compare_texts() -> Iterator[str]:
    """Comparisons."""
    for name, row in COMPARE.items():
        for banks in ("v", "sv", "cv"):
            yield f"{name}_e32 vcc, {', '.join(_sources(row, banks))}"
            yield f"{name}_e64 s[20:21], {', '.join(_sources(row, banks))}"
        first, second = _sources(row, "v")
        yield f"{name}_e64 s[20:21], -|{first}|, -{second}"
        yield f"{name}_sdwa vcc, {first}, {second} src0_sel:WORD_1 src1_sel:BYTE_2"


def scalar_texts() -> Iterator[str]:
    """Scalar instructions."""
    for name, row in {**SCALAR, **SCALAR_COMPARE, **SAVE_EXEC, **WRITE_EXEC}.items():
        sources = [
            "0x8123" if kind in ("k16", "n16") else register("s", 12 + 4 * place, _words(kind))
            for place, kind in enumerate(row.kinds)
        ]
        sources = sources[:-1] if row.accumulates else sources
        changed = [*("5" if kind != "k16" else "-7" for kind in row.kinds[:1]), *sources[1:]]
        for chosen in (sources, changed[: len(sources)]):
            if name in SCALAR_COMPARE:
                yield f"{name} {', '.join(chosen)}"
                continue
            words = 2 if name in SAVE_EXEC or name in WRITE_EXEC else row.result_words
            for target in (register("s", 40, words), "exec" if words == 2 else "exec_lo"):
                yield f"{name} {', '.join([target, *chosen])}"


def packed_texts() -> Iterator[str]:
    """Packed instructions."""
    for name, row in {**PAIRS_OF_F32, **PAIRS_OF_HALVES}.items():
        words = 2 if name in PAIRS_OF_F32 else 1
        plain = [register("v", 8 + 4 * place, words) for place in range(len(row.kinds))]
        scalar = [register("s", 10, words), *plain[1:]]
        target, count = register("v", 2, words), len(plain)
        ones, mixed = ",".join("1" * count), ",".join("010"[:count])
        for sources in (plain, scalar, ["1.0", *plain[1:]], ["2", *plain[1:]]):
            for modifiers in (
                "", "clamp", f"op_sel:[{mixed}]", f"op_sel_hi:[{mixed}]",
                f"op_sel:[{ones}] op_sel_hi:[{mixed}] neg_lo:[{mixed}] neg_hi:[{ones}]",
                f"neg_lo:[{ones}] clamp",
            ):  # fmt: skip
                yield f"{name} {target}, {', '.join(sources)} {modifiers}"
    for flags in ("", "op_sel:[1,0]", "op_sel:[0,1]", "op_sel:[1,1]"):
        yield f"v_pk_mov_b32 v[2:3], v[8:9], s[12:13] {flags}"
    for name in ("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"):
        for flags in (
            "", "op_sel_hi:[1,0,1]", "op_sel:[1,0,0] op_sel_hi:[1,1,1]", "clamp",
            "op_sel:[0,1,1] op_sel_hi:[0,1,1] clamp",
        ):  # fmt: skip
            yield f"{name} v2, v10, -v14, |v18| {flags}"
            yield f"{name} v2, s10, v14, 1.0 {flags}"


def lane_texts() -> Iterator[str]:
    """Exchanges between lanes, choices and sums with carries."""
    yield from (
        "v_readfirstlane_b32 s5, v3", "v_readlane_b32 s5, v3, 17", "v_readlane_b32 s5, v3, s6",
        "v_readlane_b32 vcc_lo, v3, s6", "v_writelane_b32 v2, s5, 40", "v_writelane_b32 v2, 7, s9",
        "v_mbcnt_lo_u32_b32 v2, -1, 0", "v_mbcnt_hi_u32_b32 v2, -1, v3",
        "v_mbcnt_lo_u32_b32 v2, s4, v2", "v_mbcnt_hi_u32_b32 v2, v4, v2",
        "v_swap_b32 v2, v3", "v_permlane16_swap_b32 v2, v3", "v_permlane32_swap_b32 v2, v3",
        "ds_bpermute_b32 v2, v3, v4", "ds_bpermute_b32 v2, v2, v2 offset:12",
        "ds_bpermute_b32 v3, v2, v3", "ds_bpermute_b32 a3, v2, a4",
        "ds_swizzle_b32 v2, v3 offset:swizzle(SWAP,16)", "ds_swizzle_b32 v2, v2 offset:0x801f",
        "ds_swizzle_b32 v2, v3 offset:swizzle(QUAD_PERM,3,1,2,0)",
        "v_mad_u64_u32 v[2:3], vcc, v4, v5, v[6:7]", "v_mad_u64_u32 v[2:3], s[20:21], s4, v5, 0",
        "v_mad_i64_i32 v[2:3], vcc, v4, s5, v[2:3]", "v_mad_i64_i32 v[2:3], vcc, v4, -3, v[6:7]",
    )  # fmt: skip
    for first in ("v8", "v12", "s8", "-v12", "|v8|"):
        yield f"v_div_scale_f32 v2, vcc, {first}, v12, v8"
        yield f"v_div_scale_f32 v2, s[20:21], {first}, {first}, v16"
        yield f"v_div_fmas_f32 v2, v8, v12, {first}"
    yield from ("v_div_scale_f32 v2, vcc, v8, v8, 1.0", "v_div_fmas_f32 v2, v8, -v12, v2")
    for name in ("v_add_co_u32", "v_sub_co_u32", "v_subrev_co_u32"):
        yield f"{name}_e32 v2, vcc, v3, v4"
        yield f"{name}_e64 v2, s[20:21], s3, v4"
        yield f"{name}_e64 v2, s[20:21], v3, v2 clamp"
    for name in ("v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32"):
        yield f"{name}_e32 v2, vcc, v3, v4, vcc"
        yield f"{name}_e64 v2, s[20:21], 5, v4, s[22:23]"
        yield f"{name}_e64 v2, s[20:21], v3, v4, s[20:21]"
        yield f"{name}_dpp v2, vcc, v3, v4, vcc quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
        yield f"{name}_sdwa v2, vcc, v3, v4, vcc dst_sel:WORD_1 src0_sel:BYTE_1 src1_sel:WORD_1"
    yield from (
        "v_cndmask_b32_e32 v2, v3, v4, vcc", "v_cndmask_b32_e64 v2, s3, v4, s[20:21]",
        "v_cndmask_b32_e64 v2, 0, 1.0, vcc", "v_cndmask_b32_e64 v2, -v3, |v2|, s[6:7]",
        "v_cndmask_b32_dpp v2, v3, v4, vcc row_shr:1 row_mask:0xf bank_mask:0xf",
        "v_cndmask_b32_sdwa v2, v3, v4, vcc dst_sel:BYTE_1 src0_sel:WORD_1 src1_sel:BYTE_0",
    )  # fmt: skip


ROWS = sorted(FUNCTIONS)
