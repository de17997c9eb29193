"""Ledgers as they are stored, damaged ones too, and as the lake holds them; and which a night compares."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from adapters.engagement.account_items import day_attributes, day_from
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import BEFORE_ALL
from analytics.proof import PreviousTree
from analytics.recompute.recompute import LakeUser, Snapshot
from analytics.reconcile.profile_settings import UNREADABLE
from analytics.reconcile.user_goals import GoalRows, settings_cover
from rules.book.book import Books
from rules.engagement.account_state import Day, Profile
from rules.engagement.archive import Archive
from rules.engagement.ledger import Entry
from rules.engagement.points import weeks_by_book
from rules.engagement.reconciliation import (
    LAKE_LAG,
    WRONG_STATE,
    LakeFigures,
    ProjectionState,
    chain_faults,
    contradictions,
    days_of,
    entries_up_to,
    profile_of,
)
from rules.turns import slice_of, slices_due

# The fields of a draft that are texts, where an entry has them.
TEXTS = (
    *("event_id", "event_type", "activity_date", "reward_id", "reverses", "freeze_date"),
    *("expires_on", "held_at", "reason", "brand", "measures"),
)


@dataclass(frozen=True, slots=True)
class UserView:
    """What was read of a user. settings: what of the profile is not in the journal, as it must be.

    archive: what the profile has put away, if it has and that can be read.
    """

    user_id: str
    profile: Item | None
    days: Mapping[str, Item]
    entries: Sequence[Entry]
    settings: Profile
    has_profile: bool
    archive: Archive | None = None

    def expected_profile(self, place: str) -> Profile | None:
        """Return the profile as of a place in the journal; None where there must be none."""
        if not self.has_profile:
            return None
        return profile_of(self.settings, entries_up_to(self.entries, place))

    def counted_days(self) -> dict[str, ProjectionState]:
        """Return up to where each stored day has counted, and whether it is right as of there."""
        by_date: dict[str, list[Entry]] = {}
        for entry in self.entries:
            by_date.setdefault(entry.draft.activity_date or "", []).append(entry)
        return {when: _counted_day(stored, when, by_date.get(when, ())) for when, stored in self.days.items()}


def _counted_day(stored: Item, when: str, own: Sequence[Entry]) -> ProjectionState:
    """own: the entries of the day's date, because a day counts no others."""
    try:
        place = day_from(decode_item(stored)).ledger_head
        expected = days_of(entries_up_to(own, place)).get(when)
    except UNREADABLE:
        return WRONG_STATE
    return ProjectionState(place, day_item(expected) == stored)


def day_item(day: Day | None) -> Item | None:
    """Return a day as it must be stored."""
    return encode_item(day_attributes(day)) if day else None


def journal_of(ledger: LedgerStore, user_id: str, consistent: bool = True) -> tuple[list[Entry], list[str]]:
    """Return an account's entries, oldest first, and how they break rule 6.

    There are no entries if one of them cannot be read; then this is the fault.
    """
    try:
        entries, _ = ledger.after(user_id, BEFORE_ALL, consistent)
        for entry in entries:
            _check_types(entry)
    except UNREADABLE as error:
        return [], [f"an entry cannot be read: {type(error).__name__}: {error}"]
    return entries, list(chain_faults(entries))


def _check_types(entry: Entry) -> None:
    """Raise ValueError or TypeError for an entry that no code of ours can have written."""
    draft = entry.draft
    if not all(type(each) is int for each in (entry.seq, entry.balance, draft.points)):
        raise TypeError(f"{entry.created_at}: a number is none")
    if not all(type(each) is bool for each in (entry.active, draft.is_passive)):
        raise TypeError(f"{entry.created_at}: a flag is none")
    if not isinstance(draft.rules_version, int | None):
        raise TypeError(f"{entry.created_at}: the version of its rules is no number")
    texts = [entry.reversed_by, entry.applied_through, *(getattr(draft, name) for name in TEXTS)]
    if not all(isinstance(text, str | None) for text in texts):
        raise TypeError(f"{entry.created_at}: a text is none")
    if draft.kind.value in ("EARN", "CLAWBACK") and not (draft.event_id and draft.activity_date):
        raise ValueError(f"{entry.created_at}: it earns without an event or a date")
    for each in (draft.activity_date, draft.freeze_date):
        if each is not None and date.fromisoformat(each).isoformat() != each:
            raise ValueError(f"{entry.created_at}: {each} is no date")


def figures_of(lake: LakeUser | None) -> LakeFigures:
    """Return what the lake's journal of a user comes to; of one whom it does not know, nothing."""
    if lake is None:
        return LakeFigures()
    return LakeFigures(
        *(lake.head or "", lake.entries, lake.points, lake.total_points),
        *(lake.seq, lake.balance, lake.digest),
    )


def other_points(view: UserView, books: Callable[[], Books]) -> list[str]:
    """Return, in words, which weeks of a ledger have other points than the book of rules says."""
    try:
        weeks = weeks_by_book((entry.draft for entry in view.entries), books())
    except UNREADABLE as error:
        return [f"an entry tells no event: {error}"]
    return [
        f"the week of {monday} has {week.earned} points; by the book {week.by_book}"
        for monday, week in sorted(weeks.items())
        if week.earned != week.by_book
    ]


def users_to_compare(lake: Snapshot, compared: datetime | None) -> set[str]:
    """Return the users whose ledgers have changed since they were compared; None: never, so all of them."""
    return set(lake.ids) if compared is None else lake.touched(compared - LAKE_LAG)


def users_due(lake: Snapshot, compared: datetime, now: datetime) -> set[str]:
    """Return the users who are looked at closely tonight, whether they have changed or not."""
    slices = slices_due(compared.date(), now.date())
    return {each for each in lake.ids if slice_of(each) in slices}


def differs(
    ledger: LedgerStore,
    lake: LakeUser | None,
    user_id: str,
    witness: PreviousTree | None = None,
    goals: GoalRows | None = None,
) -> bool:
    """Whether a user's ledger is broken, or contradicts the lake's copy of it, or the last root.

    It reads the ledger eventually consistent: whoever differs is looked at closely. The head of one who does
    not is brought to the witness, and the ledger is folded into goals.
    """
    entries, faults = journal_of(ledger, user_id, consistent=False)
    unproven = witness.faults(user_id, entries) if witness else []
    if faults or unproven or contradictions(entries, figures_of(lake)):
        return True
    if witness:
        witness.bring(user_id, entries)
    if goals:
        goals.bring(user_id, entries, settings_cover(lake))
    return False
