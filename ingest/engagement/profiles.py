"""What a user sees: profile, and why a day counts."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from adapters.engagement.account_items import day_attributes
from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.event_store import EventStore
from adapters.engagement.points import Settler, is_due
from rules.days import is_skipped
from rules.engagement.account_state import Profile, amnesty_of, date_at
from rules.engagement.events import Event
from rules.engagement.ledger import debt_of
from rules.engagement.streak import DAY, DateReason, Streak, covered_dates, explain_date, fold, shown_streak

RULES = {
    DateReason.COUNTED: "a date with at least one event counts, once",
    DateReason.FREEZE: "a missed date is covered by a freeze, in date order; it adds 0",
    DateReason.PAUSE: "a paused date is no miss; it adds 0",
    DateReason.SKIPPED: "a date that the zone skipped is no miss",
    DateReason.AMNESTY: "a date that an outage touched is no miss; it adds 0",
    DateReason.MISSED: "a missed date that nothing covers ends the run",
    DateReason.OPEN: "the date is not over yet",
    DateReason.BEFORE: "there is no run before the first active date",
}


@dataclass(frozen=True, slots=True)
class Profiles:
    """Reads profiles: from Redis in one round trip, or by one DynamoDB read if the profile is not cached."""

    accounts: AccountStore
    events: EventStore
    cache: EngagementCache
    settler: Settler

    def get(self, user_id: str) -> Profile:
        """Return a user's profile; a blank one for a user not seen yet."""
        profile = self.cache.profile(user_id)
        if profile is None:
            # What is kept for others must be the newest there is. A read for one answer costs half as much.
            profile = self.accounts.profile(user_id, is_strong=self.cache.is_configured)
            if profile.version:
                self.cache.remember(profile)
        return profile

    def view(self, user_id: str, as_of: date | None, now: datetime) -> dict[str, Any]:
        """Return the profile as the OpenAPI document describes it.

        as_of: a local date (None: the user's today). Streak and active days are as of this date. Points and
        balance are always the present ones, because they belong to the account and not to a date. What has
        expired by now is written first.
        """
        profile = self.get(user_id)
        if is_due(profile, now):
            profile = self.settler.settle(user_id, now)
            self.cache.write_through([profile])
        when = as_of or self.today(profile, now)
        profile = self._reaching(profile, when)
        shown = shown_streak(self._streak(profile, when), profile.cover, when)
        return {
            "user_id": user_id,
            "current_streak": shown.current,
            "longest_streak": shown.longest,
            "streak_status": shown.status.value,
            "last_activity_date": shown.last.isoformat() if shown.last else None,
            "timezone": profile.zone,
            "total_bestie_points": profile.total_points,
            "balance": profile.balance,
            "debt": debt_of(profile.balance),
            "freezes_available": shown.freezes_available,
            "active_days": shown.active_days,
            "as_of": when.isoformat(),
        }

    def today(self, profile: Profile, now: datetime) -> date:
        """Return the user's today, or the newest active date if that is later."""
        return date_at(profile, now)

    def _reaching(self, profile: Profile, until: date) -> Profile:
        """Return the profile with what it needs to show a streak on a date.

        Raises AccountContended if its archive is damaged.
        """
        if profile.streak is None or profile.streak.last <= until:
            return profile
        return self.accounts.whole(profile, until + DAY)

    def _streak(self, profile: Profile, until: date) -> Streak | None:
        """Return the streak with the active dates up to a date."""
        if profile.streak is None or profile.streak.last <= until:
            return profile.streak
        if profile.cover.opening and until < profile.cover.opening.last:
            return None  # another system knows of that time
        history = self.accounts.history(profile, until + DAY, until, is_strong=False)
        return fold(history.dates, profile.cover, history.start)

    def covered(self, user_id: str, first: date, last: date, now: datetime) -> list[dict[str, str]]:
        """Return the dates of a span up to the user's today that a freeze, a pause or the zone covers.

        Each with its reason, as `explain` names it; oldest first.
        """
        profile = self.accounts.whole(self.get(user_id), first)
        found = covered_dates(profile.streak, profile.cover, (first, last), self.today(profile, now))
        return [
            {"date": day.isoformat(), "reason": _told(reason, amnesty_of(profile, day)).value}
            for day, reason in found
        ]

    def explain(self, user_id: str, asked: date, now: datetime) -> dict[str, Any]:
        """Return why a date counts or not: the rule, the zone, the freeze, and the date's first event."""
        profile = self._reaching(self.get(user_id), asked)
        upto = self._streak(profile, asked)
        reason, length = explain_date(upto, profile.cover, asked, self.today(profile, now))
        amnesty = amnesty_of(profile, asked)
        reason = _told(reason, amnesty)
        day = self._day(user_id, asked) if reason is DateReason.COUNTED else None
        first = self.events.get(user_id, day["first_event_id"]) if day else None
        zone = first.zone if first else profile.zone
        return {
            "user_id": user_id,
            "date": asked.isoformat(),
            "counts": reason is DateReason.COUNTED,
            "reason": reason.value,
            "rule": RULES[reason],
            "zone": zone,
            "zone_skipped_it": is_skipped(asked, zone),
            "freeze_used": reason is DateReason.FREEZE,
            **({"amnesty": amnesty} if reason is DateReason.AMNESTY else {}),
            "streak_length": length,
            "events_count": day["events_count"] if day else 0,
            "points_earned": day["points_earned"] if day else 0,
            "event": first and _event_told(first),
        }

    def _day(self, user_id: str, day: date) -> dict[str, Any] | None:
        cached = self.cache.day(user_id, day)
        if cached:
            return cached
        found = self.accounts.days([(user_id, day)]).get((user_id, day))
        return day_attributes(found) if found else None


def _event_told(first: Event) -> dict[str, str]:
    device = {"device_time": first.device_time, "offline_since": first.offline_since}
    return {
        "event_id": first.event_id,
        "event_type": first.event_type,
        "occurred_at": first.occurred_at,
        "arrived_at": first.created_at,
        **{name: told for name, told in device.items() if told},
    }


def _told(reason: DateReason, amnesty: int | None) -> DateReason:
    """Return the reason of a date without activity: an amnesty's dates are among those that are skipped."""
    return DateReason.AMNESTY if reason is DateReason.SKIPPED and amnesty else reason
