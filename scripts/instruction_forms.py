"""How the instructions that the emulator knows may be written: their mnemonics, and the operands to
try with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from mfmadsl.emulator.instructions.atomic import ATOMICS
from mfmadsl.emulator.instructions.block import BLOCKS
from mfmadsl.emulator.instructions.compare import COMPARE
from mfmadsl.emulator.instructions.convert import CONVERT
from mfmadsl.emulator.instructions.differences import WIDE_DIFFERENCES
from mfmadsl.emulator.instructions.dot import DOT_PRODUCTS
from mfmadsl.emulator.instructions.floating import FLOATING
from mfmadsl.emulator.instructions.integer import INTEGER
from mfmadsl.emulator.instructions.lds_counter import BY_LANE, COUNTERS
from mfmadsl.emulator.instructions.matrix.isa import BY_FAMILY
from mfmadsl.emulator.instructions.mode_register import MODE_INSTRUCTIONS
from mfmadsl.emulator.instructions.modifier import base_name
from mfmadsl.emulator.instructions.narrow import narrow_rows
from mfmadsl.emulator.instructions.packed import (
    MIXED,
    PAIRS_OF_F32,
    PAIRS_OF_HALVES,
)
from mfmadsl.emulator.instructions.scalar import SAVE_EXEC, SCALAR, SCALAR_COMPARE, WRITE_EXEC
from mfmadsl.emulator.instructions.smem_write import SCALAR_ATOMICS
from mfmadsl.emulator.instructions.vector import SPECIAL, vector_rows
from mfmadsl.emulator.machine.bits import width_of
from mfmadsl.emulator.machine.control import CONDITIONS, NO_EFFECT
from mfmadsl.emulator.machine.width import WIDTHS
from mfmadsl.model import Architecture

Form = tuple[str, str, str, str]
"""A format, operands, modifiers and suffixes, as rows write them."""

Forms = Iterator[Form]


def scalar_names() -> list[str]:
    widths = ("", "x2", "x4", "x8", "x16")
    return [
        *SCALAR, *SCALAR_COMPARE, *SAVE_EXEC, *MODE_INSTRUCTIONS, "s_getpc_b64", "s_setpc_b64",
        "s_swappc_b64", "s_call_b64", "s_branch", *(f"s_cbranch_{x}" for x in CONDITIONS),
        "s_endpgm", "s_barrier", "s_waitcnt", "s_trap", "s_sethalt", "s_memtime", "s_memrealtime",
        "s_sendmsg", *sorted(name for name in NO_EFFECT if name.startswith("s_")),
        *(f"s_{kind}{move}_dword{width}" for move in ("load", "store")
          for kind in ("", "buffer_") for width in widths),
        *(f"s_{kind}atomic_{name}{width}" for kind in ("", "buffer_") for name in SCALAR_ATOMICS
          for width in ("", "_x2")),
        *WRITE_EXEC, *(f"s_movrel{way}_b{bits}" for way in "sd" for bits in (32, 64)),
        "s_setvskip", "s_set_gpr_idx_on", "s_set_gpr_idx_off", "s_set_gpr_idx_idx",
        "s_set_gpr_idx_mode",
    ]  # fmt: skip


def vector_names(arch: str) -> list[str]:
    return [
        *vector_rows(arch), *COMPARE, *SPECIAL, "v_pk_mov_b32", *PAIRS_OF_F32,
        *PAIRS_OF_HALVES, *DOT_PRODUCTS, *MIXED, "v_pk_fmac_f16", "v_clrexcp",
    ]  # fmt: skip


def matrix_names(chip: Architecture) -> list[str]:
    """As LLVM spells them, newer spellings first: of those of one instruction the first stays."""
    names = []
    for form, kinds in BY_FAMILY[chip.family].items():
        for (out, types), tiles in kinds.items():
            for tile in tiles:
                m, n, k = tile.shape.m, tile.shape.n, tile.shape.k
                size = f"v_{form}_{out}_{m}x{n}x{k}"
                names += [f"{size}_{types}", f"{size}_{tile.shape.blocks}b_{types}", size + types]
    return names


def memory_names(prefixes: Iterable[str]) -> list[str]:
    atomics = [
        f"atomic_{name}{suffix}"
        for name in ATOMICS
        for suffix in ("", "_x2", "_f32", "_f64", "_f16", "_bf16")
    ]
    moves = [f"{kind}_{width}" for kind in ("load", "store", "load_lds") for width in WIDTHS]
    return [f"{prefix}_{name}" for prefix in prefixes for name in (*moves, *atomics)]


def lds_names() -> list[str]:
    moves = [f"{kind}{x}_{w}" for kind in ("read", "write") for x in ("", "2", "2st64")
             for w in WIDTHS]  # fmt: skip
    kinds = ("u32", "i32", "u64", "i64", "b32", "b64", "f32", "f64", "f16", "bf16")
    atomics = [f"{name}{rtn}_{kind}" for name in ATOMICS for rtn in ("", "_rtn") for kind in kinds]
    transposed = [f"read_b{size}_tr_b{bits}" for size in (64, 96) for bits in (4, 6, 8, 16)]
    others = ["bpermute_b32", "permute_b32", "swizzle_b32", "nop"]
    exchanges = [f"wrxchg2{x}_rtn_b{bits}" for x in ("", "st64") for bits in (32, 64)]
    named = [f"ds_{name}" for name in (*moves, *atomics, *transposed, *others, *exchanges)]
    of_two = [f"ds_{name}_src2_{kind}" for name in (*ATOMICS, "write") for kind in kinds]
    return [*named, *COUNTERS, *BY_LANE, *of_two]


def typed_names(prefixes: Iterable[str]) -> list[str]:
    return [
        f"{prefix}_{move}_format_{half}{components}"
        for prefix in prefixes
        for move in ("load", "store")
        for half in ("", "d16_", "d16_hi_")
        for components in ("x", "xy", "xyz", "xyzw")
    ]


def scalar_forms(name: str) -> Forms:
    if any(part in name for part in ("load_dword", "store_dword", "_atomic_")):
        for count, base in product((1, 2, 4, 8, 16), (2, 4)):
            start = f"sdata:{count},sbase:{base}"
            yield "smem", f"{start},displacement", "-", "-"
            yield "smem", f"{start},soffset_low", "-", "-"
            yield "smem", f"{start},soffset", "-", "-"
            yield "smem", f"{start},soffset", "offset=s32:21", "-"
        return
    yield "smem", "-", "-", "-"
    yield "smem", "sdata:2", "-", "-"
    yield "smem", "sbase:2,displacement", "-", "-"
    yield "smem", "sbase:2,soffset_low", "-", "-"
    yield "smem", "sbase:2,soffset", "-", "-"
    for operands in ("label",) if "branch" in name else ("-", "wait", "number"):
        yield "sopp", operands, "-", "-"
    for operands in ("sdst,simm16", "sdst,hwreg", "hwreg,sdst", "hwreg,literal", "sdst:2,label"):
        yield "sopk", operands, "-", "-"
    for a, b, c in product((1, 2), repeat=3):
        yield "sop2", f"sdst:{a},ssrc0:{b},ssrc1:{c}", "-", "-"
    for a, b in product((1, 2), repeat=2):
        yield "sop1", f"sdst:{a},ssrc0:{b}", "-", "-"
        yield "sopc", f"ssrc0:{a},ssrc1:{b}", "-", "-"
    yield "sop1", "sdst:2", "-", "-"
    yield "sop1", "ssrc0:2", "-", "-"
    yield "sop1", "ssrc0", "-", "-"
    yield "sopp", "gpr_idx", "-", "-"
    yield "sopc", "ssrc0,gpr_idx_on", "-", "-"


_ROWS = {**INTEGER, **FLOATING, **CONVERT, **narrow_rows("gfx950")}
_CARRIES = [*product(("vcc,", ""), (",vcc", ""))]  # what LLVM writes first: it may leave some out
_SDWA = "dst_sel=40:3,dst_unused=43:2,src0_sel=48:3"
_DPP = "dpp=40:9,row_mask=60:4,bank_mask=56:4"


def short_forms(name: str) -> Forms:
    """Encodings of 32 bits, and those with a word of SDWA or DPP; `name` has its suffix."""
    if name.endswith("_sdwa"):
        yield "vop1", "vdst,sdwa0", _SDWA, "-"
        for count in (1, 2):  # conversions from floats of eight bits say nothing of their target
            yield "vop1", f"vdst:{count},sdwa0", "src0_sel=48:3", "-"
        for out, carry in _CARRIES:
            yield "vop2", f"vdst,{out}sdwa0,sdwa1{carry}", f"{_SDWA},src1_sel=56:3", "-"
        for out in ("vcc", "sdwa_sdst:2"):
            yield "vopc", f"{out},sdwa0,sdwa1", "src0_sel=48:3,src1_sel=56:3", "-"
        return
    if name.endswith("_dpp"):
        # LLVM takes other numbers of registers, too.
        row = _ROWS.get(base_name(name))
        a, b, c = 1, 1, 1
        if row is not None:
            a, (b, c, *_) = row.result_words, [*map(_words, row.kinds), 1]
        yield "vop1", f"vdst:{a},dpp0:{b}", _DPP, "-"
        for out, carry in _CARRIES:
            yield "vop2", f"vdst:{a},{out}dpp0:{b},vsrc1:{c}{carry}", _DPP, "-"
        return
    yield "vop1", "-", "-", "-"
    yield "vop1", "vdst@s,src0", "-", "-"
    yield "vop1", "vdst@a,src0@a", "-", "-"
    for a, b in product((1, 2), repeat=2):
        yield "vop1", f"vdst:{a},src0:{b}", "-", "-"
        yield "vopc", f"vcc,src0:{a},vsrc1:{b}", "-", "-"
    for a, b, c in product((1, 2), repeat=3):
        for out, carry in _CARRIES:
            yield "vop2", f"vdst:{a},{out}src0:{b},vsrc1:{c}{carry}", "-", "-"
    yield "vop2", "vdst,src0,literal,vsrc1", "-", "-"
    yield "vop2", "vdst,src0,vsrc1,literal", "-", "-"


def _words(kind: str) -> int:
    return max(1, width_of(kind) // 32)


def long_forms(name: str) -> Forms:
    """Encodings of 64 bits."""
    if name in BLOCKS or name in WIDE_DIFFERENCES:
        for operands in (
            "vdst:6,src0:16,src1:1", "vdst:6,src0:16,src1:16,src2:1",
            "vdst:6,src0:16,src1:1,src2:1", "vdst:6,src0:32,src1:1,src2:1",
            "vdst:16,src0:6,src1:1", "vdst:32,src0:6,src1:1", "vdst:4,src0:2,src1:1,src2:4",
        ):  # fmt: skip
            yield "vop3", operands, "-", "-"
    yield "vop3", "-", "-", "-"
    for target, out in product(("vdst:1", "vdst:2", "vdst:1@s", "vdst:2@s"), ("", "sdst:2,")):
        for count in (1, 2, 3):
            for widths in product((1, 2), repeat=count):
                sources = ",".join(f"src{i}:{width}" for i, width in enumerate(widths))
                yield "vop3", f"{target},{out}{sources}", "-", "-"
    for operands in (
        "vdst@s,src0,src1@s", "vdst,src0@s,src1@s", "vdst,src0,src1,src2:2@s",
        "vdst,sdst:2,src0,src1,src2:2@s",
    ):  # fmt: skip
        yield "vop3", operands, "-", "-"
    yield "vop3", "vdst,src0@a", "-", "-"
    yield "vop3", "vdst@a,src0", "-", "-"


def matrix_forms(chip: Architecture, name: str) -> Forms:
    bank = "a" if chip.separate_files else "15"
    sizes = (1, 2, 4, 8, 16, 32)
    if "f8f6f4" in name:
        for d in sizes:
            if "scale" in name:
                operands = (
                    f"matrix_vdst:{d}@79,matrix_src0:cbsz@123,matrix_src1:blgp@124,"
                    f"matrix_src2:{d}@79,src0,src1"
                )
                yield "vop3", operands, "cbsz=72:3,blgp=125:3", "-"
            else:
                operands = f"vdst:{d}@15,src0:cbsz@59,src1:blgp@60,src2:{d}@15"
                yield "vop3", operands, "cbsz=8:3,blgp=61:3", "-"
        return
    for d, a, b in product(sizes, sizes[:4], sizes[:4]):
        last = "src2:1" if "smfmac" in name else f"src2:{d}@{bank}"
        yield "vop3", f"vdst:{d}@{bank},src0:{a}@59,src1:{b}@60,{last}", "-", "-"


def lds_forms(name: str) -> Forms:
    del name
    for operands in ("-", "vdst@25", "data0@25", "addr"):
        yield "ds", operands, "-", "-"
    for a in (1, 2, 3, 4):
        for operands in (
            f"vdst:{a}@25,addr", f"addr,data0:{a}@25", f"addr,data0:{a}@25,data1:{a}@25",
        ):  # fmt: skip
            yield "ds", operands, "-", "-"
        for b in (1, 2):
            yield "ds", f"vdst:{a}@25,addr,data0:{b}@25", "-", "-"
            yield "ds", f"vdst:{a}@25,addr,data0:{b}@25,data1:{b}@25", "-", "-"


def flat_forms(name: str) -> Forms:
    kind = name.partition("_")[0]
    places = {
        "flat": ("vaddr:2", ""), "global": ("vaddr:2", ",off"), "saddr": ("vaddr", ",saddr:2"),
        "offset": ("vaddr", ",off"), "base": ("off", ",saddr"), "none": ("off", ",off"),
        "both": ("vaddr", ",saddr"),
    }  # fmt: skip
    if "load_lds" in name and kind == "flat":
        return
    chosen = {"flat": ("flat",), "global": ("global", "saddr"),
              "scratch": ("offset", "base", "none", "both")}[kind]  # fmt: skip
    for address, base in (places[place] for place in chosen):
        if "load_lds" in name:
            yield "flat", f"{address}{base}", "-", "-"
            continue
        for a in (1, 2, 3, 4):
            if "load" in name:
                yield "flat", f"vdst:{a}@55,{address}{base}", "-", "-"
            else:
                yield "flat", f"{address},vdata:{a}@55{base}", "-", "-"
            if "atomic" in name:
                for b, flag in product((1, 2, 4), ("sc0", "glc")):
                    yield "flat", f"vdst:{a}@55,{address},vdata:{b}@55{base}", "-", flag


def buffer_forms(name: str) -> Forms:
    yield "mubuf", "-", "-", "-"
    for vector, places in (("off", ""), ("vaddr", "offen"), ("vaddr", "idxen"),
                           ("vaddr:2", "idxen,offen")):  # fmt: skip
        where = f"{vector},srsrc:4,ssrc"
        yield "mubuf", where, "-", ",".join(filter(None, (places, "lds")))
        for a in (1, 2, 3, 4):
            yield "mubuf", f"vdata:{a}@55,{where}", "-", places or "-"
            if "atomic" in name:
                for flag in ("sc0", "glc"):
                    suffix = ",".join(filter(None, (places, flag)))
                    yield "mubuf", f"vdata:{a}@55,{where}", "-", suffix


def typed_forms(name: str) -> Forms:
    kind, said = ("mtbuf", "format=19:7") if name.startswith("t") else ("mubuf", "-")
    for vector, places in (("off", ""), ("vaddr", "offen"), ("vaddr", "idxen"),
                           ("vaddr:2", "idxen,offen")):  # fmt: skip
        for count in (1, 2, 3, 4):
            operands = f"vdata:{count}@55,{vector},srsrc:4,ssrc"
            yield kind, operands, said, places or "-"
