"""Instructions that are taken at a `.mfma` entry's word: only where the user asks for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl.backend import build_instruction
from mfmadsl.emulator import EmulationError, Run, emulate
from mfmadsl.language import Source, library, load_source
from mfmadsl.model import Intrinsic, Layout
from tests.backend.gpu.test_instruction import assert_product, drawn, inputs
from tests.emulator.waves import kernel
from tests.registers import Array, codes, pack, unpack

INVENTED = """
use layouts

intrinsic mfma_f32_{m}x{n}x16_f16 {{
  shape   m={m} n={n} k=16
  a       float16[i, k]  at  operand(i, k, pack={a})
  b       float16[k, j]  at  operand(j, k, pack={b})
  c       float32[i, j]  at  accumulator(i, j)
  call    "llvm.amdgcn.mfma.f32.{m}x{n}x16.f16" unknown
  cycles  gfx942=16
}}
"""


def invented(m: int, n: int) -> Intrinsic:
    text = INVENTED.format(m=m, n=n, a=m * 16 // 64, b=n * 16 // 64)
    (intrinsic,) = load_source(Source("invented.mfma", text))
    return intrinsic


def text_of(intrinsic: Intrinsic, modifiers: str = "") -> str:
    """A kernel of one instruction, written by hand: arrays of (64 lanes, registers) to and fro."""
    lines, spans, first = [], {}, 2
    for number, operand in enumerate(intrinsic.operands.values()):
        count = operand.register_count
        first += first % 2 if count > 1 else 0  # as the chips have it
        spans[operand.name] = f"v[{first}:{first + count - 1}]"
        lines += [
            f"s_load_dwordx2 s[4:5], s[0:1], {8 * number:#x}",
            "s_waitcnt lgkmcnt(0)",
            f"v_mul_u32_u24_e32 v1, {4 * count}, v0",
            *(f"global_load_dword v{first + i}, v1, s[4:5] offset:{4 * i}" for i in range(count)),
            "s_waitcnt vmcnt(0)",
        ]
        if operand.name == "c":
            start = first
        first += count
    a, b, c = (spans[x] for x in "abc")
    lines += [
        f"v_{intrinsic.name} {c}, {a}, {b}, {c}{modifiers}",
        "s_load_dwordx2 s[4:5], s[0:1], 0x10",
        "s_waitcnt lgkmcnt(0)",
        f"v_mul_u32_u24_e32 v1, {4 * intrinsic.c.register_count}, v0",
        *(
            f"global_store_dword v1, v{start + i}, s[4:5] offset:{4 * i}"
            for i in range(intrinsic.c.register_count)
        ),
    ]
    return kernel("\n".join(f"\t{line}" for line in lines), 3)


def run_text(
    intrinsic: Intrinsic, operands: dict[str, Array], trusted: list[Intrinsic], text: str = ""
) -> tuple[Run, Array]:
    words = [pack(o, codes(operands[o.name], o.type)) for o in intrinsic.operands.values()]
    run = emulate(text or text_of(intrinsic), words, (1,), (64,), trusted=trusted)
    return run, unpack(intrinsic.c, words[2])


@pytest.mark.parametrize(("m", "n"), [(8, 32), (32, 16), (16, 64), (64, 16)])
def test_an_invented_instruction_multiplies_as_its_entry_says(m: int, n: int) -> None:
    intrinsic = invented(m, n)
    operands = drawn(intrinsic, 7)
    run, found = run_text(intrinsic, operands, [intrinsic])
    assert_product(intrinsic, found, *inputs(intrinsic, operands), operands["c"])
    assert run.trusted == (f"v_mfma_f32_{m}x{n}x16_f16",)


def test_nobody_is_trusted_who_was_not_named() -> None:
    intrinsic, other = invented(8, 32), invented(32, 16)
    with pytest.raises(EmulationError, match="unknown instruction"):
        run_text(intrinsic, drawn(intrinsic, 7), [other])
    run = emulate(build_instruction(library()["mfma_f32_16x16x16_f16"], "gfx942"), words_of_ones())
    assert run.trusted == ()


def words_of_ones() -> list[Any]:
    return [np.full((64, count), 0x3C003C00, np.uint32) for count in (2, 2, 4)]


@pytest.mark.parametrize("modifiers", [" cbsz:1", " blgp:1", " neg:[1,0,0]"])
def test_modifiers_that_an_entry_says_nothing_of_are_refused(modifiers: str) -> None:
    intrinsic = invented(8, 32)
    text = text_of(intrinsic, modifiers)
    with pytest.raises(EmulationError, match=r"has modifiers that its \.mfma entry does not know"):
        run_text(intrinsic, drawn(intrinsic, 7), [intrinsic], text)


def test_an_entry_speaks_for_its_chips_only() -> None:
    intrinsic = invented(8, 32)
    text = text_of(intrinsic).replace("gfx942", "gfx950")
    with pytest.raises(EmulationError, match=r"is no instruction of gfx950 by its \.mfma entry"):
        run_text(intrinsic, drawn(intrinsic, 7), [intrinsic], text)


def test_two_entries_of_one_name_contradict_each_other() -> None:
    intrinsic = invented(8, 32)
    with pytest.raises(EmulationError, match="has two entries"):
        run_text(intrinsic, drawn(intrinsic, 7), [intrinsic, intrinsic])


def test_operands_of_another_size_are_refused() -> None:
    intrinsic = invented(8, 32)
    text = text_of(intrinsic).replace("v_mfma_f32_8x32x16_f16 v[8:11], v[2:2]",
                                      "v_mfma_f32_8x32x16_f16 v[8:11], v[2:3]")  # fmt: skip
    assert text != text_of(intrinsic)
    with pytest.raises(EmulationError, match=r"takes 1 registers for A by its \.mfma entry"):
        run_text(intrinsic, drawn(intrinsic, 7), [intrinsic], text)


@pytest.mark.parametrize("intrinsic", library().values(), ids=lambda i: i.name)
def test_the_librarys_entries_say_what_the_emulator_knows(intrinsic: Intrinsic) -> None:
    """Random numbers in all registers: the two ideas of an instruction are each other's witness,
    and AMD's tables and NumPy are that of both."""
    chip = intrinsic.chips[-1]
    built = build_instruction(intrinsic, chip)
    results = []
    for trusted in ((), [i for i in library().values() if chip in i.chips]):
        operands = drawn(intrinsic, 21)
        words = [
            pack(
                o,
                operands[n] if n in ("index", "scale_a", "scale_b") else codes(operands[n], o.type),
            )
            for n, o in intrinsic.operands.items()
        ]
        run = emulate(built, words, trusted=trusted)
        assert bool(run.trusted) == bool(trusted)
        results.append(unpack(intrinsic.c, words[2]).astype(np.float64))
    a, b = inputs(intrinsic, operands)
    epsilon = 2.0**-53 if intrinsic.c.type.bits == 64 else 2.0**-24
    bound = (np.abs(a) @ np.abs(b) + np.abs(operands["c"])) * (intrinsic.k + 2) * epsilon
    assert (np.abs(results[0] - results[1]) <= bound).all()


def permuted(layout: Layout, lanes: list[int], registers: list[int]) -> Layout:
    """The same elements in other lanes and registers."""
    slots = tuple((lanes[lane], registers[register]) for lane, register in layout.slots)
    return replace(layout, slots=slots)


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_any_layout_is_taken_at_its_word(random: Any) -> None:
    plain = library()["mfma_f32_16x16x16_f16"]
    changed: dict[str, Any] = {}
    for operand in (plain.a, plain.b, plain.c):
        lanes, registers = list(range(64)), list(range(operand.layout.elements_per_lane))
        random.shuffle(lanes)
        random.shuffle(registers)
        layout = permuted(operand.layout, lanes, registers)
        changed[operand.name] = replace(operand, layout=layout)
    intrinsic = replace(plain, **changed)
    operands = drawn(intrinsic, random.randrange(1 << 16))
    _, found = run_text(intrinsic, operands, [intrinsic])
    assert_product(intrinsic, found, *inputs(intrinsic, operands), operands["c"])
