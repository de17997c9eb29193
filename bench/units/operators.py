"""Measures what operators do to single accounts: erase a person, forgive an outage, move a user in."""

from typing import Any

from adapters.engagement.account_store import AccountStore
from adapters.engagement.achievements import AchievementStore
from adapters.engagement.amnesty import AmnestyApplier
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.aws import client
from bench.counting.desk import Desk, PathCosts
from bench.counting.requests import http
from bench.units.engagement import DAY, HOUR, SHARDS, USER_ID, apply_events
from local.move_in.positions import PositionImporter
from rules.engagement.account_state import Amnesties, Amnesty
from rules.engagement.opening_positions import OpeningPosition

# Commands on the operator's machine, which are no functions: `streakline amnesty apply`, `events import`.
AMNESTY_COMMAND, IMPORT_COMMAND = "amnesty", "import"
EVENT_COUNTS = (1, 20)  # events of an erased person; their difference shows what one more costs


def operators_paths(desk: Desk) -> PathCosts:
    """Yield erasures in all tables, of persons with events of one date; an amnesty; an opening position."""
    for number, count in enumerate(EVENT_COUNTS):
        user = USER_ID.format(2000 + number)
        apply_events(desk, user, count)
        desk.tick(DAY)
        desk.start_path()
        request = http("DELETE", f"/v1/users/{user}", None, sub=user)
        assert desk.call("PrivacyApiFunction", request)["statusCode"] == 202
        desk.tick(HOUR)
        # Nobody has to be waited for here, so both sweeps are in one run. The rest is the night's.
        assert desk.call("ErasureFunction", {}) == {"finished": 0, "open": number + 1, "late": 0}
        yield f"erase.{count}", desk.take_costs()
    yield from _amnesty_path(desk)
    yield from _import_path(desk)


def _amnesty_path(desk: Desk) -> PathCosts:
    """Yield an account that gets its streak back."""
    user = USER_ID.format(2010)
    for day in range(5):
        if day not in (2, 3):
            apply_events(desk, user, 1)
        desk.tick(DAY)
    outage = desk.now - 3 * DAY
    amnesties = Amnesties((Amnesty(1, outage, outage + DAY, reason="the API was away"),), frozenset({1}))
    desk.start_path()
    outcome = AmnestyApplier(_accounts(SHARDS), EngagementCache("")).forgive(user, amnesties, desk.tick())
    assert outcome.is_changed, outcome
    desk.add_metered_cost(AMNESTY_COMMAND)
    yield "forgive", desk.take_costs()


def _import_path(desk: Desk) -> PathCosts:
    """Yield a position with one lot of points and two freezes that moves in."""
    desk.start_path()
    achievements = AchievementStore(client("dynamodb"), "DailyActivity")
    importer = PositionImporter(_accounts(0), EngagementCache(""), achievements)
    today = desk.now.date()
    position = OpeningPosition(
        USER_ID.format(900),
        as_of=today,
        last_date=today,
        streak=12,
        longest=40,
        active_days=200,
        lots={None: 250},
        freezes=2,
    )
    assert importer.move(position, desk.tick())
    desk.add_metered_cost(IMPORT_COMMAND)
    yield "position.lots.1", desk.take_costs()


def _accounts(leaderboard_shards: int) -> AccountStore:
    """Return a store with a client of its own, so that nothing is cached from another path."""
    dynamodb: Any = client("dynamodb")
    ledger = LedgerStore(dynamodb, "RewardsLedger")
    return AccountStore(dynamodb, "UserStreaks", "DailyActivity", ledger, leaderboard_shards)
