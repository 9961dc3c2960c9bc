"""Which of some estimated tilings should take the least time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.model import Tiling
from mfmadsl.schedule.matrix_core.tiling.cost import Estimate
from mfmadsl.schedule.matrix_core.tiling.fastest import (
    Estimated,
    fastest_first,
    fastest_of,
    least_seconds,
    within,
)

_TIMES = st.lists(
    st.tuples(st.integers(1, 40), st.integers(0, 40), st.integers(1, 3)), min_size=1, max_size=12
)


def some(times: list[tuple[int, int, int]], looked_at: list[int]) -> list[Estimated]:
    """Tilings whose power adds so much to their times; `looked_at` gets those that are computed."""

    def one(place: int, unlimited: int, more: int, read: int) -> Estimated:
        def slowed() -> float:
            looked_at.append(place)
            return float(unlimited + more)

        tiling = Tiling((place + 1, 1), 64, (1, 1), "one", 1, split_k=1 + place % 2)
        return Estimate(float(unlimited), float(read), slowed), tiling

    return [one(place, *each) for place, each in enumerate(times)]


@given(_TIMES)
def test_the_power_of_what_is_surely_slower_is_not_looked_at(
    times: list[tuple[int, int, int]],
) -> None:
    looked_at: list[int] = []
    found = some(times, looked_at)
    least = min(unlimited + more for unlimited, more, _ in times)
    assert least_seconds(each for each, _ in found) == least
    assert all(times[place][0] <= least for place in looked_at)
    assert len(looked_at) == len(set(looked_at))


@given(_TIMES, st.floats(1, 2))
def test_what_is_within_a_share_is_what_all_times_say(
    times: list[tuple[int, int, int]], share: float
) -> None:
    found = some(times, [])
    near = within(found, share)
    least = min(each.seconds for each, _ in found)
    assert near == [pair for pair in found if pair[0].seconds <= share * least]


@given(_TIMES)
def test_the_fastest_is_the_same_where_each_time_is_known(
    times: list[tuple[int, int, int]],
) -> None:
    lazy = some(times, [])
    known = [(Estimate(each.seconds, each.read), tiling) for each, tiling in lazy]
    chosen, alike = fastest_of(some(times, [])), fastest_of(known)
    seconds = {tiling: each.seconds for each, tiling in known}
    # Of those that take and read as much, the one that would be faster with all power comes first.
    assert seconds[chosen] <= 1.01 * seconds[alike]
    assert seconds[alike] <= 1.01 * seconds[chosen]


def test_others_follow_by_their_times() -> None:
    found = some([(5, 0, 1), (3, 9, 1), (4, 0, 1), (4, 4, 1)], [])
    assert fastest_first(found) == [found[place][1] for place in (2, 0, 3, 1)]
