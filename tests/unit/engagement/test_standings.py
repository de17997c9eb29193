"""Snapshots of the boards give what sorting all users gives."""

import random
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import region_of
from rules.engagement import boards
from rules.engagement.boards import (
    ALL_REGIONS,
    BOARDS,
    GLOBAL,
    LISTED_MAX,
    SCORES_IN_CHUNK,
    Standing,
    Standings,
    chunk_of,
    count_above_in_chunk,
    is_due,
    pack_index,
    pack_rows,
    pack_scores,
    pseudonym,
    unpack_rows,
)

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
ZONES = ("Europe/Berlin", "America/Lima", "+02:00")
User = tuple[str, int, int, int]
users = st.lists(
    st.tuples(
        st.sampled_from(ZONES), st.integers(0, 6), st.integers(0, 6), st.integers(SECONDS - 2, SECONDS + 2)
    ),
    max_size=60,
)


def count(crowd: list[User]) -> Standings:
    made = Standings(NOW)
    for number, (zone, points, streak, lapses_at) in enumerate(crowd):
        made.add(f"u{number % 7}-{number}", zone, points, streak, lapses_at)
    return made


def rows_of(crowd: list[User], board: str, region: str) -> list[Standing]:
    """All rows of a board, best first, by sorting."""
    found = []
    for number, (zone, points, streak, lapses_at) in enumerate(crowd):
        score = points if board == "points" else streak if lapses_at > SECONDS else 0
        if score and region in (GLOBAL, region_of(zone)):
            found.append(Standing(score, f"u{number % 7}-{number}"))
    return sorted(found, key=lambda each: (-each.score, each.user_id))


@given(users, st.integers(1, 5), st.integers(1, 4))
def test_top_rows_and_ranks_are_those_of_sorting(crowd: list[User], kept: int, in_chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boards, "LISTED_MAX", kept)
        patch.setattr(boards, "SCORES_IN_CHUNK", in_chunk)
        made = {board: (rows, chunks) for board, rows, chunks in count(crowd).boards()}
    for board in BOARDS:
        for region in ALL_REGIONS:
            expected = rows_of(crowd, board, region)
            assert ((board, region) in made) is bool(expected)
            if expected:
                rows, chunks = made[board, region]
                assert rows == (expected[:kept] if board == "points" else [])
                index = pack_index(chunks)
                for score in range(8):
                    number = chunk_of(index, score)
                    above = 0 if number is None else count_above_in_chunk(chunks[number].data, score)
                    assert above == sum(each.score > score for each in expected)


def test_many_scores_are_many_small_chunks() -> None:
    chunks = pack_scores({5 * number: 1 + number % 3 for number in range(1, 2 * SCORES_IN_CHUNK + 2)})
    assert len(chunks) == 3
    assert all(len(each.data) < 4096 for each in chunks), "one read unit each"
    assert [each.first for each in chunks] == [5 * (2 * SCORES_IN_CHUNK + 1), 5 * (SCORES_IN_CHUNK + 1), 5]
    chance = random.Random(1)
    odd = {chance.randrange(10**6): chance.randrange(1, 999) for _ in range(2 * SCORES_IN_CHUNK)}
    assert all(len(each.data) < 4096 for each in pack_scores(odd)), "and of scores far apart"


@given(st.lists(st.builds(Standing, st.integers(1, 10**9), st.text(max_size=9), st.text(max_size=9))))
def test_rows_are_read_back(rows: list[Standing]) -> None:
    assert unpack_rows(pack_rows(rows)) == rows


def test_a_list_of_uuids_is_small() -> None:
    from uuid import UUID

    rows = [Standing(500 - n, str(UUID(int=n * 2**100 + n * 7919**9))) for n in range(LISTED_MAX)]
    assert len(pack_rows(rows)) < 4 * 1024


def test_more_users_are_counted_less_often() -> None:
    def due(users: int, **age: float) -> bool:
        return is_due(NOW - timedelta(**age), users, NOW)

    assert due(0, seconds=0)
    assert due(300_000, minutes=5)
    assert not due(1_000_000, minutes=16)
    assert due(1_000_000, minutes=17)
    assert due(10**9, hours=6)


def test_pseudonyms_are_short_the_same_each_time_and_seldom_two_peoples() -> None:
    names = [pseudonym(f"{number * 2_654_435_761 % 16**10:010x}ffff") for number in range(1000)]
    assert names == [pseudonym(f"{number * 2_654_435_761 % 16**10:010x}0000") for number in range(1000)]
    assert len(set(names)) > 990
    assert all(re.fullmatch("[A-Z][a-z]{2,7} [A-Z][a-z]{1,7} [1-9][0-9]", each) for each in names)
    assert len({each.split()[0] for each in names}) == len({each.split()[1] for each in names}) == 64
