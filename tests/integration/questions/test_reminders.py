"""People whose streak ends tonight are reminded once a date, and nobody else is read."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.book_store import BookStore, shipped_version
from adapters.engagement.account_items import profile_attributes
from adapters.engagement.account_store import AccountStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.aws import client
from adapters.platform.items import decode_item, encode_item
from adapters.questions.message_claims import ClaimResult, DueReminder, ReminderStore
from adapters.questions.push import PushReceipt, PushStatus
from processors.questions import reminders
from processors.questions.messages import MessageOutcome, Sender
from processors.questions.reminders import Reminder
from rules.book.book import Book
from rules.book.reminders import reminder_rules
from rules.days import stamp, stamp_of_key, unstamp
from rules.engagement.account_state import Profile
from rules.engagement.streak import Streak
from rules.questions.notifications import Subscription, quiet_hours
from tests.integration.test_sample_events import CONTEXT
from tests.support.books import SHIPPED, KnownBooks
from tests.support.counting_client import Counting
from tests.support.engine import Engine
from tests.support.questions.subscribers import NOW, World, subscriber, world

EVENING = unstamp("2026-03-10T20:00:00.000000Z")
MORNING = unstamp("2026-03-10T12:15:00.000000Z")
DAY = timedelta(days=1)
SHIPPED_VERSION = shipped_version()


@pytest.fixture
def town(engine: Engine) -> Iterator[World]:
    with world(engine) as made:
        yield made


def reminder(town: World, dynamodb: Any = None, now: datetime = EVENING, book: Any = None) -> Reminder:
    """The job; from now on the clock says `now`."""
    town.now = now
    client = dynamodb or town.dynamodb
    waiting = ReminderStore(town.store(client))
    accounts = AccountStore(client, "UserStreaks", "", LedgerStore(client, ""), 1)
    books = BookStore(client, "RuleBooks") if book is None else book
    return Reminder(accounts, books, waiting, Sender(waiting.claims, town.phones, reminders.logger))


def person(town: World, name: str, last: date | None, zone: str = "UTC", **more: Any) -> Subscription:
    """Register a phone; last: the newest active date."""
    owner = f"{name}-{uuid.uuid4().hex[:6]}"
    live(town, owner, last, zone)
    wanted: dict[str, Any] = {
        "subscription_id": str(uuid.uuid4()),
        "owner": owner,
        "fcm_token": name,
        "timezone": zone,
        "streak_reminders": True,
    }
    return town.store().register(subscriber(0, **(wanted | more)), NOW)[0]


def live(town: World, owner: str, last: date | None, zone: str) -> None:
    """Store a profile whose dates are a zone's."""
    streak = Streak(last, 3, 3, 3) if last else None
    profile = Profile(owner, version=1, streak=streak, chosen_zone=zone, updated_at=stamp(NOW))
    town.dynamodb.put_item(TableName="UserStreaks", Item=encode_item(profile_attributes(profile, 1)))


def waits_until(town: World, each: Subscription) -> str | None:
    marker = town.scan().get(f"{each.subscription_id}#reminder")
    return stamp_of_key(decode_item(marker)["last_notified_at"]) if marker else None


def test_who_is_reminded_when(town: World) -> None:
    today = EVENING.date()
    people = {
        "due": person(town, "due", today - DAY),
        "done": person(town, "done", today),
        "lapsed": person(town, "lapsed", today - 2 * DAY),
        "new": person(town, "new", None),
        "quiet": person(town, "quiet", today - DAY, quiet_hours=quiet_hours("19:00", "07:00")),
        "later": person(town, "later", today - DAY, quiet_hours=quiet_hours("18:00", "21:00")),
        "west": person(town, "west", today - DAY, "America/New_York"),
        "never": person(town, "never", today - DAY, streak_reminders=False),
    }
    planned = reminder(town, now=MORNING).remind()
    assert planned == {MessageOutcome.SKIPPED: 7}, "the hour and the zone are found out"
    assert reminder(town, now=EVENING - timedelta(microseconds=1)).remind() == {}
    assert reminder(town, now=EVENING).remind() == {MessageOutcome.SENT: 1, MessageOutcome.SKIPPED: 3}
    assert reminder(town, now=EVENING + timedelta(hours=1)).remind() == {MessageOutcome.SENT: 1}
    assert reminder(town, now=EVENING + timedelta(hours=4)).remind() == {MessageOutcome.SENT: 1}
    assert town.phones.got == {"due": 1, "later": 1, "west": 1}
    assert town.phones.messages[0][1].body == "Keep your 3 days going today."
    assert waits_until(town, people["due"]) == waits_until(town, people["done"]) == stamp(EVENING + DAY)
    assert waits_until(town, people["later"]) == stamp(EVENING + DAY + timedelta(hours=1))
    assert waits_until(town, people["quiet"]) == stamp(MORNING + DAY), "a later book may have another hour"
    assert waits_until(town, people["never"]) is None


