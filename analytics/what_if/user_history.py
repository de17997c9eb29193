"""One user's history as it is: the entries of the ledger, the user's settings, and what follows from both."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.engagement.ledger import EARNING, EntryKind, FreezeNote
from rules.engagement.lots import Spending, expired_points
from rules.engagement.streak import Checkpoint, Cover, net_freezes

NO_DATES: frozenset[date] = frozenset()


class Row(NamedTuple):
    """An entry of the ledger (LEDGER of rules.lake.entities), with values that its event was sent with."""

    user_id: str
    kind: str
    event_type: str
    version: int  # 0 for none
    cap: str | None
    is_passive: bool
    segment: int  # how many boundaries of the timeline are not after the event
    is_broken: bool  # the candidate's contract refuses the event's properties
    created_at: int  # microseconds since 1970
    seq: int
    points: int
    event_id: str
    day: date
    expires_on: date | None
    held_at: str | None
    reverses: str | None
    freeze: str | None
    freeze_date: date | None
    reward_id: str | None
    measures: str | None
    # Values of the event. The first two are read only for users whose dates may be placed anew, the third
    # only for event types of which streaks or achievements sum a property.
    claimed: date | None  # the date that the event claims
    zone: str | None  # the zone that this date was read in
    properties: str | None  # JSON text

    @property
    def terms_key(self) -> tuple[Any, ...]:
        """The key of the terms that judge its event (TermsMemo): the fields from event_type to is_broken."""
        return self[2:8]

    @property
    def at(self) -> datetime:
        """When it was written."""
        return EPOCH + self.created_at * MICROSECOND

    @property
    def counts_at(self) -> datetime:
        """When it counts. A captured hold counts from the time at which the points were held."""
        return unstamp(self.held_at) if self.kind == EntryKind.REDEEM and self.held_at else self.at

    @property
    def place(self) -> str:
        """Its place in the ledger: the stamp of its instant."""
        return stamp(self.at)

    @property
    def month(self) -> str:
        """The month in which it was written: YYYY-MM."""
        return f"{self.at:%Y-%m}"

    @property
    def is_price(self) -> bool:
        """Whether it is a redemption at a price of the book."""
        return bool(self.version and self.reward_id and not self.freeze)


@dataclass(frozen=True, slots=True)
class UserSettings:
    """A user's settings, which the ledger does not have."""

    pauses: tuple[tuple[date, date], ...] = ()  # both dates are included
    skipped: frozenset[date] = NO_DATES  # dates that are no misses
    opening: Checkpoint | None = None  # see Cover
    pauses_after: tuple[tuple[date, date], ...] = ()  # the pauses that the books of the timeline allow
    # The dates of the events contradict each other (rule 8). So if some events no longer count, others of
    # them may decide on the dates.
    has_doubts: bool = False


@dataclass(slots=True)
class World:
    """A user's points and streak, as they are or as they would be."""

    earned: int  # points ever
    balance: int  # points that have not expired
    expired: int  # points
    active: set[date]  # dates with an event that keeps a streak
    cover: Cover  # what protects the streak


def actual_world(rows: Sequence[Row], settings: UserSettings, now: datetime) -> World:
    """Return a user's points and streak by the ledger as it is."""
    lots: dict[date, int] = defaultdict(int)
    spendings: list[Spending] = []
    freezes: list[tuple[date, int]] = []
    clawed_back = {row.event_id for row in rows if row.kind == EntryKind.CLAWBACK}
    earned = other_points = 0
    active = set()
    for row in rows:
        kind = row.kind
        if kind in EARNING:
            earned += row.points
            if row.expires_on:
                lots[row.expires_on] += row.points
            if kind == EntryKind.EARN and not row.is_passive and row.event_id not in clawed_back:
                active.add(row.day)
        elif kind != EntryKind.EXPIRE:
            other_points += row.points
            if row.points and kind in (EntryKind.REDEEM, EntryKind.REVERSE):
                when = row.held_at or row.reverses
                spendings.append((unstamp(when) if when else row.at, -row.points))
            if row.freeze_date and row.freeze in (FreezeNote.GRANTED, FreezeNote.REVOKED):
                freezes.append((row.freeze_date, 1 if row.freeze == FreezeNote.GRANTED else -1))
    cover = Cover(net_freezes(freezes), settings.pauses, settings.skipped, opening=settings.opening)
    expired = expired_points(lots, spendings, now)
    return World(earned, earned + other_points - expired, expired, active, cover)
