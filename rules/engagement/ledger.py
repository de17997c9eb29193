"""The rewards ledger (docs/rules.md, rule 6): append-only, a running balance, one active head.

`points` is signed, so balance[n] = balance[n-1] + points[n] and seq[n] = seq[n-1] + 1.

Several entries can be appended at once. Only some of them are written in the transaction, the
carriers: each names the EARN entries just before it, so that these follow from it and can be put
in cheaper writes afterwards, by whoever comes next if the first writer dies (`split_carriers`, `unfold`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rules.days import EPOCH, MICROSECOND, stamp, unstamp

OPENED_AT = stamp(EPOCH)
# Seven names and a carrier of common size stay under 1 KB, the unit that a write is billed in.
CARRIED_MAX = 6


class EntryKind(StrEnum):
    """What an entry does to the balance."""

    OPEN = "OPEN"
    EARN = "EARN"
    REDEEM = "REDEEM"
    REVERSE = "REVERSE"
    EXPIRE = "EXPIRE"
    ADJUST = "ADJUST"


class FreezeNote(StrEnum):
    """What an entry does to the account's streak freezes."""

    GRANTED = "freeze_granted"
    REVOKED = "freeze_revoked"
    SPENT = "freeze_spent"
    REFUNDED = "freeze_refunded"


class InsufficientBalance(Exception):
    """The balance would fall below 0."""

    def __init__(self, balance: int, wanted: int) -> None:
        super().__init__(f"balance {balance} does not cover {wanted} points")
        self.balance, self.wanted = balance, wanted


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry before it has its place; `points` signed."""

    kind: EntryKind
    points: int
    event_id: str | None = None
    event_type: str | None = None
    activity_date: str | None = None
    reward_id: str | None = None
    reverses: str | None = None
    freeze: FreezeNote | None = None
    freeze_date: str | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """What the next entry builds on: the newest entry's place and balance."""

    created_at: str
    seq: int
    balance: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A draft in its place. `reversed_by`: the created_at of the entry that reversed this one."""

    account_id: str
    created_at: str
    seq: int
    balance: int
    draft: Draft
    folded: tuple[str, ...] = ()
    active: bool = False
    reversed_by: str | None = None

    @property
    def head(self) -> Head:
        """This entry as the one to build on."""
        return Head(self.created_at, self.seq, self.balance)


def opening(account_id: str) -> Entry:
    """Return the entry of 0 that comes before anything else, at a fixed place: two openers collide."""
    return Entry(account_id, OPENED_AT, 0, 0, Draft(EntryKind.OPEN, 0))


def append(
    account_id: str, head: Head | None, drafts: Sequence[Draft], now: datetime, after: datetime = EPOCH
) -> list[Entry]:
    """Give drafts their places after a head (None: a new account, which is opened first).

    Order is strictly increasing whatever the writers' clocks say: after the head, after `now`
    and after `after` (the arrival of the youngest event applied), a microsecond apart.
    Raises InsufficientBalance if the balance would fall below 0 at any entry.
    """
    entries = [] if head else [opening(account_id)]
    place = head or entries[0].head
    moment = max(now, after + MICROSECOND, unstamp(place.created_at) + MICROSECOND)
    for draft in drafts:
        balance = place.balance + draft.points
        if balance < 0:
            raise InsufficientBalance(place.balance, -draft.points)
        entries.append(Entry(account_id, stamp(moment), place.seq + 1, balance, draft))
        place, moment = entries[-1].head, moment + MICROSECOND
    return entries


def split_carriers(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Split appended entries into those of the transaction and those that follow from them.

    The last one becomes the active head.
    """
    carriers: list[Entry] = []
    rest: list[Entry] = []
    run: list[Entry] = []
    for entry in entries:
        last = entry is entries[-1]
        if entry.draft.kind is EntryKind.EARN and len(run) < CARRIED_MAX and not last:
            run.append(entry)
            continue
        folded = tuple(_fold(each.draft) for each in run)
        carriers.append(
            Entry(entry.account_id, entry.created_at, entry.seq, entry.balance, entry.draft, folded, last)
        )
        rest += run
        run = []
    return carriers, rest


def _fold(draft: Draft) -> str:
    return f"{draft.points}|{draft.event_type}|{draft.activity_date}|{draft.event_id}"


def unfold(carrier: Entry) -> list[Entry]:
    """Return the entries that a carrier names, oldest first."""
    entries: list[Entry] = []
    seq, moment = carrier.seq, unstamp(carrier.created_at)
    balance = carrier.balance - carrier.draft.points
    for text in reversed(carrier.folded):
        points, event_type, activity_date, event_id = text.split("|", 3)
        seq, moment = seq - 1, moment - MICROSECOND
        draft = Draft(EntryKind.EARN, int(points), event_id, event_type, activity_date)
        entries.append(Entry(carrier.account_id, stamp(moment), seq, balance, draft))
        balance -= draft.points
    return entries[::-1]


def with_folded(stored: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return stored entries and those that they name, oldest first; and the ones not stored yet."""
    known = {entry.created_at: entry for entry in stored}
    missing = [
        entry
        for carrier in list(known.values())
        for entry in unfold(carrier)
        if entry.created_at not in known
    ]
    everything = {**known, **{entry.created_at: entry for entry in missing}}
    return [everything[key] for key in sorted(everything)], missing
