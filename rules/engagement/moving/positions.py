"""Opening positions: what another system says of a user on a date (docs/rules.md, rule 20).

The streak becomes the state that the fold begins with (Cover.opening). Points become entries, one for each
lot; freezes become grants. So nothing else needs to know that a user has moved in.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time

from rules.days import DAY, stamp
from rules.engagement.absorbing import absorb, absorb_days, journalled_freezes
from rules.engagement.account_state import Account, Decision, NeedsHistory
from rules.engagement.accounts import freeze_drafts, touch
from rules.engagement.events import LATE_MAX, NAMESPACE, InputRefused
from rules.engagement.ledger import Draft, EntryKind, FreezeNote, append
from rules.engagement.streak.active_dates import active_dates
from rules.engagement.streak.checkpoints import Checkpoint
from rules.engagement.streaks import fold

OPENING_TYPE = "OPENING_BALANCE"
LASTING = "lasting"  # the lot of points that never expire
# Events that came before the position are believed to be in it if they may have come late.
BESIDE = LATE_MAX + 2 * DAY


@dataclass(frozen=True, slots=True)
class OpeningPosition:
    """What a user brings along.

    as_of: the date that it is told of. streak: how long it was at `last_date`, 0 for one that had ended by
    then. longest, active_days: with that streak. lots: points by the date on which they expire; None: never.
    freezes: that are left. achievements: instants by name.
    """

    user_id: str
    as_of: date
    last_date: date | None = None
    streak: int = 0
    longest: int = 0
    active_days: int = 0
    lots: Mapping[date | None, int] = field(default_factory=dict)
    freezes: int = 0
    achievements: Mapping[str, str] = field(default_factory=dict)

    @property
    def balance(self) -> int:
        """All points that are brought along."""
        return sum(self.lots.values())

    @property
    def opening(self) -> Checkpoint:
        """What the fold begins with; without an active date it has a length of 0, and is a mark alone."""
        if self.last_date is None:
            return Checkpoint(self.as_of, 0, 0, 0, 0)
        length = max(1, self.streak)
        longest = max(length, self.longest)
        return Checkpoint(self.last_date, length, longest, max(longest, self.active_days), 0)

    def drafts(self) -> list[Draft]:
        """Return the entries that bring points and freezes into the ledger."""
        day = self.as_of.isoformat()
        lots = [
            Draft(
                EntryKind.EARN,
                points,
                event_id=self.lot_id(on),
                event_type=OPENING_TYPE,
                activity_date=day,
                is_passive=True,
                expires_on=on.isoformat() if on else None,
            )
            for on, points in sorted(self.lots.items(), key=lambda each: each[0] or date.max)
            if points
        ]
        granted = Draft(EntryKind.ADJUST, 0, freeze=FreezeNote.GRANTED, freeze_date=day)
        return [*lots, *([granted] * self.freezes)]

    def lot_id(self, on: date | None) -> str:
        """Return the id of the entry that brings a lot along: always the same one."""
        told = f"{self.user_id}\x00opening\x00{on.isoformat() if on else LASTING}"
        at = datetime.combine(self.as_of, time(), UTC)
        return f"{stamp(at)}#{uuid.uuid5(NAMESPACE, told)}"


def is_moved_in(account: Account, position: OpeningPosition) -> bool:
    """Whether an account has this position. Raises InputRefused if it has another one."""
    have = account.profile.cover.opening
    if have is None:
        return False
    if have != position.opening:
        raise InputRefused("conflict", "user_id", f"has moved in with another position: {have.text}")
    return True


def moved_in(account: Account, position: OpeningPosition, now: datetime) -> Decision:
    """Return the account with a position, which is as if it had been there before all events.

    account: with the day of `as_of`. Raises NeedsHistory; and InputRefused if there are active dates that the
    position cannot know of: a history was taken in for the same user.
    """
    before = account.profile
    if account.history is None and (before.streak or account.pending):
        raise NeedsHistory(date.min)
    dates = {*(account.history.dates if account.history else ()), *active_dates(account.pending)}
    check_beside(position, dates)
    days = absorb_days(account.days, account.pending)
    repaired = absorb(before, account.pending)
    drafts = position.drafts()
    opened = replace(repaired, cover=replace(repaired.cover, opening=position.opening))
    granted = append(before.user_id, repaired.head, drafts, now) if drafts else []
    cover = absorb(opened, granted).cover
    streak = fold(dates, cover)
    changes = freeze_drafts(journalled_freezes(before, account.pending), streak)
    all_drafts = [*drafts, *changes]
    entries = append(before.user_id, repaired.head, all_drafts, now) if all_drafts else []
    days |= absorb_days({**account.days, **days}, entries)
    changed = replace(absorb(opened, entries), streak=streak)
    after = touch(before, changed, now)
    return Decision(account, repaired.head, entries, days, replace(after, backfilled=after.version))


def check_beside(position: OpeningPosition, dates: Iterable[date]) -> None:
    """Raise InputRefused for active dates so old that they did not come while the user moved."""
    first = min(dates, default=date.max)
    if position.last_date and first < position.last_date - BESIDE:
        reason = f"has a history here since {first}: a position would count it twice"
        raise InputRefused("conflict", "user_id", reason)
