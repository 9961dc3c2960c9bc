"""The words of the language and what each says, in a line; docs/language.md has the same lines."""

from __future__ import annotations

from collections.abc import Mapping

ITEMS: Mapping[str, str] = {
    "use": "the layouts of another file: from this folder, or from the library",
    "layout": "where the elements of an operand lie, for whoever names it after `at`",
    "intrinsic": "a matrix instruction: C[i, j] += A[i, k] * B[k, j] in each block",
    "microkernel": "a tile's product in the vector registers of a CPU",
    "read": "a read of the LDS in which groups of lanes exchange what they read",
    "fragment": "a tile of a matrix that lanes hold, of no instruction that code is made for",
    "accelerator": "a unit that is no matrix core, with memory scopes of its own and a C function",
}
"""The words that begin items."""

_OPERAND = "the element type of an operand, its indices, and the layout that places it"
_SCALE = "the scales of groups along k, if it takes such"
_VECTORS = (
    "the element type, the indices, and the layout over vector registers; `broadcast` after it "
    "where a register holds one step's elements again and again"
)
_TILE = "the element type of a tile, its indices, and the memory scope in which it lies"

FIELDS: Mapping[str, Mapping[str, str]] = {
    "intrinsic": {
        "names": "the name of each of several entries that differ in the types of A and B, with "
        "`{a}` and `{b}` for those",
        "shape": "the extents of i (`m`), j (`n`) and k (`k`); `blocks` if the instruction "
        "multiplies several",
        "a": _OPERAND,
        "b": _OPERAND,
        "c": _OPERAND,
        "scale_a": _SCALE,
        "scale_b": _SCALE,
        "call": "the LLVM intrinsic that emits the instruction; LLVM 22 has it, on these chips and "
        "with these operands",
        "cycles": "each chip that has the instruction, and how long its matrix core is busy",
        "narrow_cycles": "the same where neither A nor B has eight-bit elements",
        "modifiers": "which of `cbsz_abid`, `blgp` and `neg` it takes; may be left out",
        "alias": "other names of the instruction, with the `v_` of the assembly; may be left out",
    },
    "microkernel": {
        "names": "the name of each of several micro-kernels that differ in `shape`, with `{m}`, "
        "`{n}` and `{k}` for its numbers",
        "shape": "the extents of i (`m`), j (`n`) and k (`k`) of the whole tile",
        "a": _VECTORS,
        "b": _VECTORS,
        "c": _VECTORS,
        "call": "the LLVM intrinsic of one step",
        "expression": "`c + a * b` instead of a call: a product of vectors, and then a sum, for "
        "CPUs without an instruction of both",
        "features": "what a CPU must have, as LLVM calls it, with `_` for `-`",
    },
    "read": {
        "shape": "the bits of an element, the lanes of a group, the elements that a lane reads and "
        "gets (`registers`)",
        "from_lane": "from the address of which lane of the group `register` of `lane` comes",
        "from_element": "which element it is, counted from that address",
        "call": "the LLVM intrinsic that emits the read; LLVM 22 has it, on these chips and for "
        "these elements",
        "chips": "the chips that have it",
    },
    "fragment": {
        "shape": "the extents of the two indices (`m` of i, `n` of j, `k` of k), and how many "
        "lanes there are",
        "holds": "the element type, the indices (`[i, k]` is an A, `[k, j]` a B, `[i, j]` a C), "
        "and the layout",
    },
    "accelerator": {
        "shape": "the extents of i (`m`), j (`n`) and k (`k`)",
        "a": _TILE,
        "b": _TILE,
        "c": _TILE,
        "calls": "the C function that is called with the three tiles and their strides",
    },
}
"""The fields of each kind of entry."""

RULES: Mapping[str, str] = {
    "lane": "the lane of the wave that holds the element",
    "register": "which of that lane's elements it is, from 0; in a layout with `element`, in which "
    "vector register it lies",
    "element": "in which element of its vector register of a CPU it lies",
}
"""What a layout says of each element."""

SHAPES: Mapping[str, Mapping[str, str]] = {
    "intrinsic": {
        "m": "the extent of i",
        "n": "the extent of j",
        "k": "the extent of k",
        "blocks": "how many products the instruction makes at once",
    },
    "microkernel": {"m": "the extent of i", "n": "the extent of j", "k": "the extent of k"},
    "accelerator": {"m": "the extent of i", "n": "the extent of j", "k": "the extent of k"},
    "read": {
        "bits": "the bits of an element",
        "lanes": "the lanes of a group",
        "registers": "the elements that a lane reads and gets",
    },
    "fragment": {
        "m": "the extent of i",
        "n": "the extent of j",
        "k": "the extent of k",
        "lanes": "how many lanes hold it",
    },
}
"""What `shape` says of each kind of entry."""
