"""What operators do to single accounts: a person is forgotten, an outage is forgiven."""

from collections.abc import Iterator
from typing import Any

from adapters.engagement.account_store import AccountStore
from adapters.engagement.amnesty import AmnestyApplier
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.aws import client
from bench.counting.desk import Desk, Units
from bench.counting.requests import http
from bench.units.engagement import DAY, HOUR, SHARDS, USER_ID, apply
from rules.engagement.amnesty import Amnesties, Amnesty

Measured = Iterator[tuple[str, dict[str, Units]]]
OPERATOR = "amnesty"  # no function: `streakline amnesty apply` on the operator's machine
SIZES = (1, 20)  # events of a person; what one more costs is between them


def operators_paths(desk: Desk) -> Measured:
    """Yield erasures in all tables, of persons with events of one date; then an amnesty for two accounts."""
    for number, count in enumerate(SIZES):
        user = USER_ID.format(2000 + number)
        apply(desk, user, count)
        desk.tick(DAY)
        desk.forget()
        asked = http("DELETE", f"/v1/users/{user}", None, sub=user)
        assert desk.call("PrivacyApiFunction", asked)["statusCode"] == 202
        desk.tick(HOUR)
        # Nobody has to be waited for here, so both sweeps are in one run. The rest is the night's.
        assert desk.call("ErasureFunction", {}) == {"finished": 0, "open": number + 1, "late": 0}
        yield f"erase.{count}", desk.take()
    yield from _forgiven(desk)


def _forgiven(desk: Desk) -> Measured:
    """Yield an account that gets its streak back, and one that lost nothing and is only looked at."""
    lost, kept = USER_ID.format(2010), USER_ID.format(2011)
    for day in range(5):
        active = (kept,) if day in (2, 3) else (lost, kept)
        for user in active:
            apply(desk, user, 1)
        desk.tick(DAY)
    since = desk.now - 3 * DAY
    amnesty = Amnesty(1, since, since + DAY, reason="the API was away")
    for name, user in (("forgive", lost), ("forgive.nothing", kept)):
        desk.forget()
        desk.meter.take()
        dynamodb: Any = client("dynamodb")
        ledger = LedgerStore(dynamodb, "RewardsLedger")
        accounts = AccountStore(dynamodb, "UserStreaks", "DailyActivity", ledger, SHARDS)
        named = Amnesties((amnesty,), frozenset({1}))
        told = AmnestyApplier(accounts, EngagementCache("")).forgive(user, named, desk.tick())
        assert told.is_changed is (user == lost), told
        desk.meter.take_changes()
        desk.note(OPERATOR, desk.meter.take())
        yield name, desk.take()
