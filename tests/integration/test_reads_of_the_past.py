"""What reads of a long history cost, and what they show, on a real engine."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial

import pytest

from adapters.engagement.account_items import day_attributes
from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.event_store import EventStore
from adapters.engagement.expiry import Settler
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import encode_item
from adapters.platform.tables import put_all
from ingest.engagement.history import Histories
from ingest.engagement.profiles import Profiles
from processors.engagement import EngagementProcessor
from rules.days import DAY
from rules.engagement.account_state import Day, Profile
from rules.engagement.events import to_item
from rules.engagement.streak import Cover, fold
from tests.support.accounts import put_profile
from tests.support.books import KnownBooks
from tests.support.counting_client import Counting
from tests.support.engagement_strategies import event
from tests.support.engine import Engine
from tests.support.site import PRODUCERS, Site, site

LAST = date(2026, 6, 1)
MISSED = 3  # days before


@pytest.fixture(scope="module")
def api(engine: Engine) -> Iterator[Site]:
    with site(engine) as prepared:
        yield prepared


def test_a_page_of_days_reads_a_page(engine: Engine) -> None:
    dynamodb, user = engine.client("dynamodb"), f"past{time.time_ns()}"
    days = [LAST - timedelta(days=number) for number in range(1000)]
    rows = (Day(user, each, f"{each}T00:00:00.000000Z#e", 1, 5, {}, "", f"{each}") for each in days)
    put_all(dynamodb, "DailyActivity", [encode_item(day_attributes(each)) for each in rows])
    counting = Counting(dynamodb)
    ledger = LedgerStore(counting, "RewardsLedger")
    accounts = AccountStore(counting, "UserStreaks", "DailyActivity", ledger, 2)
    found = accounts.newest_days(user, days[-1], LAST - timedelta(days=3), 10)
    assert [each.activity_date for each in found] == days[3:13]
    assert (counting.read, counting.calls) == (10, {"query": 1})


def test_entries_of_a_clock_that_is_ahead_are_in_the_ledger(
    api: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = f"ahead{time.time_ns()}"
    event = {"idempotency_key": "k", "event_type": "CHECK_IN", "timezone": "UTC"}
    with monkeypatch.context() as ahead:
        ahead.setattr("adapters.clock.now", lambda: datetime.now(UTC) + timedelta(days=2))
        api.send(user, event | {"occurred_at": datetime.now(UTC).isoformat()}, groups=(PRODUCERS,))
    kinds = [each["kind"] for each in api.call(user, "GET", f"/v1/users/{user}/ledger")[1]["entries"]]
    assert kinds == ["EARN", "OPEN"]
    path = f"/v1/users/{user}/streak/explain?date="
    later = date.today() + timedelta(days=30)  # noqa: DTZ011 (any late date)
    told = api.call(user, "GET", f"{path}{later}")[1]
    shown = api.call(user, "GET", f"/v1/users/{user}?as_of={later}")[1]
    assert told["streak_length"] == shown["current_streak"] == 0


def test_a_date_that_the_zone_skipped_is_no_miss_between_two_missed_ones(api: Site) -> None:
    """Apia had no 30 December 2011. Freezes cover the 29th and the 31st, and none is spent on the 30th."""
    user = f"apia{time.time_ns()}"
    for granted in ("2011-12-01", "2011-12-01"):
        assert api.admin("POST", f"/v1/users/{user}/freezes", {"granted_on": granted})[0] == 201
    days = [date(2011, 12, 28), date(2012, 1, 1)]
    events = [
        {
            "idempotency_key": f"k{day}",
            "event_type": "CHECK_IN",
            "occurred_at": f"{day}T12:00:00{offset}",
            "timezone": "Pacific/Apia",
        }
        for day, offset in zip(days, ("-10:00", "+14:00"), strict=True)
    ]
    api.send(user, *events, groups=(PRODUCERS,))
    shown = api.call(user, "GET", f"/v1/users/{user}?as_of=2012-01-01")[1]
    assert (shown["current_streak"], shown["freezes_available"]) == (2, 0)


def long_past(engine: Engine, active_days: int) -> tuple[Profile, Counting, AccountStore]:
    """A user who was active on each date up to LAST except 29 May."""
    dynamodb, user = engine.client("dynamodb"), f"long{time.time_ns()}"
    dates = [LAST - DAY * number for number in range(active_days) if number != MISSED]
    rows = (Day(user, each, f"{each}T12:00:00.000000Z#e", 1, 5, {}, "", f"{each}") for each in dates)
    put_all(dynamodb, "DailyActivity", [encode_item(day_attributes(each)) for each in rows])
    counting = Counting(dynamodb)
    accounts = AccountStore(
        counting, "UserStreaks", "DailyActivity", LedgerStore(counting, "RewardsLedger"), 2
    )
    profile = Profile(user, version=1, streak=fold(dates, Cover()), updated_at=f"{LAST}T12:00:00+00:00")
    put_profile(accounts, Profile(user), profile)
    counting.read = 0
    return profile, counting, accounts


def test_a_late_event_reads_three_months_at_most_however_long_the_past(engine: Engine) -> None:
    active_days = 1500
    profile, counting, accounts = long_past(engine, active_days)
    late = event("late", LAST - DAY * MISSED)
    stored = encode_item(to_item(replace(late, user_id=profile.user_id)))
    at = datetime(2026, 6, 1, 13, tzinfo=UTC)
    record = {"dynamodb": {"NewImage": stored, "SequenceNumber": "1"}}
    outcome = EngagementProcessor(accounts, EngagementCache("")).apply([record], at)
    assert (outcome.counts["applied"], outcome.poison, outcome.again) == (1, [], [])
    assert 32 <= counting.read <= 100
    after = accounts.profile(profile.user_id).streak
    assert after and after.checkpoints
    assert (after.length, after.longest, after.active_days) == (active_days,) * 3


def test_a_question_about_the_past_reads_a_year_at_most(engine: Engine) -> None:
    active_days = 1500
    profile, counting, accounts = long_past(engine, active_days)
    view = Profiles(
        accounts, EventStore(counting, "BPEvents"), EngagementCache(""), Settler(accounts, KnownBooks())
    )
    now = datetime(2026, 6, 1, 13, tzinfo=UTC)
    for asked in (LAST - DAY * 5, LAST - DAY * 100, LAST - DAY * 700):
        days = active_days - (LAST - asked).days
        counting.read = 0
        shown = view.view(profile.user_id, asked, now)
        assert (shown["current_streak"], shown["active_days"]) == (days, days)
        assert counting.read <= 366
        counting.read = 0
        told = view.explain(profile.user_id, asked, now)
        assert (told["reason"], told["streak_length"]) == ("counted", days)
        assert counting.read <= 366 + 2
    assert counting.strong == []


def test_questions_about_the_last_years_do_not_read_the_ledger(engine: Engine) -> None:
    active_days = 7000
    profile, counting, accounts = long_past(engine, active_days)
    assert accounts.profile(profile.user_id).cover.brought_forward
    view = Profiles(
        accounts, EventStore(counting, "BPEvents"), EngagementCache(""), Settler(accounts, KnownBooks())
    )
    for days_ago, is_whole in ((700, False), (6500, True)):
        counting.calls.clear()
        counting.strong.clear()
        counted: list[bool] = []
        asked, now = LAST - DAY * days_ago, datetime(2026, 6, 1, 13, tzinfo=UTC)
        told = view.explain(profile.user_id, asked, now, partial(counted.append, True))
        assert counted == [True] * is_whole  # towards the reader's limit of such reads
        assert told["streak_length"] == active_days - days_ago
        assert counting.calls["get_item"] == 1  # the profile
        assert counting.strong == ["query"] * is_whole  # the ledger


def test_only_what_is_kept_for_others_is_read_strongly(engine: Engine, lone_redis_url: str) -> None:
    profile, counting, accounts = long_past(engine, 40)
    ledger, events = accounts.ledger, EventStore(counting, "BPEvents")
    histories = Histories(accounts, events)
    for url, strong in (("", []), (lone_redis_url, ["get_item"])):
        counting.strong.clear()
        Profiles(accounts, events, EngagementCache(url), Settler(accounts, KnownBooks())).view(
            profile.user_id, None, datetime.now(UTC)
        )
        assert counting.strong == strong
    counting.strong.clear()
    histories.activity(profile.user_id, {})
    histories.events(profile.user_id, {}, datetime.now(UTC))
    histories.ledger(profile.user_id, {})
    assert ledger.page(profile.user_id, "0", "~", 5) == []
    assert (counting.strong, counting.calls["query"]) == ([], 4)
