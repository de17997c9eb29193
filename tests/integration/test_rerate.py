"""Versions take effect in the past, and ledgers follow (rule 12): the real handlers on a real engine."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from adapters import book_store
from adapters.book_store import BookStore, shipped_document
from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import encode_item
from local.rerate import Rerater, Summary, rerate
from local.stack import Stack
from rules.engagement.account_state import Profile
from rules.engagement.ledger import debt_of
from tests.integration.test_clawback import Desk
from tests.support.dying import Dying, Killed
from tests.support.dynamodb_engine import TABLES
from tests.support.memory import forget
from tests.support.site import Site
from tests.support.typed_command import typed

BEGIN = datetime(2027, 1, 30, 9, tzinfo=UTC)
FIRST = date(2027, 1, 11)
DAY = timedelta(days=1)


class Bureau(Desk):
    """A shop with somebody who changes the past."""

    def book(self, points: int = 10, cap: int = 200, **other: Any) -> dict[str, Any]:
        made = copy.deepcopy(shipped_document()) | other
        made["event_types"]["LESSON_COMPLETED"] = {"points": points, "cap": {"points": cap, "per": "day"}}
        return made

    def publish_since(self, at: datetime, book: dict[str, Any], **other: Any) -> tuple[int, Any]:
        body = {"book": book, "effective": at.isoformat(), **other}
        return self.api.admin("POST", "/v1/rules", body)

    def publish_past(self, book: dict[str, Any]) -> None:
        status, told = self.publish_since(BEGIN - DAY, book, rerate=True)
        assert status == 201, told

    def rerater(self, dynamodb: Any = None) -> Rerater:
        dynamodb = dynamodb or self.api.engine.client("dynamodb")
        ledger = LedgerStore(dynamodb, "RewardsLedger")
        accounts = AccountStore(dynamodb, "UserStreaks", "DailyActivity", ledger, 2)
        settler = Settler(accounts, BookStore(dynamodb, "RuleBooks"))
        books = BookStore(self.api.engine.client("dynamodb"), "RuleBooks").look()
        return Rerater(accounts, settler, EngagementCache(""), books, FIRST, "test")

    def rate(self, dynamodb: Any = None) -> None:
        self.rerater(dynamodb).rerate(self.user, self.now)

    def profile_read(self) -> Profile:
        return self.rerater().accounts.profile(self.user)

    def asked(self) -> Summary:
        return rerate(self.rerater(), [self.profile_read()], is_dry=True)


@pytest.fixture
def bureau(api: Site, user: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bureau]:
    monkeypatch.setattr(book_store, "FRESH_SECONDS", 0)
    forget()
    yield Bureau(api, user, monkeypatch)
    wipe(api)


def wipe(api: Site) -> None:
    dynamodb = api.engine.client("dynamodb")
    for each in dynamodb.scan(TableName="RuleBooks")["Items"]:
        dynamodb.delete_item(TableName="RuleBooks", Key={name: each[name] for name in ("book", "version")})
    forget()


def test_the_past_is_refused_unless_it_is_asked_for(bureau: Bureau) -> None:
    past = BEGIN - DAY
    status, told = bureau.publish_since(past, bureau.book())
    assert (status, told["error"]["code"]) == (422, "invalid_field")
    assert "rerate" in str(told)
    status, told = bureau.publish_since(past, bureau.book(), rerate=True)
    assert status == 201, told


@pytest.mark.parametrize("change", ["missing", "passive"])
def test_nobodys_streak_is_judged_anew(bureau: Bureau, change: str) -> None:
    book = bureau.book()
    if change == "missing":
        del book["event_types"]["CHECK_IN"]
    else:
        book["event_types"]["CHECK_IN"]["keeps_streak"] = False
    status, told = bureau.publish_since(BEGIN - DAY, book, rerate=True)
    assert status == 422
    assert "CHECK_IN" in str(told)


def test_who_gains_gets_it_and_a_second_run_writes_nothing(bureau: Bureau) -> None:
    for _ in range(3):
        bureau.earn()
    bureau.now += DAY
    bureau.publish_past(bureau.book(points=15, cap=40))
    told = list(bureau.asked().lines(is_dry=True))
    assert told[1:3] == ["points: 10 would be given, 0 would be taken", "liability: 30 -> 40"]
    assert bureau.told()[0] == 30, "that was asked, and not done"
    bureau.rate()
    assert bureau.told() == (40, 0, 40)
    entries = bureau.entries()
    added = [each for each in entries if each["kind"] == "RERATE"]
    assert {(each["reason"], each["rules_version"], each["event_type"]) for each in added} == {
        ("test", 2, "LESSON_COMPLETED")
    }
    bureau.rate()
    assert bureau.entries() == entries
    assert bureau.asked().entries == 0
    bureau.earn(ago=DAY)
    assert bureau.told()[0] == 40, "the cap is the new one"
    assert bureau.api.profile(bureau.user)["total_bestie_points"] == 40


def test_what_was_spent_stays_spent_and_is_owed(bureau: Bureau) -> None:
    for _ in range(3):
        bureau.earn()
    bureau.spend(25)
    bureau.publish_past(bureau.book(points=5))
    assert list(bureau.asked().lines(is_dry=False))[3] == "owed by users: 0 -> 10"
    bureau.rate()
    assert bureau.told() == (-10, 10, 0)
    for _ in range(3):
        bureau.earn()
    assert bureau.told() == (5, 0, 5)


def test_the_book_says_when_they_expire_too(bureau: Bureau) -> None:
    bureau.earn()
    bureau.now += DAY
    bureau.earn()
    bureau.publish_past(bureau.book(expiry={"after_days": 2}))
    bureau.rate()
    assert [each["at"][:10] for each in bureau.balance()["expiring"]] == ["2027-02-01", "2027-02-02"]
    bureau.now += 2 * DAY
    assert bureau.told()[0] == 10, "the first ones are gone"
    bureau.check()


def test_the_command_rates_everybody(bureau: Bureau, capsys: pytest.CaptureFixture[str]) -> None:
    bureau.earn()
    bureau.publish_past(bureau.book(points=30))
    engine = bureau.api.engine
    stack = Stack("", "engine", "eu-west-1", {"LeaderboardShards": "2"}, {name: name for name in TABLES}, "")
    bureau.patch.setattr(Stack, "client", lambda _, service: engine.client(service))
    bureau.patch.setattr(AccountStore, "all_profiles", lambda _: [bureau.profile_read()])
    before = bureau.entries()
    typed(stack, "rules", "rerate", "--from", str(FIRST), "--dry-run")
    assert f"  {bureau.user}: +20, balance 10 -> 30\n" in capsys.readouterr().out
    assert bureau.entries() == before
    typed(stack, "rules", "rerate", "--from", str(FIRST))
    assert bureau.told()[0] == 30
    assert bureau.entries()[-1]["reason"] == "judged anew by version 2 of the rules"
    key = {"user_id": {"S": bureau.user}}
    stored = engine.client("dynamodb").get_item(TableName="UserStreaks", Key=key)["Item"]
    assert "leaderboard_partition" in stored, "operators' commands leave users in StreakLeaderboard"
    typed(stack, "rules", "rerate", "--from", str(FIRST))
    assert "0 changed, by 0 entries" in capsys.readouterr().out


def test_a_ledger_that_cannot_be_read_stops_nobody_else(bureau: Bureau) -> None:
    bureau.earn()
    bureau.publish_past(bureau.book(points=30))
    broken = replace(bureau.profile_read(), user_id=f"{bureau.user}-broken")
    dynamodb = bureau.api.engine.client("dynamodb")
    entry = {"account_id": broken.user_id, "created_at": "2027-01-30T09:00:00.000000Z", "kind": "GIFT"}
    dynamodb.put_item(TableName="RewardsLedger", Item=encode_item(entry))
    found = rerate(bureau.rerater(), [broken, bureau.profile_read()], is_dry=True)
    assert (found.gained, len(found.failed)) == (20, 1)
    assert f"  left as it is: {broken.user_id}: " in "\n".join(found.lines(is_dry=True))


def history(bureau: Bureau) -> None:
    """Dates of two weeks, some over their caps, one event reversed."""
    for number in range(9):
        for _ in range(number % 4):
            bureau.earn()
            bureau.earn("CHECK_IN")
        bureau.now += DAY
    bureau.reverse(min(each["event_id"] for each in bureau.entries() if each["kind"] == "EARN"))


def other_book(bureau: Bureau) -> dict[str, Any]:
    return bureau.book(points=12, cap=20, expiry={"end_of": "next_quarter"})


def replayed(bureau: Bureau, events: list[tuple[str, str]], at: datetime) -> dict[str, int]:
    """What the same events earn on an account that knows the version from the beginning."""
    fresh = Bureau(bureau.api, f"{bureau.user}-fresh", bureau.patch, at)
    for kind, occurred in events:
        fresh.earn(kind, at - datetime.fromisoformat(occurred))
    told = fresh.api.profile(fresh.user)
    return {name: told[name] for name in ("total_bestie_points", "balance")}


def counted(bureau: Bureau) -> list[tuple[str, str]]:
    entries = bureau.entries()
    gone = {each["event_id"] for each in entries if each["kind"] == "CLAWBACK"}
    return [
        (each["event_type"], each["event_id"].partition("#")[0])
        for each in entries
        if each["kind"] == "EARN" and each["event_id"] not in gone
    ]


def test_afterwards_it_is_as_a_replay_from_nothing(bureau: Bureau) -> None:
    history(bureau)
    bureau.publish_past(other_book(bureau))
    bureau.rate()
    told = bureau.api.profile(bureau.user)
    points = {name: told[name] for name in ("total_bestie_points", "balance")}
    assert points == replayed(bureau, counted(bureau), bureau.now)
    bureau.check()


@pytest.mark.parametrize(
    "how",
    ["dies before", "dies after", "answer lost", "throttled"],
)
def test_killed_at_any_call_and_run_again_it_is_the_same(bureau: Bureau, how: str) -> None:
    history(bureau)
    bureau.publish_past(other_book(bureau))
    asked = bureau.asked()
    must = asked.liability_after
    assert asked.entries > 20, "more than one transaction"
    real = bureau.api.engine.client("dynamodb")
    for number in range(1, 60):
        try:
            bureau.rate(Dying(real, number, how))
        except (Killed, Exception):
            pass
        else:
            break
    bureau.rate()
    assert bureau.profile_read().balance == must
    assert bureau.asked().entries == 0
    balance, debt, _ = bureau.told()
    assert (balance, debt) == (must, debt_of(must))
    bureau.check()
