"""What MetaSchedule found is replayed, at any size, or refused; and it finds again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.cpu_matmul_exp import vectorized
from examples.cpu_matmul_exp.chain import FULL, Size, loops
from examples.cpu_matmul_exp.tuned import (
    BLOCKS,
    TILES,
    TRACE,
    TuningError,
    plain,
    schedule,
    tune,
)
from mfmadsl.output import OutputError

SMALL = Size(16, 32, 16, 32)


def test_the_trace_that_is_kept_is_of_the_full_size_and_of_64_trials() -> None:
    kept = json.loads(TRACE.read_text())
    assert kept["size"] == str(FULL)
    assert kept["trials"] == 64
    sch = loops(FULL)
    schedule(sch)
    assert "T.parallel" in sch.mod.script()
    assert "T.vectorized" in sch.mod.script()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "no trace can be read"),
        ("{", "no trace can be read"),
        ("[1]", "no trace can be read"),
        ("{}", "no trace can be read: 'trace'"),
        ('{"trace": []}', "the trace cannot be replayed: .*two arrays"),
        ('{"trace": 3}', "the trace cannot be replayed"),
        ('{"trace": null}', "the trace cannot be replayed"),
        ('{"trace": [[["Nope", [], [], []]], []]}', "the trace cannot be replayed"),
        (
            '{"trace": [[["GetSBlock", [], ["Q", "main"], ["b0"]]], []]}',
            "the trace cannot be replayed",
        ),
    ],
)
def test_another_trace_is_refused(tmp_path: Path, content: str | None, sentence: str) -> None:
    path = tmp_path / "trace.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(TuningError, match=sentence):
        schedule(loops(SMALL), path)


def test_it_finds_a_trace_that_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    seconds = tune(SMALL, 1, 3, path)
    kept = json.loads(path.read_text())
    assert 0 < seconds == kept["seconds"] < 1
    assert (kept["size"], kept["trials"]) == ("16x32x16x32", 3)
    sch = loops(SMALL)
    schedule(sch, path)
    assert plain(sch.trace.as_json()) == kept["trace"]


def test_the_same_seed_draws_the_same_schedules(tmp_path: Path) -> None:
    """Of one draw, since which of several is the fastest depends on the machine."""
    traces = []
    for seed in (3, 3, 5):
        tune(SMALL, 1, 1, tmp_path / "trace.json", seed)
        traces.append(json.loads((tmp_path / "trace.json").read_text())["trace"])
    assert traces[0] == traces[1] != traces[2]


def test_a_space_of_its_own_has_the_schedule_that_was_chosen_by_hand() -> None:
    assert vectorized.BLOCK in BLOCKS
    hand = vectorized.TILE
    assert all(
        number in choices
        for number, choices in zip((hand.rows, hand.columns, hand.terms), TILES, strict=True)
    )


def test_a_place_that_no_file_can_have_is_refused_before_the_search(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="names a folder"):
        tune(SMALL, 1, 10_000, tmp_path / "..")


def test_every_tile_of_the_space_divides_every_block() -> None:
    assert not [(block, rows) for block in BLOCKS for rows in TILES[0] if block % rows]