def test_once_a_date_even_by_two_at_once_or_in_another_zone(town: World) -> None:
    each = person(town, "a", EVENING.date() - DAY)
    with ThreadPoolExecutor(2) as both:
        told = list(both.map(lambda _: reminder(town).remind(), range(2)))
    assert town.phones.got == {"a": 1}
    assert sum(some[MessageOutcome.SENT] for some in told) == 1
    later = EVENING + timedelta(hours=1)
    moved, _ = town.store().register(subscriber(0, **_kept(each)), later)
    live(town, each.owner, EVENING.date() - DAY, "America/New_York")
    assert waits_until(town, moved) == stamp(later)
    assert reminder(town, now=later).remind() == {MessageOutcome.SKIPPED: 1}
    assert waits_until(town, moved) == "2026-03-11T00:00:00.000000Z", "the same date's evening, further west"
    assert reminder(town, now=unstamp("2026-03-11T00:05:00.000000Z")).remind()[MessageOutcome.SENT] == 0
    assert town.phones.got == {"a": 1}
    assert waits_until(town, moved) == "2026-03-12T00:00:00.000000Z"


def test_the_hour_is_in_the_zone_of_the_users_dates_and_not_in_the_phones(town: World) -> None:
    each = person(town, "a", EVENING.date() - DAY, "Asia/Tokyo", timezone="America/New_York")
    tokyo = unstamp("2026-03-10T11:00:00.000000Z")
    reminder(town, now=unstamp("2026-03-10T12:10:00.000000Z")).remind()
    assert waits_until(town, each) == stamp(tokyo + DAY)
    live(town, each.owner, EVENING.date(), "Asia/Tokyo")
    assert reminder(town, now=tokyo + DAY).remind() == {MessageOutcome.SENT: 1}
    (message,) = (message for _, message in town.phones.messages)
    assert message.ttl_seconds == 3 * 3600


def test_a_phone_has_its_own_hour_and_language_and_the_book_says_all_else(town: World) -> None:
    section = {
        "at": "19:00",
        "texts": {"en": {"title": "Tonight", "text": "{days}"}, "pt-BR": {"title": "Hoje", "text": "{days}"}},
    }
    book = KnownBooks([replace(SHIPPED_VERSION, read=lambda: with_reminders(section))])
    silent = KnownBooks([replace(SHIPPED_VERSION, read=lambda: with_reminders(None))])
    yesterday = EVENING.date() - DAY
    person(town, "own", yesterday, reminders_at=time(18, 30), language="pt-PT")
    person(town, "usual", yesterday, language="de")
    half_past = EVENING - timedelta(minutes=90)
    assert reminder(town, now=half_past, book=silent).remind() == {MessageOutcome.SKIPPED: 2}
    assert town.phones.got == {}
    tomorrow = half_past + DAY
    for owner in [each["owner"]["S"] for each in town.scan().values() if "owner" in each]:
        live(town, owner, EVENING.date(), "UTC")
    assert reminder(town, now=tomorrow, book=book).remind() == {
        MessageOutcome.SENT: 1,
        MessageOutcome.SKIPPED: 1,
    }
    assert reminder(town, now=tomorrow + timedelta(minutes=30), book=book).remind() == {
        MessageOutcome.SENT: 1
    }
    assert [(name, message.title) for name, message in town.phones.messages] == [
        ("own", "Hoje"),
        ("usual", "Tonight"),
    ]


def with_reminders(section: dict[str, Any] | None) -> Book:
    return replace(SHIPPED, reminders=reminder_rules(section))


def _kept(each: Subscription) -> dict[str, Any]:
    names = ("subscription_id", "owner", "fcm_token", "streak_reminders")
    return {name: getattr(each, name) for name in names}


def test_a_phone_that_is_off_is_not_told_after_midnight_that_a_streak_ends_tonight(town: World) -> None:
    person(town, "early", EVENING.date() - DAY)
    person(town, "late", EVENING.date() - DAY, quiet_hours=quiet_hours("18:00", "23:30"))
    reminder(town, now=EVENING).remind()
    reminder(town, now=EVENING + timedelta(minutes=210)).remind()
    assert {name: told.ttl_seconds for name, told in town.phones.messages} == {"early": 10_800, "late": 1_800}


