"""What events earn under many versions, held against an oracle that knows docs/rules.md alone."""

import copy
import random
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from adapters import book_store, clock
from adapters.book_store import shipped_document
from adapters.engagement.account_store import AccountStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.projections import Projections
from adapters.platform.tables import BEFORE_ALL
from rules.engagement.reconciliation import days_of, ledger_faults, profile_of
from tests.support.effort import effort
from tests.support.memory import forget
from tests.support.site import PRODUCERS, Site

T0 = datetime(2026, 3, 2, tzinfo=UTC)
NOW = T0 + timedelta(days=25)
KINDS = ("A", "B", "P", "W")
Json = dict[str, Any]


@pytest.fixture
def api(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(book_store, "FRESH_SECONDS", 0)
    _forget_books(api)
    yield api
    _forget_books(api)


def _forget_books(api: Site) -> None:
    dynamodb = api.engine.client("dynamodb")
    for each in dynamodb.scan(TableName="RuleBooks")["Items"]:
        dynamodb.delete_item(TableName="RuleBooks", Key={name: each[name] for name in ("book", "version")})
    forget()


def some_book(chance: random.Random) -> Json:
    document = copy.deepcopy(shipped_document())
    for kind in KINDS:
        if chance.random() < 0.1:
            continue
        points = chance.choice((0, 1, 3, 7, 10, 90_000))
        said: Json = {"points": points, "keeps_streak": kind != "P"}
        if kind == "A":
            said["keeps_streak"] = chance.random() < 0.5
        if chance.random() < 0.85:
            per = "week" if kind == "W" else "day" if kind == "B" else chance.choice(("day", "week"))
            cap: Json = {"per": per}
            if chance.random() < 0.5:
                cap["events"] = chance.choice((1, 2, 3))
            else:
                cap["points"] = chance.choice([points, points + 1, points + 11, points * 3])
            said["cap"] = cap
        document["event_types"][kind] = said
    boosts: list[Json] = []
    at = T0
    while chance.random() < 0.7 and len(boosts) < 5:
        since = at + timedelta(hours=chance.randrange(1, 200))
        at = since + timedelta(hours=chance.randrange(1, 60))
        boost: Json = {"since": since.isoformat(), "until": at.isoformat(), "factor": chance.choice((2, 3))}
        if chance.random() < 0.6 and (known := [k for k in KINDS if k in document["event_types"]]):
            boost["event_types"] = chance.sample(known, chance.randrange(1, len(known) + 1))
        boosts.append(boost)
    if boosts:
        document["boosts"] = boosts
    return document


def in_force(
    versions: list[tuple[datetime, int, Json]], occurred: datetime
) -> list[tuple[datetime, int, Json]]:
    order = sorted(versions, key=lambda each: each[:2])
    first = max((n for n, each in enumerate(order) if each[0] <= occurred), default=0)
    return order[first:]


def worth(document: Json, kind: str, occurred: datetime) -> tuple[int, Any]:
    said = document["event_types"][kind]
    factor = 1
    for boost in document.get("boosts", ()):
        since, until = map(datetime.fromisoformat, (boost["since"], boost["until"]))
        if since <= occurred < until and kind in boost.get("event_types", [kind]):
            factor = boost["factor"]
    cap = said.get("cap")
    limit = None
    if cap:
        limit = (cap["per"], cap["points"] if "points" in cap else cap["events"] * said["points"] * factor)
    return said["points"] * factor, limit


def most(awarded: dict[Any, list[int]]) -> int:
    """Awarded points by limit of one period: the most that respects each limit on all with it or a lower one."""
    total = 0
    for limit in sorted(awarded):
        total = min(limit, total + sum(awarded[limit]))
    return total


def oracle(versions: Any, events: list[Json]) -> tuple[dict[Any, int], set[str]]:
    taken: dict[Any, Any] = defaultdict(lambda: defaultdict(list))
    free: dict[Any, int] = defaultdict(int)
    refused = set()
    for each in {e["idempotency_key"]: e for e in events}.values():
        occurred = datetime.fromisoformat(each["occurred_at"])
        judge = next(
            (v for v in in_force(versions, occurred) if each["event_type"] in v[2]["event_types"]), None
        )
        if judge is None:
            refused.add(each["idempotency_key"])
            continue
        points, limit = worth(judge[2], each["event_type"], occurred)
        zone = each["timezone"]
        day = occurred.astimezone(ZoneInfo(zone)).date()
        monday = day - timedelta(days=day.weekday())
        group = (each["event_type"], monday)
        if limit is None:
            free[group] += points
        else:
            per, most_points = limit
            taken[(*group, per, monday if per == "week" else day)][most_points].append(points)
    for (kind, monday, _, _), awarded in taken.items():
        free[kind, monday] += most(awarded)
    return dict(free), refused


def history(chance: random.Random, user: str, count: int) -> list[Json]:
    home = chance.choice(("Europe/Berlin", "Asia/Tokyo", "America/Lima", "Pacific/Apia"))
    events = []
    for number in range(count):
        at = T0 + timedelta(seconds=chance.randrange(-3 * 86400, 24 * 86400), days=0)
        if chance.random() < 0.5:
            at = T0 + timedelta(
                days=chance.randrange(24), hours=chance.randrange(24), minutes=chance.randrange(3)
            )
        kind = chance.choice((*KINDS, "CHECK_IN"))
        zone = home if kind != "P" else chance.choice((home, "Asia/Tokyo", "America/Lima"))
        events.append(
            {
                "user_id": user,
                "idempotency_key": f"k{number}",
                "event_type": kind,
                "occurred_at": at.isoformat(),
                "timezone": zone,
            }
        )
    return events


def shown(entries: Any) -> dict[Any, int]:
    told: dict[Any, int] = defaultdict(int)
    for each in entries:
        if each.draft.event_id:
            day = datetime.fromisoformat(each.draft.activity_date).date()
            told[each.draft.event_type, day - timedelta(days=day.weekday())] += each.draft.points
    return dict(told)


ROUNDS = range(effort(1, soak=100))


@pytest.mark.parametrize("seed", ROUNDS)
def test_any_order_earns_what_the_rules_say(
    api: Site, user: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(clock, "now", lambda: T0 - timedelta(days=4))
    versions: list[tuple[datetime, int, Json]] = [(datetime(1970, 1, 1, tzinfo=UTC), 1, shipped_document())]
    for number in range(2, chance.randrange(4, 14)):
        effective = T0 + timedelta(hours=chance.choice((0, 24, 24 * 7, *range(-80, 560, 7))))
        document = some_book(chance)
        status, told = api.admin("POST", "/v1/rules", {"book": document, "effective": effective.isoformat()})
        assert status == 201, told
        versions.append((effective, number, document))
    monkeypatch.setattr(clock, "now", lambda: NOW)
    seen = []
    names = [f"{user}-{n}" for n in range(3)]
    base = history(chance, "x", 60)
    for name in names:
        events = [{**each, "user_id": name} for each in base]
        sent = [*events, *chance.sample(events, 10)]
        chance.shuffle(sent)
        batches = [sent[n : n + 7] for n in range(0, len(sent), 7)]
        expected, refused = oracle(versions, events)
        with ThreadPoolExecutor(3) as pool:
            answers = list(
                pool.map(
                    lambda b: api.call("srv", "POST", "/v1/events", {"events": b}, PRODUCERS), batches[:5]
                )
            )
        api.settle()
        for batch in batches[5:]:
            answers.append(api.call("srv", "POST", "/v1/events", {"events": batch}, PRODUCERS))
            if chance.random() < 0.5:
                api.settle()
        api.settle()
        rejected = {
            each["idempotency_key"]
            for _, told in answers
            for each in told["results"]
            if each["status"] == "rejected"
        }
        assert rejected == refused
        dynamodb = api.engine.client("dynamodb")
        ledger = LedgerStore(dynamodb, "RewardsLedger")
        entries, _ = ledger.after(name, BEFORE_ALL)
        got = shown(entries)
        assert {k: v for k, v in got.items() if v} == {k: v for k, v in expected.items() if v}, seed
        seen.append(got)
        assert ledger_faults(entries) == []
        account = AccountStore(dynamodb, "UserStreaks", "DailyActivity", ledger, 2).load(name).account
        again = profile_of(account.profile, entries)
        assert (again.total_points, again.streak, again.cover) == (
            account.profile.total_points,
            account.profile.streak,
            account.profile.cover,
        )
        stored = {
            k: (int(v["events_count"]["N"]), int(v["points_earned"]["N"]))
            for k, v in Projections(dynamodb, "UserStreaks", "DailyActivity").days(name).items()
        }
        assert stored == {k: (v.events_count, v.points_earned) for k, v in days_of(entries).items()}
        shown_profile = api.profile(name)
        active = {e.draft.activity_date for e in entries if e.draft.event_id and not e.draft.is_passive}
        assert shown_profile["active_days"] == len(active)
