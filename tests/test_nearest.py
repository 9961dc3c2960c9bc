"""What is proposed for a name that there is not."""

from __future__ import annotations

import pytest

from mfmadsl.nearest import among_many, did_you_mean, meant, nearest, or_meant


def test_a_near_name_is_proposed_and_else_all_are_listed() -> None:
    assert did_you_mean("opernad", ["operand", "accumulator"]) == "did you mean `operand`?"
    assert did_you_mean("zzz", ["b", "a"]) == "there are: a, b"
    assert did_you_mean("zzz", []) == ""


def test_capitals_do_not_count_where_nothing_is_near() -> None:
    assert nearest("GELU", ["gelu", "silu"]) == ["gelu"]


def test_several_may_be_meant() -> None:
    assert meant(["a"]) == "did you mean `a`?"
    assert meant(["a", "b", "c"]) == "did you mean `a`, `b` or `c`?"


@pytest.mark.parametrize(("name", "told"), [("assembly", "; did you mean `asm`?"), ("zzz", "")])
def test_a_list_of_all_names_is_followed_by_the_nearest(name: str, told: str) -> None:
    assert or_meant(name, ["tir", "llvm", "asm", "hsaco", "json"]) == told


def test_of_many_names_a_few_are_told() -> None:
    many = [f"mfma_f32_{n}x{n}" for n in range(40)] + [f"amx_{n}" for n in range(40)]
    assert among_many("mfma_f32_3x33", many).startswith("did you mean `mfma_f32_")
    told = among_many("wmma", many)
    assert told == f"near it are {', '.join(many[:5])}; `mfmadsl list` lists all"
    assert among_many("frobnicate", many) == "`mfmadsl list` lists all"
