"""A standby (rule 23): what must be there before it takes over a change, how its ledger grows by the writer's
own entries, and what becomes of what a new writer never saw.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from rules.days import stamp
from rules.engagement.ledger import EARNING, Entry, EntryKind, FreezeNote, Head, unfold_carrier
from rules.engagement.seals import DIGEST_BYTES, ZERO, content_of, link_hash
from rules.regions.changes import Image

NO_HEAD = Head("", -1, 0)
# Claims and events expire after 90 days, and an event may wait for 30 of them before it is applied. What is
# older than this is no longer asked for: its change would have been under way for longer than any is.
ASKED_FOR = timedelta(days=45)
# What a person sets, of a profile.
SETTINGS = ("timezone_chosen", "pauses", "alias", "holds")


class LedgerContradiction(ValueError):
    """An entry does not follow from those before it: a fault, that no waiting mends. The text says which."""


@dataclass(frozen=True, slots=True)
class FollowedEntries:
    """What to write."""

    carrier: Entry | None  # the new head, or None if the ledger has it
    carried: Sequence[Entry] = ()  # entries that it names


def follow_entry(head: Head | None, entry: Entry) -> FollowedEntries | None:
    """Return what an entry of the writer becomes on a standby's head; None: it must wait for others.

    entry: as the writer has stored it; one with `folded` brings along those that it names. How far into the
    writer's stream events are applied is left out: the standby has a stream of its own, so it looks into its
    ledger instead. Raises LedgerContradiction where balance or hash is not what the entries lead to.
    """
    on = head or NO_HEAD
    entries = [*unfold_carrier(entry), entry]
    if entry.seq <= on.seq:
        return FollowedEntries(None, entries[:-1])
    new = [each for each in entries if each.seq > on.seq]
    if new[0].seq != on.seq + 1:
        return None
    balance = on.balance + sum(each.draft.points for each in new)
    if balance != entry.balance:
        raise LedgerContradiction(
            f"seq {entry.seq}: balance {entry.balance}, and the points lead to {balance}"
        )
    chain = _chain(on, new)
    if entry.chain and chain and entry.chain != chain:
        raise LedgerContradiction(f"seq {entry.seq}: its hash is not that of its predecessors")
    followed = replace(entry, active=True, reversed_by=None, applied_through="", chain=entry.chain or chain)
    return FollowedEntries(followed, entries[:-1])


def _chain(on: Head, new: Sequence[Entry]) -> bytes:
    """Return the last entry's hash and salt; b"" if its chain has not begun."""
    before, salt = on.chain[:DIGEST_BYTES], on.chain[DIGEST_BYTES:]
    for each in new:
        if each.begins:
            before, salt = ZERO, each.begins
        if salt:
            before = link_hash(before, content_of(each, salt))
    return before + salt if salt else b""


