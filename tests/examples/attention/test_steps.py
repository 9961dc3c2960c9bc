"""Each step computes attention; its machine code and its counters are what it says."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import mfmadsl
from examples.attention.check import SMALL, check, difference, wrong_with
from examples.attention.kernel import (
    CAUSAL,
    FEW_REGISTERS,
    TILINGS,
    UNPIPELINED,
    InOrder,
    cut_of,
    workload,
)
from examples.attention.ladder import CHIPS, FULL, NAMES, ladder
from examples.attention.predict import Prediction, predict
from examples.attention.size import Size, attended
from examples.attention.step import Step
from examples.mfma_gemm.sequence import main_loop
from mfmadsl import Kernel
from mfmadsl.emulator.text.assembly import Instruction, parse_assembly

STEPS = [step for arch in CHIPS for step in ladder(arch)]
SHORT = Size(8, 512, 1024, 128)
"""Of whole tiles, as the large size is."""
FEW = Size(1, 512, 512, 32)
ONE_LAUNCH = NAMES[1:]


def name(step: Step) -> str:
    return f"{step.arch}-{step.name}"


def step_of(arch: str, name: str) -> Step:
    return next(step for step in ladder(arch) if step.name == name)


@cache
def kernel_of(arch: str, name: str) -> Kernel:
    return step_of(arch, name).kernel(SHORT)


def counted(instructions: list[Instruction]) -> Counter[str]:
    """How many there are of each name."""
    return Counter(each.name for each in instructions)


def loop_of(arch: str, name: str) -> Counter[str]:
    """The instructions of a step's main loop."""
    return counted(main_loop(kernel_of(arch, name).assembly))


def products(found: Counter[str]) -> int:
    return sum(count for name, count in found.items() if name.startswith("v_mfma"))


def starting(found: Counter[str], start: str) -> int:
    return sum(count for name, count in found.items() if name.startswith(start))


@cache
def counters(arch: str, name: str) -> Prediction:
    """What the profiler counts at a small size."""
    return predict(step_of(arch, name), FEW)


def test_both_chips_have_the_same_steps() -> None:
    for arch in CHIPS:
        assert tuple(step.name for step in ladder(arch)) == NAMES
    assert [step.name for step in ladder("gfx942") if step.causal] == [
        "masked", "skipped", "causal_order",
    ]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=name)
def test_every_step_is_right_with_edges(step: Step) -> None:
    assert check(step) is None


@pytest.mark.parametrize("step", STEPS, ids=name)
def test_every_step_is_right_in_whole_tiles(step: Step) -> None:
    assert check(step, Size(2, 256, 256, 64)) is None


@pytest.mark.parametrize("size", [Size(1, 130, 1, 16), Size(3, 1, 70, 8), Size(1, 70, 40, 32)])
@pytest.mark.parametrize("step", STEPS, ids=name)
def test_every_step_is_right_at_small_sizes(step: Step, size: Size) -> None:
    assert check(step, size) is None


def test_the_size_of_the_check_has_edges_and_several_tiles() -> None:
    for tiling in TILINGS.values():
        assert SMALL.heads > 1
        assert SMALL.queries > tiling.block
        assert SMALL.keys > 2 * tiling.keys
        assert all((SMALL.queries % tiling.block, SMALL.keys % tiling.keys, SMALL.depth % 16))


def test_a_wrong_element_is_named() -> None:
    q, k, v, _ = SMALL.arrays()
    right = attended(q, k, v, False)
    o, magnitude = right.astype("float16"), attended(q, k, np.abs(v), False)
    assert difference(o, right, magnitude) is None
    o[0, 1, 7, 11] += 1
    o[0, 1, 9, 0] = np.nan
    said = difference(o, right, magnitude)
    assert said is not None
    assert said.startswith(f"2 of {o.size} elements are wrong, the first of them O[0, 1, 7, 11] = ")


def test_a_key_more_or_less_is_found() -> None:
    """The tolerance is less than what one of the keys adds."""
    q, k, v, _ = SMALL.arrays()
    right, magnitude = attended(q, k, v, False), attended(q, k, np.abs(v), False)
    without = attended(q, k[:, :, :-1], v[:, :, :-1], False).astype("float16")
    assert difference(without, right, magnitude) is not None


@pytest.mark.parametrize("arch", CHIPS)
def test_a_barrier_that_is_missing_is_found(arch: str) -> None:
    kernel = step_of(arch, "registers").kernel(SMALL)
    spoiled = replace(kernel, assembly=kernel.assembly.replace("s_barrier", "s_nop 0"))
    found = wrong_with(spoiled, SMALL, causal=False)
    assert found is not None
    assert found.startswith("the sanitizer finds: ")


@pytest.mark.thorough
@pytest.mark.parametrize("arch", CHIPS)
def test_naive_has_three_kernels_and_scores_in_memory_and_the_others_none(arch: str) -> None:
    scores = SHORT.heads * SHORT.queries * SHORT.keys
    assert len(list(kernel_of(arch, "naive").chain())) == 3
    spaces = kernel_of(arch, "naive").workspaces
    assert sorted((np.prod(each.shape), each.dtype) for each in spaces) == [
        (scores, "float16"), (scores, "float32"),
    ]  # fmt: skip
    for each in ONE_LAUNCH:
        kernel = kernel_of(arch, each)
        assert kernel.next is None
        assert not kernel.workspaces
    for each in NAMES:
        for kernel in kernel_of(arch, each).chain():
            assert not kernel.registers.spilled
            assert not kernel.remarks  # no loop is slow against its will


