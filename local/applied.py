"""Waits on AWS until events are in their accounts. Tables tell it, as nobody sees how far the consumers are.

An event is applied if, and only if, a ledger entry names it. It is shown once the profile has counted that.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import encode_item
from adapters.platform.tables import get_all
from local.cloud.patience import STALLED_SECONDS_MAX, Patience
from local.event_sources import Body
from local.stack import Stack
from rules.days import parse_moment, stamp
from rules.engagement.events import event_id

READERS = 8
PAUSE_SECONDS = 2.0
HELP = "`streakline status` and `streakline queue list` say what is wrong"
# This machine's clock and AWS's may differ by so much.
SKEW = timedelta(minutes=5)


def wait_until_applied(
    stack: Stack, events: Iterable[Body], sent_from: float, stalled_max: float = STALLED_SECONDS_MAX
) -> None:
    """Wait until profiles show all events that were new. sent_from: when the first was sent (epoch seconds).

    Raises RuntimeError when nothing has happened for `stalled_max` seconds.
    """
    waiting, patience = ids_by_user(events), Patience(stalled_max)
    count = sum(map(len, waiting.values()))
    since = stamp(datetime.fromtimestamp(sent_from, UTC) - SKEW)
    while waiting := _still_waiting(stack, waiting, since):
        left = sum(map(len, waiting.values()))
        patience.wait(f"some of {count} events are in no account: {HELP}", f"{left} are not", PAUSE_SECONDS)


def _still_waiting(stack: Stack, waiting: Mapping[str, set[str]], since: str) -> dict[str, set[str]]:
    with ThreadPoolExecutor(READERS) as pool:
        left = pool.map(lambda user: (user, _missing(stack, user, waiting[user], since)), waiting)
        return {user: ids for user, ids in left if ids}


def _missing(stack: Stack, user: str, ids: set[str], since: str) -> set[str]:
    """Return which of a user's events are not shown yet. An event that was stored before counts as shown."""
    dynamodb = stack.client("dynamodb")
    entries, _ = LedgerStore(dynamodb, stack.tables["RewardsLedger"]).after(user, since)
    places = {str(each.draft.event_id): each.created_at for each in entries if each.draft.event_id in ids}
    missing = ids - places.keys()
    if missing:
        keys = [{"user_id": user, "event_id": each} for each in sorted(missing)]
        stored = get_all(dynamodb, stack.tables["BPEvents"], keys)
        missing -= {each["event_id"]["S"] for each in stored if each["created_at"]["S"] < since}
    return missing | _unseen(stack, user, places)


def _unseen(stack: Stack, user: str, places: Mapping[str, str]) -> set[str]:
    """Return the events whose entries the profile has not counted yet."""
    if not places:
        return set()
    answer = stack.client("dynamodb").get_item(
        TableName=stack.tables["UserStreaks"], Key=encode_item({"user_id": user}), ConsistentRead=True
    )
    head = answer.get("Item", {}).get("ledger_head", {}).get("S", "")
    return {each for each, place in places.items() if place > head}


def ids_by_user(events: Iterable[Body]) -> dict[str, set[str]]:
    """Return the ids under which events are stored, by user."""
    found: dict[str, set[str]] = {}
    for each in events:
        user = each["user_id"]
        found.setdefault(user, set()).add(
            event_id(user, each["idempotency_key"], parse_moment(each["occurred_at"]))
        )
    return found
