"""A user's journal, as the ledger has it and as the lake has it; and the items that follow from it.

A *lowered* item of a profile shows 0 as its streak, has the length in `run_length`, and is not in the
leaderboard's index. RanksFunction or the night lowers an item some time after its streak has lapsed. So an
item with a lapsed streak is right before and after it is lowered.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from adapters.engagement.account_items import (
    day_attributes,
    day_from,
    lapsed_attributes,
    profile_attributes,
    with_daily_terms,
)
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import BEFORE_ALL
from analytics.proof import NO_CHECK, JournalCheck
from analytics.recompute.lake_users import LakeUser
from analytics.reconcile.differences import Difference, differences
from analytics.reconcile.stored_profiles import UNREADABLE, readable_profile
from rules.book.book import Books
from rules.engagement.account import profile_with_entries
from rules.engagement.account_state import Day, Profile
from rules.engagement.brought_forward import brought_forward_as
from rules.engagement.ledger import Entry, active_dates
from rules.engagement.points import weeks_by_book
from rules.engagement.reconciliation import (
    WRONG_STATE,
    LakeFigures,
    ProjectionState,
    days_of,
    entries_up_to,
    has_lapsed,
    is_only_behind,
    ledger_faults,
    profile_of,
)
from rules.engagement.streak import fold

PROFILES, DAYS = "UserStreaks", "DailyActivity"
# The fields of a draft that are texts or None.
TEXTS = (
    *("event_id", "event_type", "activity_date", "reward_id", "reverses", "freeze_date"),
    *("expires_on", "held_at", "reason", "brand", "measures", "timezone", "set_to"),
)


@dataclass(frozen=True, slots=True)
class UserView:
    """What a look has read of a user: the stored items, and the journal."""

    user_id: str
    profile: Item | None  # the stored item
    days: Mapping[str, Item]  # the stored items, by ISO date
    entries: Sequence[Entry]  # the whole journal, oldest first; () if an entry cannot be read
    kept: Profile  # what the journal does not have of the profile (stored_profiles.py)
    had_profile: bool  # the lake has entries, so a profile that is not stored was lost, and is not just late
    shards: int  # of the leaderboard's index
    faults: Sequence[str] = ()  # how the journal breaks rule 6, in words
    check: JournalCheck = NO_CHECK  # the journal beside the last root

    @property
    def is_unreadable(self) -> bool:
        """Whether nothing can be said about the user's items, because the journal cannot be read."""
        return bool(self.faults) and not self.entries

    @property
    def head(self) -> str:
        """The place of the journal's newest entry; "" for an empty journal."""
        return self.entries[-1].created_at if self.entries else ""

    def expected_profile(self, place: str) -> Profile | None:
        """Return the profile as of a place in the journal; None where there must be none."""
        if not (self.profile or self.entries):
            return None
        return profile_of(self.kept, entries_up_to(self.entries, place))

    def item_differences(self, now: datetime) -> list[Difference]:
        """Return in what the stored items differ from what the whole journal says."""
        expected_profile = self._right_item(self.head, now)
        of_profile = differences(self.user_id, PROFILES, "", self.profile, expected_profile)
        of_days: list[Difference] = []
        expected_days = days_of(self.entries)
        for when in sorted(expected_days.keys() | self.days.keys()):
            expected_day = day_item(expected_days.get(when))
            of_days += differences(self.user_id, DAYS, when, self.days.get(when), expected_day)
        return [*of_profile, *of_days]

    def has_right_profile(self, now: datetime) -> bool:
        """Whether the stored profile is what the whole journal says."""
        return self._right_item(self.head, now) == self.profile

    def is_right_by_earlier_books(self, now: datetime) -> bool:
        """Whether all items are right by what the books said of dates when the profile was written.

        A later version of the book may move the instant at which a streak lapses.
        """
        terms = self.kept.cover.rest.terms
        earlier = (with_daily_terms(self.kept, terms[:count]) for count in range(len(terms)))
        return any(not replace(self, kept=kept).item_differences(now) for kept in earlier)

    def items_are_behind(self, now: datetime) -> bool:
        """Whether all items are right as of earlier entries of the journal."""
        profile = self._counted_profile(self.profile, now) if self.profile else None
        return is_only_behind(self.entries, profile, self._counted_days(), self.had_profile)

    def _right_item(self, place: str, now: datetime) -> Item | None:
        """Return the profile's item as of a place in the journal; None where there must be none.

        It is lowered, and brought forward, as the stored one is.
        """
        profile = self.expected_profile(place)
        if profile is None:
            return None
        stored = readable_profile(self.profile) if self.profile else None
        if stored and stored.cover.brought_forward:
            until = stored.cover.brought_forward.start.last
            dates = active_dates(entries_up_to(self.entries, place))
            start = fold((day for day in dates if day <= until), profile.cover)
            profile = brought_forward_as(profile, stored, start)
        attributes = profile_attributes(profile, self.shards)
        is_lowered = self.profile is not None and "run_length" in self.profile
        if is_lowered and has_lapsed(attributes.get("lapses_at"), now):
            attributes = lapsed_attributes(attributes)
        return encode_item(attributes)

    def _counted_profile(self, stored: Item, now: datetime) -> ProjectionState:
        """Return up to which entry the stored profile counts, and whether it is right as of that entry."""
        profile = readable_profile(stored)
        if profile is None:
            return WRONG_STATE
        place = profile.head.created_at if profile.head else ""
        return ProjectionState(place, self._right_item(place, now) == stored)

    def _counted_days(self) -> dict[str, ProjectionState]:
        """Return up to which entry each stored day counts, and whether it is right as of that entry."""
        by_date: dict[str, list[Entry]] = {}
        for entry in self.entries:
            by_date.setdefault(entry.draft.activity_date or "", []).append(entry)
        return {when: _counted_day(stored, when, by_date.get(when, ())) for when, stored in self.days.items()}


