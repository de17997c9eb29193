"""What is possible with points and freezes: redeem, hold, take a freeze, reverse (rules 2, 6 and 11).

The doors ask it of an account as it is, and what-if of one as it would have been.
"""

from dataclasses import replace
from datetime import date

from rules.book.book import FreezeRules
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote
from rules.engagement.streak import Cover, Streak, revocation_date, shown_streak


class FreezesHeldMax(Exception):
    """A user holds as many freezes as are allowed."""

    def __init__(self, held: int, most: int) -> None:
        super().__init__(f"{held} freezes are held, and {most} may be")
        self.held, self.most = held, most


class NotReversible(Exception):
    """An entry is no redemption that can be reversed."""

    def __init__(self, reason: str, *, is_reversed: bool) -> None:
        super().__init__(reason)
        self.is_reversed = is_reversed  # it was one, and is reversed already


def spendable(balance: int, reserved: int, *, is_capture: bool) -> int:
    """Return how many points of a balance a redemption or a hold may take, as the ledger checks it.

    reserved: the points of all open holds, which are in the balance. A capture takes what its hold reserves.
    If a clawback has left less than all holds reserve, those that are captured first are served.
    """
    return balance if is_capture else balance - reserved


def check_freeze(streak: Streak | None, cover: Cover, day: date, rules: FreezeRules) -> None:
    """Raise FreezesHeldMax if a user may hold no further freeze on a date.

    A freeze that an admin gives for a certain date has no maximum, so nobody asks.
    """
    as_of = max(day, streak.last) if streak else day
    held = shown_streak(streak, cover, as_of).freezes_available
    if held >= rules.held_max:
        raise FreezesHeldMax(held, rules.held_max)


def check_reversible(entry: Entry) -> None:
    """Raise NotReversible unless an entry is a redemption that was not reversed."""
    if entry.draft.kind is not EntryKind.REDEEM:
        reason = f"an entry of kind {entry.draft.kind} is not a redemption"
        raise NotReversible(reason, is_reversed=False)
    if entry.reversed_by:
        raise NotReversible("the redemption was reversed before", is_reversed=True)


def reversal_of(entry: Entry, streak: Streak | None, cover: Cover, today: date) -> Draft:
    """Return the entry that gives a redemption's points back, and revokes its freeze if it took one."""
    draft = Draft(
        EntryKind.REVERSE,
        -entry.draft.points,
        reverses=entry.created_at,
        reward_id=entry.draft.reward_id,
        held_at=entry.draft.held_at,
        brand=entry.draft.brand,
    )
    if entry.draft.freeze is FreezeNote.GRANTED and entry.draft.freeze_date:
        granted = date.fromisoformat(entry.draft.freeze_date)
        revoked_on = revocation_date(streak, cover, granted, today)
        return replace(draft, freeze=FreezeNote.REVOKED, freeze_date=revoked_on.isoformat())
    return draft
