"""The rewards ledger (docs/rules.md, rule 6): append-only, a running balance, one active head.

`points` is signed, so balance[n] = balance[n-1] + points[n] and seq[n] = seq[n-1] + 1.

When several entries are appended at once, the transaction writes only the carriers among them. A carrier
names up to six EARN entries just before it, the carried entries. The writer puts those afterwards, at a lower
price. If it dies first, the next one rebuilds them from their carrier (`split_carriers`, `unfold`).
Example: seven events are one carrier and six carried entries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum

from rules.book.book import Cap
from rules.days import EPOCH, MICROSECOND, stamp, unstamp

OPENED_AT = stamp(EPOCH)
# A carrier of common size that names six entries stays under 1 KB, the unit that a write is billed in.
CARRIED_MAX = 6
PASSIVE = "passive"
Applied = dict[str, tuple[date, int]]  # event id -> the date that it counts for, its points


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
    """An entry that has no place in the ledger yet.

    points: signed; a redemption of 15 has -15. rules_version, cap, is_passive: those of an EARN's event.
    """

    kind: EntryKind
    points: int
    event_id: str | None = None
    event_type: str | None = None
    activity_date: str | None = None
    reward_id: str | None = None
    reverses: str | None = None
    freeze: FreezeNote | None = None
    freeze_date: str | None = None
    rules_version: int | None = None
    cap: Cap | None = None
    is_passive: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    """What the next entry builds on: the newest entry's place and balance."""

    created_at: str
    seq: int
    balance: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A draft in its place.

    created_at: the place, a stamp. folded: the carried entries that this carrier names. active: whether it is
    the head. reversed_by: created_at of the entry that reversed this one. applied_through: of a head, how
    far into the stream the account's events are applied with it (see Profile).
    """

    account_id: str
    created_at: str
    seq: int
    balance: int
    draft: Draft
    folded: tuple[str, ...] = ()
    active: bool = False
    reversed_by: str | None = None
    applied_through: str = ""

    @property
    def head(self) -> Head:
        """This entry as the one to build on."""
        return Head(self.created_at, self.seq, self.balance)


def opening(account_id: str) -> Entry:
    """Return an account's first entry, of 0 points.

    Its place is fixed, so two writers that open the same account collide, and one of them fails.
    """
    return Entry(account_id, OPENED_AT, 0, 0, Draft(EntryKind.OPEN, 0))


def append(
    account_id: str, head: Head | None, drafts: Sequence[Draft], now: datetime, after: datetime = EPOCH
) -> list[Entry]:
    """Give drafts their places, a microsecond apart, after a head (None: open the account first).

    after: the latest arrival among the events applied. The first place is now, or just after the head or
    `after` if that is later. So places increase strictly, whatever the clocks of two writers say.
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
    """Split appended entries into the carriers, which the transaction writes, and the carried entries.

    The last entry is always a carrier, and becomes the active head.
    """
    carriers: list[Entry] = []
    rest: list[Entry] = []
    run: list[Entry] = []
    for entry in entries:
        last = entry is entries[-1]
        if entry.draft.kind is EntryKind.EARN and len(run) < CARRIED_MAX and not last:
            run.append(entry)
            continue
        folded = tuple(_fold(each.draft, entry.draft.rules_version) for each in run)
        carriers.append(replace(entry, folded=folded, active=last))
        rest += run
        run = []
    return carriers, rest


def _fold(draft: Draft, version: int | None) -> str:
    """Write a carried entry: `25|CHECK_IN|2026-03-01 100/day|...`. version: the carrier's."""
    judged = [
        f"v{draft.rules_version}" if draft.rules_version not in (None, version) else "",
        draft.cap.text if draft.cap else "",
        PASSIVE if draft.is_passive else "",
    ]
    date_and_rules = " ".join(filter(None, [draft.activity_date, *judged]))
    return f"{draft.points}|{draft.event_type}|{date_and_rules}|{draft.event_id}"


def _unfold(text: str, version: int | None) -> Draft:
    points, event_type, date_and_rules, event_id = text.split("|", 3)
    activity_date, *judged = date_and_rules.split(" ")
    versions = [int(each[1:]) for each in judged if each.startswith("v")]
    caps = [Cap.of(each) for each in judged if "/" in each]
    return Draft(
        EntryKind.EARN,
        int(points),
        event_id,
        event_type,
        activity_date,
        rules_version=versions[0] if versions else version,
        cap=caps[0] if caps else None,
        is_passive=PASSIVE in judged,
    )


def unfold(carrier: Entry) -> list[Entry]:
    """Return the carried entries that a carrier names, oldest first."""
    entries: list[Entry] = []
    seq, moment = carrier.seq, unstamp(carrier.created_at)
    balance = carrier.balance - carrier.draft.points
    for text in reversed(carrier.folded):
        seq, moment = seq - 1, moment - MICROSECOND
        draft = _unfold(text, carrier.draft.rules_version)
        entries.append(Entry(carrier.account_id, stamp(moment), seq, balance, draft))
        balance -= draft.points
    return entries[::-1]


def applied_by(entries: Iterable[Entry]) -> Applied:
    """Return what entries say of the events that earned them."""
    return {
        draft.event_id: (date.fromisoformat(draft.activity_date), draft.points)
        for draft in (entry.draft for entry in entries)
        if draft.event_id and draft.activity_date
    }


def with_folded(stored: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return stored and carried entries, oldest first; and those of them that are not stored yet."""
    known = {entry.created_at: entry for entry in stored}
    missing = [
        entry
        for carrier in list(known.values())
        for entry in unfold(carrier)
        if entry.created_at not in known
    ]
    everything = {**known, **{entry.created_at: entry for entry in missing}}
    return [everything[key] for key in sorted(everything)], missing