def days_needed(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the dates that entries count for, each with the place of the newest entry that its day counts
    in.
    """
    return {
        each.draft.activity_date: each.created_at
        for each in entries
        if each.draft.kind in EARNING and each.draft.activity_date
    }


# What must be there before a change may be taken over (rule 23).
#
# The writer writes one after the other, and a standby takes them over in the same order:
#
#     an event's claim -> the event -> its ledger entry -> its day -> the profile
#                                      a command's entry -> the command's claim


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


# What a region wrote that the new writer never saw, and what becomes of it (rule 23).
#
# Both ledgers of an account have one beginning. What the old writer's has beyond it is *unseen*. Its points
# were promised to somebody, so nothing of it is thrown away: it is applied by the rules that hold for
# everybody, or it is listed by name.


class UnseenFate(StrEnum):
    """What becomes of an unseen entry."""

    EVENT = "event"  # its event goes to the new writer, as a late one
    REDEEM = "redeem"  # is asked for again, under its key
    REVERSE = "reverse"  # is asked for again
    FOLLOWS = "follows"  # from events and rules: the new writer writes its own
    UNDONE = "undone"  # it and its reversal are both unseen: nothing is left of it
    LISTED = "listed"  # somebody must decide


@dataclass(frozen=True, slots=True)
class UnseenEntry:
    """An unseen entry."""

    entry: Entry
    fate: UnseenFate
    key: str = ""  # of the command that wrote it, "" if it had none
    reason: str = ""  # why it is listed


def common_length(theirs: Sequence[Entry], ours: Sequence[Entry]) -> int:
    """Return how many entries two ledgers of an account have in common. Both: all entries, oldest first."""
    count = 0
    for one, other in zip(theirs, ours, strict=False):
        if (one.created_at, one.seq, one.balance, one.draft) != (
            *(other.created_at, other.seq, other.balance, other.draft),
        ):
            break
        count += 1
    return count


def unseen_entries(
    theirs: Sequence[Entry], ours: Sequence[Entry], keys: Mapping[str, str]
) -> list[UnseenEntry]:
    """Return what the old writer's ledger has beyond the new one's, oldest first. keys: place -> key."""
    beyond = theirs[common_length(theirs, ours) :]
    places = {each.created_at for each in beyond}
    reversals = [each.draft.reverses for each in beyond if each.draft.kind is EntryKind.REVERSE]
    undone = {each for each in reversals if each in places}
    return [_unseen_entry(each, places, undone, keys.get(each.created_at, "")) for each in beyond]


def _unseen_entry(  # noqa: PLR0911 (a kind each)
    entry: Entry, places: set[str], undone: set[str], key: str
) -> UnseenEntry:
    draft = entry.draft
    if draft.kind is EntryKind.EARN:
        return UnseenEntry(entry, UnseenFate.EVENT)
    if draft.kind in (EntryKind.OPEN, EntryKind.EXPIRE, EntryKind.RERATE):
        return UnseenEntry(entry, UnseenFate.FOLLOWS)
    if draft.freeze in (FreezeNote.SPENT, FreezeNote.REFUNDED):
        return UnseenEntry(entry, UnseenFate.FOLLOWS)
    if entry.created_at in undone or (draft.kind is EntryKind.REVERSE and draft.reverses in places):
        return UnseenEntry(entry, UnseenFate.UNDONE, key)
    if draft.kind is EntryKind.REVERSE and draft.reverses:
        return UnseenEntry(entry, UnseenFate.REVERSE, key)
    if draft.kind is EntryKind.REDEEM and draft.freeze is FreezeNote.GRANTED:
        return UnseenEntry(
            entry, UnseenFate.LISTED, key, "a freeze: give it again, unless the user has taken another"
        )
    if draft.kind is EntryKind.REDEEM and draft.held_at:
        return UnseenEntry(
            entry, UnseenFate.LISTED, key, "a captured hold: capture it again, or redeem the points"
        )
    if draft.kind is EntryKind.REDEEM and draft.points:
        return UnseenEntry(entry, UnseenFate.REDEEM, key)
    return UnseenEntry(entry, UnseenFate.LISTED, key, f"{draft.kind}: to be declared again")


def settings_unseen(theirs: Mapping[str, object], ours: Mapping[str, object]) -> list[str]:
    """Return which settings of a profile differ. Both: attributes; {} for no profile."""
    return [name for name in SETTINGS if theirs.get(name) != ours.get(name)]


class UnseenPolicy(StrEnum):
    """What is done about items of a table that the old writer has and the new one has not."""

    CARRIED = "carried"  # put: they never change, and whoever reads them does what is to be done
    LISTED = "listed"
    DERIVED = "derived"  # the new writer has made its own, or will


UNSEEN_POLICIES: Mapping[str, UnseenPolicy] = {
    **dict.fromkeys(("Erasures", "IdempotencyKeys", "BPEvents", "Event"), UnseenPolicy.CARRIED),
    **dict.fromkeys(("Rewards", "RuleBooks", "Questions", "Responses", "Subscriptions"), UnseenPolicy.LISTED),
    **dict.fromkeys(("WebhookEndpoints", "Notifications"), UnseenPolicy.LISTED),
    **dict.fromkeys(("DailyActivity", "Memory", "Feature", "GroupEvents", "UserStats"), UnseenPolicy.DERIVED),
}


def tables_in_order(tables: Iterable[str]) -> list[str]:
    """Return tables of UNSEEN_POLICIES as they are looked at: erasures first, claims before events."""
    return sorted(tables, key=list(UNSEEN_POLICIES).index)
