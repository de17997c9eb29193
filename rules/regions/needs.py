"""What must be there before a change may be taken over (rule 23).

The writer writes one after the other, and a standby takes them over in the same order:

    an event's claim -> the event -> its ledger entry -> its day -> the profile
                                     a command's entry -> the command's claim
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from rules.days import stamp
from rules.engagement.ledger import Entry, EntryKind
from rules.regions.changes import Image

# Claims and events expire after 90 days, and an event may wait for 30 of them before it is applied. What is
# older than this is no longer asked for: its change would have been under way for longer than any is.
ASKED_FOR = timedelta(days=45)


def claim_needed(event: Image, now: datetime) -> str:
    """Return the key whose claim must be there before an event; "" for none.

    Without the claim, a client that asks the new writer again would get a second event for its key.
    """
    return _text(event, "idempotency_key") if _text(event, "created_at") > stamp(now - ASKED_FOR) else ""


def events_needed(entries: Iterable[Entry], now: datetime) -> set[str]:
    """Return the ids of the events that must be there before some entries.

    An event is new to a processor if it arrived after the newest entry. So an event that came a second time,
    after its entry, would earn twice.
    """
    since = stamp(now - ASKED_FOR)
    return {
        each.draft.event_id
        for each in entries
        if each.draft.kind is EntryKind.EARN and each.draft.event_id and each.created_at > since
    }


def place_needed(table: str, image: Image) -> str:
    """Return the place in the owner's ledger that an item speaks of; "" for none.

    An item that is there before that entry would say something that the ledger does not know: a profile a
    balance, a claim an answer, a redemption that was paid.
    """
    if table in ("UserStreaks", "DailyActivity"):
        return _text(image, "ledger_head")
    if table == "IdempotencyKeys":
        target = _text(image, "target")
        return target if _is_place(target) else ""
    if table == "Rewards" and "fulfilment" in image:
        return _text(image, "place")
    return ""


def _text(image: Image, name: str) -> str:
    return str(image.get(name, {}).get("S", ""))


def _is_place(target: str) -> bool:
    """Whether a claim's target is an entry's place; that of an event has an id behind its time."""
    try:
        return "#" not in target and bool(datetime.fromisoformat(target))
    except ValueError:
        return False
