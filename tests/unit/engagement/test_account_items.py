"""Profiles, days and ledger entries read back from their tables and from Redis as they were written."""

import json
import string
from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from adapters.engagement.account_items import (
    day_attributes,
    day_from,
    entry_from,
    entry_item,
    profile_attributes,
    profile_from,
    profile_item,
)
from adapters.platform.items import decode_item, encode_item
from rules.days import AT_MIDNIGHT, is_skipped, local_date, stamp
from rules.engagement.account_state import Day, Profile
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, Head, Setting
from rules.engagement.streak import Streak, lapse_date
from tests.support.engagement_strategies import bases, covers, dates, instants, near, zones
from tests.support.ledger_strategies import earn

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
names = st.text(string.ascii_letters + "_", min_size=1, max_size=8)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    base = draw(bases)
    spent = tuple(sorted(draw(st.sets(near(base), max_size=3))))
    streak = st.builds(
        Streak, near(base), st.integers(1, 999), st.integers(1, 999), st.integers(1, 999), st.just(spent)
    )
    head = st.builds(Head, instants.map(stamp), st.integers(0, 10**9), st.integers(0, 10**9))
    changes = st.tuples(instants.map(stamp), zones)
    return Profile(
        user_id=draw(st.text(min_size=1, max_size=10)),
        version=draw(st.integers(0, 10**9)),
        head=draw(st.none() | head),
        total_points=draw(st.integers(0, 10**9)),
        streak=draw(st.none() | streak),
        cover=draw(covers(base)),
        chosen_zone=draw(st.none() | zones),
        observed_zone=draw(st.none() | zones),
        observed_at=draw(st.just("") | instants.map(stamp)),
        tz_changes=tuple(draw(st.lists(changes, max_size=3))),
        tz_review=draw(st.booleans()),
        updated_at=draw(st.just("") | instants.map(stamp)),
    )


@given(profiles(), st.integers(0, 64))
def test_a_profile_reads_back_from_its_table_and_from_redis(profile: Profile, shards: int) -> None:
    attributes = profile_attributes(profile, shards)
    assert profile_from(decode_item(encode_item(attributes))) == profile
    assert profile_from(json.loads(json.dumps(attributes))) == profile
    stored = encode_item(profile_attributes(profile, 4))
    for name in ("leaderboard_partition", "current_streak", "lapses_at"):  # the leaderboard's index
        assert (name in stored) is (profile.streak is not None)
    assert "leaderboard_partition" not in encode_item(profile_attributes(profile))


@given(profiles())
def test_a_streak_lapses_at_the_beginning_of_the_user_s_date(profile: Profile) -> None:
    if profile.streak is None:
        return
    lapses = lapse_date(profile.streak, profile.cover)
    if is_skipped(lapses, profile.zone):
        return
    at = datetime.fromtimestamp(profile_attributes(profile, 1)["lapses_at"], tz=UTC)
    assert local_date(at, profile.zone, AT_MIDNIGHT) == lapses
    assert local_date(at - timedelta(seconds=1), profile.zone, AT_MIDNIGHT) < lapses


@given(profiles(), st.booleans(), st.integers(0, 900))
def test_a_profile_is_written_into_the_index_while_its_streak_lives(
    profile: Profile, is_over: bool, days: int
) -> None:
    lapses_at = profile_attributes(profile).get("lapses_at", 0)
    seconds = days * 86_400
    now = datetime.fromtimestamp(max(lapses_at + seconds if is_over else lapses_at - 1 - seconds, 0), tz=UTC)
    stored = decode_item(profile_item(profile, 4, now))
    assert profile_from(stored) == profile
    lives = profile.streak is not None and not is_over
    assert ("leaderboard_partition" in stored, bool(stored.get("current_streak"))) == (lives, lives)


days = st.builds(
    Day,
    user_id=st.text(min_size=1, max_size=10),
    activity_date=dates,
    first_event_id=st.text(min_size=1, max_size=10),
    events_count=st.integers(1, 999),
    points_earned=st.integers(0, 999),
    points_by_cap=st.dictionaries(names, st.integers(0, 999), max_size=4),
    watermark=instants.map(stamp),
    created_at=instants.map(stamp),
)


@given(days)
def test_a_day_reads_back_from_its_table_and_from_redis(day: Day) -> None:
    attributes = day_attributes(day)
    assert day_from(decode_item(encode_item(attributes))) == day
    assert day_from(json.loads(json.dumps(attributes))) == day


drafts = st.builds(
    Draft,
    kind=st.sampled_from(EntryKind),
    points=st.integers(-(10**9), 10**9),
    event_id=st.none() | st.text(min_size=1, max_size=10),
    event_type=st.none() | names,
    activity_date=st.none() | dates.map(date.isoformat),
    reward_id=st.none() | names,
    reverses=st.none() | instants.map(stamp),
    freeze=st.none() | st.sampled_from(FreezeNote),
    freeze_date=st.none() | dates.map(date.isoformat),
    timezone=st.none() | names,
    setting=st.none() | st.sampled_from(Setting),
    set_to=st.none() | names,
)
entries = st.builds(
    Entry,
    account_id=st.text(min_size=1, max_size=10),
    created_at=instants.map(stamp),
    seq=st.integers(0, 10**9),
    balance=st.integers(0, 10**9),
    draft=drafts,
    carried=st.lists(st.builds(earn, st.integers(0, 2**16 - 1), st.integers(0, 99)), max_size=6).map(tuple),
    active=st.booleans(),
    reversed_by=st.none() | instants.map(stamp),
)


@given(entries)
def test_an_entry_reads_back_and_is_marked_active_only_if_it_is(entry: Entry) -> None:
    stored = entry_item(entry)
    assert entry_from(stored) == entry
    assert ("active" in stored) is entry.active
