"""The active dates of several users, as pairs of friends need them (docs/rules.md, rule 26).

Most follow from profiles: whoever is active every day has no gap between two checkpoints. Others are in the
items of days. Those that no late event changes any more are *settled*: they are stored as bits in an item of
DailyActivity, so that nobody reads ten years of days again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from adapters.engagement.account_items import ACTIVE_DATES, KeptItems
from adapters.engagement.account_store import AccountStore
from rules.days import DAY
from rules.engagement.account_state import Profile
from rules.engagement.goals import settled_until
from rules.engagement.pair_streaks import LONG, ActiveDates, Need, SettledDates, dense_dates


@dataclass(frozen=True, slots=True)
class ActiveDatesReader:
    """Reads active dates, and stores their settled part."""

    accounts: AccountStore
    items: KeptItems

    @classmethod
    def of(cls, accounts: AccountStore) -> "ActiveDatesReader":
        """Return the reader of some accounts' dates."""
        return cls(accounts, KeptItems(accounts.dynamodb, accounts.days_table, ACTIVE_DATES))

    def dates(
        self, profiles: Mapping[str, Profile], needs: Mapping[str, Need], now: datetime
    ) -> dict[str, ActiveDates]:
        """Return at least the active dates that are needed of each user. needs: of users with a streak."""
        found = {user: dense_dates(profiles[user]) for user in needs}
        # What profiles do not show, up to the date before the dates that they show
        gaps: dict[str, Need] = {}
        for user, need in needs.items():
            first_shown = next(iter(found[user]), need.last + DAY)
            if need.first < first_shown:
                gaps[user] = Need(need.first, min(need.last, first_shown - DAY))
        settled_to = settled_until(now)
        far_back = [user for user, gap in gaps.items() if settled_to - gap.first > LONG]
        stored = self.items.get_all(far_back, SettledDates.of) if far_back else {}
        for user, gap in gaps.items():
            kept = stored.get(user)
            if kept and not kept.is_usable(profiles[user], gap.first):
                kept = None
            found[user] |= self._read(profiles[user], gap, kept, found[user], settled_to)
        return found

    def _read(
        self, profile: Profile, gap: Need, kept: SettledDates | None, shown: ActiveDates, settled_to: date
    ) -> ActiveDates:
        """Return the dates of a gap, and store the settled ones if that saves many reads of days."""
        first = max(gap.first, kept.until) if kept else gap.first
        is_renewal_due = settled_to - first > LONG and profile.head is not None
        read = self.accounts.active_dates(profile.user_id, first, gap.last, is_strong=is_renewal_due)
        known = (kept.dates if kept else ActiveDates()) | ActiveDates.of(read)
        if is_renewal_due and profile.head:
            since = kept.since if kept else gap.first
            settled = (known | shown).between(since, settled_to - DAY)
            text = SettledDates(since, settled_to, profile.head.created_at, settled).text
            self._put(profile.user_id, text)
        return known

    def _put(self, user_id: str, text: str) -> Any:
        return self.accounts.dynamodb.put_item(**self.items.put(user_id, text))