def test_a_push_service_that_is_away_is_tried_again_and_a_dead_token_is_not(town: World) -> None:
    today = EVENING.date()
    each = person(town, "a", today - DAY)
    phones = town.phones
    arn = phones.prepare("a").endpoint
    phones.prepare = lambda token: PushReceipt(PushStatus.SENT, arn)  # type: ignore[method-assign]
    phones.away = True
    before = town.scan()
    assert reminder(town, now=EVENING).remind() == {MessageOutcome.AGAIN: 1}
    assert town.scan() == before
    phones.away, phones.dead = False, frozenset("a")
    assert reminder(town, now=EVENING).remind() == {MessageOutcome.DEAD: 1}
    found = town.store().get(each.subscription_id)
    assert found and not found.is_active and not phones.endpoints
    assert reminder(town, now=EVENING + DAY).remind() == {}
    assert phones.tried == {"a": 1}


def test_only_what_is_due_is_read(town: World) -> None:
    for number in range(3):
        person(town, f"due{number}", EVENING.date() - DAY)
    town.fill(subscriber(n, streak_reminders=True, reminders_at=time(21)) for n in range(50))
    town.fill(subscriber(n) for n in range(50, 100))
    reminder(town, now=MORNING).remind()
    counting = Counting(town.dynamodb)
    assert reminder(town, counting, now=EVENING).remind()[MessageOutcome.SENT] == 3
    assert counting.calls["query"] == 4 + 1, "of the shards, and of the versions of the book"
    assert counting.read == 3 * 3, "of each marker, subscription, profile"


def test_who_changes_their_quiet_hours_while_the_job_runs_is_judged_anew(town: World) -> None:
    each = person(town, "a", EVENING.date() - DAY)
    changed = subscriber(0, **{**_kept(each), "quiet_hours": quiet_hours("19:00", "23:00")})
    job = reminder(town)
    town.store().register(changed, EVENING - timedelta(hours=1))
    assert job._remind(each, NOW) is MessageOutcome.MOVED
    assert town.phones.got == {}


def test_who_leaves_while_the_job_runs_is_not_reminded_and_leaves_nothing(town: World) -> None:
    each = person(town, "a", EVENING.date() - DAY)
    waiting = reminder(town).reminders
    read = DueReminder(each, NOW, EVENING)
    assert town.store().remove(each)
    claim = waiting.claim_of(read, "reminder=2026-03-10", 1, EVENING)
    assert waiting.claims.open(claim) is ClaimResult.MOVED
    assert not waiting.skip(read)
    assert town.scan() == {}


def test_a_marker_without_its_subscription_is_dropped(town: World) -> None:
    each = person(town, "a", EVENING.date() - DAY)
    town.dynamodb.delete_item(
        TableName=town.subscriptions, Key={"subscription_id": {"S": each.subscription_id}}
    )
    assert reminder(town, now=EVENING).remind() == {MessageOutcome.SKIPPED: 1}
    assert waits_until(town, each) is None


def test_the_handler_reminds_and_reports_what_nobody_can_tell(
    town: World, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = engine.client("sns").create_platform_application(Name="reminders", Platform="GCM", Attributes={})
    wanted = {
        **engine.environment(),
        "SUBSCRIPTIONS_TABLE": town.subscriptions,
        "PLATFORM_APPLICATION_ARN": app["PlatformApplicationArn"],
    }
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    town.now = EVENING
    client.cache_clear()
    reminders._parts.cache_clear()
    each = person(town, "a", EVENING.date() - DAY)
    announcements, expires_at = town.notifier().announcements, int(EVENING.timestamp()) + 10**6
    announcements.claims.open(announcements.claim_of(each, "question=1", expires_at, EVENING))
    assert reminders.handler({}, CONTEXT) == {"sent": 1, "unconfirmed": 0}
    person(town, "b", EVENING.date() - DAY)
    hurried = SimpleNamespace(**{**vars(CONTEXT), "get_remaining_time_in_millis": lambda: 1_000})
    assert reminders.handler({}, hurried) == {"unconfirmed": 0}, "the next run reminds them"
    assert reminders.handler({}, CONTEXT) == {"sent": 1, "unconfirmed": 0}
    town.now = EVENING + timedelta(minutes=30)
    assert reminders.handler({}, CONTEXT) == {"unconfirmed": 1}
    assert reminders.handler({}, CONTEXT) == {"unconfirmed": 0}
    monkeypatch.setenv("PLATFORM_APPLICATION_ARN", "")
    reminders._parts.cache_clear()
    assert reminders.handler({}, CONTEXT) == {"unconfirmed": 0}
    reminders._parts.cache_clear()
