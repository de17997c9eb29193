"""Schedules in which what was earned is taken back, rewards of the book are sold, and the past is judged anew."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import ingest.engagement.users_api
from adapters.book_store import BookStore, Publication, PublicationConflict
from adapters.engagement.account_store import AccountContended, AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import query_all
from ingest.web.rate_limit import RateLimit
from local.rerate import Rerater
from rules.days import unstamp
from tests.faults.spenders import Spenders
from tests.support.engine import Engine

FIRST = date(2026, 3, 9)  # a Monday before all events
TWICE = 2
LATE_FAULTS = 6  # of the night after the last publication
STOCK, SCARCE = 0, 1  # the first one grows by one with each version
LIMIT = 2


class Merchants(Spenders):
    """One schedule whose book sells rewards: of few pieces, of few a user, of both, and one that all want at once."""

    refusals = ("hold_ended", "insufficient_balance")
    another_body = "2026-03-18T00:00:00+00:00"  # the plain reading knows dates of UTC only

    def __init__(self, engine: Engine, seed: int, patch: Any) -> None:
        self.sold: dict[tuple[str, str], set[str]] = {}
        self.clawed: dict[tuple[str, str], set[str]] = {}
        self.chosen: dict[tuple[str, int], str] = {}
        self.rated: dict[str, str] = {}  # the newest entry when a user was last judged anew
        self.stock = STOCK
        super().__init__(engine, seed, patch)
        self.report.is_judged_anew = True

    def _wire(self, patch: Any) -> None:
        # It counts plain users before their body is read; a Lambda process has one request at a time, this has three.
        patch.setattr(RateLimit, "check", lambda *_: None)
        super()._wire(patch)

    @property
    def rewards(self) -> dict[str, dict[str, int]]:
        """What is sold, under names that no other schedule uses."""
        own = self.users[0].removesuffix("-u0")
        terms = {"few": {"stock": self.stock}, "mine": {"limit_per_user": LIMIT}}
        terms["both"] = {"stock": SCARCE, "limit_per_user": 1}
        terms["last"] = {"stock": SCARCE}
        return {f"{own}-{name}": each for name, each in terms.items()}

    def _book(self) -> dict[str, Any]:
        price: dict[str, Any] = {"price_points": self.chance.choice((2, 5, 9)), "brand": "acme"}
        return super()._book() | {"rewards": {name: price | each for name, each in self.rewards.items()}}

    def _publish(self, dynamodb: Any, effective: datetime) -> bool:
        """Publish a version that is in force since the midnight before: so it judges the past anew."""
        self.stock += 1  # It is never lowered, whoever publishes first.
        store = BookStore(dynamodb, "RuleBooks")
        store.look()
        midnight = datetime.combine(effective.date(), time(), UTC)
        try:
            store.publish(Publication(self._book(), midnight, effective, "desk", ""))
        except PublicationConflict:
            return False
        return True

    def workload(self) -> None:
        """Everything that points as money do; and each user buys, and loses events."""
        super().workload()
        for user in self.users:
            bought = [name for name in sorted(self.rewards) if not name.endswith("-last")]
            for number, name in enumerate(self.chance.choices(bought, k=4)):
                key = f"w{number}"
                self.tasks += [lambda u=user, n=name, k=key: self._buy(u, n, k)] * self.chance.choice((1, 2))  # type: ignore[misc]
            self.tasks += [lambda u=user: self._claw(u, 0, "c0")] * TWICE  # type: ignore[misc]
            self.tasks += [lambda u=user, n=n: self._claw(u, n, f"c{n}") for n in (1, 2)]  # type: ignore[misc]
            self.tasks.append(lambda u=user: self._claw(u, 0, "again"))  # type: ignore[misc]
            self.tasks.append(lambda u=user: self._rate(u))  # type: ignore[misc]
        back = self.now - timedelta(days=self.chance.randrange(1, 6))
        self.tasks.append(lambda: self._publish(self.faults, back))
        self.chance.shuffle(self.tasks)

    def run(self) -> None:
        """Run all, and a rush for one piece; then a night in which all are rated twice at once, while more is taken back."""
        self.workload()
        self._drain()
        if len(self.users) > 1:
            (last,) = (name for name in self.rewards if name.endswith("-last"))
            self.tasks += [lambda u=user: self._buy(u, last, "last") for user in self.users]  # type: ignore[misc]
            self._drain()
        self.faults.left = LATE_FAULTS
        for user in self.users:
            self.tasks += [lambda u=user: self._rate(u)] * TWICE  # type: ignore[misc]
            self.tasks.append(lambda u=user: self._claw(u, 3, "c3"))  # type: ignore[misc]
            late = self._body(user, 99)
            self.tasks.append(lambda body=late: self._post([body]))  # type: ignore[misc]
        self._drain()
        # What a version of before had judged may have waited in the stream: operators rate again.
        self.tasks += [lambda u=user: self._rate(u) for user in self.users if self._came_after(user)]  # type: ignore[misc]
        self._drain()
        self.rest()

    def _came_after(self, user: str) -> bool:
        """Whether an event was applied after the last rerate that another version judges now."""
        books = BookStore(self.real, "RuleBooks").look()
        later = [
            each
            for each in self._entries(user)
            if each["kind"] == "EARN" and each["created_at"] > self.rated.get(user, "")
        ]
        for each in later:
            judged_by, occurred = each.get("rules_version"), unstamp(each["event_id"].partition("#")[0])
            now = books.rejudging(judged_by, each["event_type"], occurred)
            if now and now.number != judged_by:
                return True
        return False

    # ---- what is taken back -------------------------------------------------------------------------

    def _claw(self, user: str, number: int, key: str) -> bool:
        """Reverse one of a user's events; the same for the same number."""
        if (user, number) not in self.chosen:
            earned = [each["event_id"] for each in self._entries(user) if each["kind"] == "EARN"]
            if not earned:
                return False  # later: something is on its way
            self.chosen[user, number] = self.chance.choice(earned)
        event = self.chosen[user, number]
        status, told = self._ask(
            user, "/clawbacks", {"event_id": event, "reason": "refunded", "idempotency_key": key}
        )
        if status == 201:
            self.clawed.setdefault((user, event), set()).add(told["entry_id"])
        return status in (201, 409)

    def _entries(self, user: str) -> list[dict[str, Any]]:
        found = query_all(
            self.real,
            TableName="RewardsLedger",
            KeyConditionExpression="account_id = :user",
            ExpressionAttributeValues=encode_item({":user": user}),
            ConsistentRead=True,
        )
        return [decode_item(each) for each in found]

    def _rate(self, user: str) -> bool:
        ledger = LedgerStore(self.faults, "RewardsLedger")
        accounts = AccountStore(self.faults, "UserStreaks", "DailyActivity", ledger, 1)
        books = BookStore(self.faults, "RuleBooks")
        settler, cache = Settler(accounts, books), EngagementCache("")
        rerater = Rerater(accounts, settler, cache, books.look(), FIRST, "judged anew")
        try:
            rerater.rerate(user, self._tick())
        except AccountContended:
            return False
        self.rated[user] = self._entries(user)[-1]["created_at"]
        return True

    # ---- rewards ------------------------------------------------------------------------------------

    def _buy(self, user: str, reward: str, key: str) -> bool:
        """The user buys; then whoever ships it may say what became of it, more than once."""
        body = {"reward": reward, "idempotency_key": key}
        path = f"/v1/users/{user}/redemptions"
        status, told = self._call(ingest.engagement.users_api.handler, "POST", path, body, {"sub": user})
        if status == 201:
            self.sold.setdefault((user, key), set()).add(told["entry_id"])
            ends = [
                lambda what=what: self._tell(user, told["entry_id"], what)
                for what in ("failed", "failed", "fulfilled", "reversal", "reversal")
            ]
            self.tasks += self.chance.sample(ends, k=self.chance.randrange(0, 4))
        return status in (201, 409)

    def _tell(self, user: str, entry: str, what: str) -> bool:
        status, _ = self._ask(user, f"/redemptions/{entry}/{what}", {})
        return status in (200, 201, 409)
