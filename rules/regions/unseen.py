"""What a region wrote that the new writer never saw, and what becomes of it (rule 23).

Both ledgers of an account have one beginning. What the old writer's has beyond it is *unseen*. Its points
were promised to somebody, so nothing of it is thrown away: it is applied by the rules that hold for
everybody, or it is listed by name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rules.engagement.ledger import Entry, EntryKind, FreezeNote


class UnseenFate(StrEnum):
    """What becomes of an unseen entry."""

    EVENT = "event"  # its event goes to the new writer, as a late one
    REDEEM = "redeem"  # is asked for again, under its key
    REVERSE = "reverse"  # is asked for again
    FOLLOWS = "follows"  # from events and rules: the new writer writes its own
    UNDONE = "undone"  # it and its reversal are both unseen: nothing is left of it
    LISTED = "listed"  # somebody must decide


@dataclass(frozen=True, slots=True)
class Unseen:
    """An unseen entry. key: of the command that wrote it, "" if it had none. reason: why it is listed."""

    entry: Entry
    fate: UnseenFate
    key: str = ""
    reason: str = ""


def common(theirs: Sequence[Entry], ours: Sequence[Entry]) -> int:
    """Return how many entries two ledgers of an account have in common. Both: all entries, oldest first."""
    count = 0
    for one, other in zip(theirs, ours, strict=False):
        if (one.created_at, one.seq, one.balance, one.draft) != (
            *(other.created_at, other.seq, other.balance, other.draft),
        ):
            break
        count += 1
    return count


def unseen(theirs: Sequence[Entry], ours: Sequence[Entry], keys: Mapping[str, str]) -> list[Unseen]:
    """Return what the old writer's ledger has beyond the new one's, oldest first. keys: place -> key."""
    beyond = theirs[common(theirs, ours) :]
    places = {each.created_at for each in beyond}
    reversals = [each.draft.reverses for each in beyond if each.draft.kind is EntryKind.REVERSE]
    undone = {each for each in reversals if each in places}
    return [_judged(each, places, undone, keys.get(each.created_at, "")) for each in beyond]


def _judged(  # noqa: PLR0911 (a kind each)
    entry: Entry, places: set[str], undone: set[str], key: str
) -> Unseen:
    draft = entry.draft
    if draft.kind is EntryKind.EARN:
        return Unseen(entry, UnseenFate.EVENT)
    if draft.kind in (EntryKind.OPEN, EntryKind.EXPIRE, EntryKind.RERATE):
        return Unseen(entry, UnseenFate.FOLLOWS)
    if draft.freeze in (FreezeNote.SPENT, FreezeNote.REFUNDED):
        return Unseen(entry, UnseenFate.FOLLOWS)
    if entry.created_at in undone or (draft.kind is EntryKind.REVERSE and draft.reverses in places):
        return Unseen(entry, UnseenFate.UNDONE, key)
    if draft.kind is EntryKind.REVERSE and draft.reverses:
        return Unseen(entry, UnseenFate.REVERSE, key)
    if draft.kind is EntryKind.REDEEM and draft.freeze is FreezeNote.GRANTED:
        return Unseen(
            entry, UnseenFate.LISTED, key, "a freeze: give it again, unless the user has taken another"
        )
    if draft.kind is EntryKind.REDEEM and draft.held_at:
        return Unseen(
            entry, UnseenFate.LISTED, key, "a captured hold: capture it again, or redeem the points"
        )
    if draft.kind is EntryKind.REDEEM and draft.points:
        return Unseen(entry, UnseenFate.REDEEM, key)
    return Unseen(entry, UnseenFate.LISTED, key, f"{draft.kind}: to be declared again")


# What a person sets, of a profile.
SETTINGS = ("timezone_chosen", "pauses", "alias", "holds")


def settings_unseen(theirs: Mapping[str, object], ours: Mapping[str, object]) -> list[str]:
    """Return which settings of a profile differ. Both: attributes; {} for no profile."""
    return [name for name in SETTINGS if theirs.get(name) != ours.get(name)]


class UnseenWay(StrEnum):
    """What is done about items of a table that the old writer has and the new one has not."""

    CARRIED = "carried"  # put: they never change, and whoever reads them does what is to be done
    LISTED = "listed"
    DERIVED = "derived"  # the new writer has made its own, or will


WAYS: Mapping[str, UnseenWay] = {
    **dict.fromkeys(("Erasures", "IdempotencyKeys", "BPEvents", "Event"), UnseenWay.CARRIED),
    **dict.fromkeys(("Rewards", "RuleBooks", "Questions", "Responses", "Subscriptions"), UnseenWay.LISTED),
    **dict.fromkeys(("WebhookEndpoints", "Notifications"), UnseenWay.LISTED),
    **dict.fromkeys(("DailyActivity", "Memory", "Feature", "GroupEvents", "UserStats"), UnseenWay.DERIVED),
}


def in_order(tables: Iterable[str]) -> list[str]:
    """Return tables in the order in which they are looked at: erasures first, claims before their events."""
    order = list(WAYS)
    return sorted(tables, key=lambda each: order.index(each) if each in WAYS else -1)