def _counted_day(stored: Item, when: str, entries: Sequence[Entry]) -> ProjectionState:
    """Return the state of a stored day. entries: those of its date, because a day counts no others."""
    try:
        place = day_from(decode_item(stored)).watermark
        expected = days_of(entries_up_to(entries, place)).get(when)
    except UNREADABLE:
        return WRONG_STATE
    return ProjectionState(place, day_item(expected) == stored)


def day_item(day: Day | None) -> Item | None:
    """Return a day as it must be stored."""
    return encode_item(day_attributes(day)) if day else None


def journal_of(ledger: LedgerStore, user_id: str, is_strong: bool = True) -> tuple[list[Entry], list[str]]:
    """Return an account's entries, oldest first, and how they break rule 6.

    There are no entries if one of them cannot be read; then this is the fault.
    """
    try:
        entries, _ = ledger.after(user_id, BEFORE_ALL, is_strong)
        for entry in entries:
            _check_types(entry)
    except UNREADABLE as error:
        return [], [f"an entry cannot be read: {type(error).__name__}: {error}"]
    return entries, list(ledger_faults(entries))


def _check_types(entry: Entry) -> None:
    """Raise ValueError or TypeError for an entry that no code of ours can have written."""
    draft = entry.draft
    if not all(type(number) is int for number in (entry.seq, entry.balance, draft.points)):
        raise TypeError(f"{entry.created_at}: seq, balance or points is not an integer")
    if not all(type(flag) is bool for flag in (entry.active, draft.is_passive)):
        raise TypeError(f"{entry.created_at}: active or is_passive is not a boolean")
    if not isinstance(draft.rules_version, int | None):
        raise TypeError(f"{entry.created_at}: rules_version is not an integer")
    texts = [entry.reversed_by, entry.applied_through, *(getattr(draft, name) for name in TEXTS)]
    if not all(isinstance(text, str | None) for text in texts):
        raise TypeError(f"{entry.created_at}: a text field is not a string")
    profile_with_entries(Profile(entry.account_id), [entry])
    if draft.kind.value in ("EARN", "CLAWBACK") and not (draft.event_id and draft.activity_date):
        raise ValueError(f"{entry.created_at}: it earns without an event or a date")
    for text in (draft.activity_date, draft.freeze_date):
        if text is not None and date.fromisoformat(text).isoformat() != text:
            raise ValueError(f"{entry.created_at}: {text} is no date")


def figures_of(lake: LakeUser | None) -> LakeFigures:
    """Return the figures of the lake's journal of a user; those of an empty one if the lake has none."""
    if lake is None:
        return LakeFigures()
    return LakeFigures(
        place=lake.head or "",
        entries=lake.entries,
        points=lake.points,
        earned=lake.total_points,
        seq=lake.seq,
        balance=lake.balance,
        digest=lake.digest,
    )


def weeks_unlike_book(entries: Sequence[Entry], books: Callable[[], Books]) -> list[str]:
    """Return a sentence for each week of a journal whose points differ from those by the book of rules."""
    try:
        weeks = weeks_by_book((entry.draft for entry in entries), books())
    except UNREADABLE as error:
        return [f"an entry lacks what the book needs to judge its event: {error}"]
    return [
        f"the week of {monday} has {week.earned} points; by the book {week.by_book}"
        for monday, week in sorted(weeks.items())
        if week.earned != week.by_book
    ]