@pytest.mark.thorough
@pytest.mark.parametrize("arch", CHIPS)
def test_scores_and_weights_lie_in_memory_only_between_kernels(arch: str) -> None:
    scores = FEW.heads * FEW.queries * FEW.keys
    assert counters(arch, "naive").between_bytes == scores * (4 + 2)
    assert counters(arch, "fused").between_bytes == counters(arch, "online").between_bytes == 0


@pytest.mark.parametrize("arch", CHIPS)
def test_fused_makes_the_scores_twice_and_online_once(arch: str) -> None:
    assert counters(arch, "fused").work == pytest.approx(1.5)
    assert counters(arch, "online").work == pytest.approx(1)


@pytest.mark.parametrize("arch", CHIPS)
def test_weights_go_through_the_lds_until_they_stay_in_registers(arch: str) -> None:
    online, registers = loop_of(arch, "online"), loop_of(arch, "registers")
    assert products(online) == products(registers)
    assert starting(online, "ds_write") > starting(registers, "ds_write")
    assert starting(online, "ds_read") > starting(registers, "ds_read")
    assert (online["s_barrier"], registers["s_barrier"]) == (3, 2)
    rows = UNPIPELINED[arch].keys + 8  # with padding
    weights = UNPIPELINED[arch].block * rows * 2
    assert kernel_of(arch, "online").lds_bytes == kernel_of(arch, "registers").lds_bytes + weights


def test_keys_are_permuted_where_the_layouts_differ() -> None:
    for arch, permuted in (("gfx942", False), ("gfx950", True)):
        cut = cut_of(SHORT, TILINGS[arch], arch)
        keys = list(cut.chain.keys)
        assert sorted(keys) == list(range(cut.chain.period))
        assert (keys != sorted(keys)) == permuted
        in_order = cut_of(SHORT, TILINGS[arch], arch, kind=InOrder)
        assert in_order.key_of(keys[1]) == keys[1]  # type: ignore[arg-type, comparison-overlap]


@pytest.mark.parametrize("arch", CHIPS)
def test_only_pipelined_loops_load_the_next_step_among_their_products(arch: str) -> None:
    def kinds(name: str) -> str:
        """Loads, writes and products of an iteration, each as a letter."""
        body = [each.name for each in main_loop(kernel_of(arch, name).assembly)]
        return "".join(
            "p" if each.startswith("v_mfma") else "l" if "_load_" in each
            else "w" if each.startswith("ds_write") else "" for each in body
        )  # fmt: skip

    assert re.fullmatch("l+w+p+", kinds("registers"))  # each thing in turn
    assert re.search("wl", kinds("pipelined"))  # the load is of another step than the write
    assert re.search("l.*p.*l", kinds("pipelined"))
    wide = loop_of(arch, "pipelined")
    assert wide["buffer_load_dwordx4"]
    assert not wide["global_load_ushort"]


@pytest.mark.parametrize("arch", CHIPS)
def test_skewed_makes_the_scores_of_a_step_ahead_of_its_loop(arch: str) -> None:
    def every(name: str) -> int:
        return products(counted(list(parse_assembly(kernel_of(arch, name).assembly).instructions)))

    cut = cut_of(SHORT, TILINGS[arch], arch)
    ahead = cut.sizes.keys * cut.sizes.depth * cut.tiling.k_pack
    assert every("skewed") == every("pipelined") + ahead
    assert products(loop_of(arch, "skewed")) == products(loop_of(arch, "pipelined"))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("name", "causal"), [("two_workgroups", False), ("causal_order", True)])
def test_the_ladder_ends_in_the_kernel_of_the_package(name: str, causal: bool, arch: str) -> None:
    tiling = (CAUSAL if causal else FEW_REGISTERS)[arch]
    assert mfmadsl.attention_tiling(workload(FULL, causal), arch) == tiling
    schedule = mfmadsl.attention_schedule(workload(SHORT, causal), arch, tiling)
    own = mfmadsl.build(schedule, arch)
    assert kernel_of(arch, name).assembly == own.assembly


@pytest.mark.parametrize("arch", CHIPS)
def test_registers_of_short_steps_leave_room_for_a_second_workgroup(arch: str) -> None:
    skewed, short = (kernel_of(arch, name).registers for name in ("skewed", "two_workgroups"))
    assert short.vector + short.accumulation <= 256 < skewed.vector + skewed.accumulation


@pytest.mark.thorough
@pytest.mark.parametrize("arch", CHIPS)
def test_masked_asks_of_each_score_and_visits_all_keys(arch: str) -> None:
    assert starting(loop_of(arch, "masked"), "v_cndmask") >= 32
    assert starting(loop_of(arch, "two_workgroups"), "v_cndmask") < 8
    masked, skipped = counters(arch, "masked"), counters(arch, "skipped")
    assert masked.work > 2
    assert skipped.work < 0.75 * masked.work
    assert counters(arch, "causal_order").work == pytest.approx(skipped.work)
