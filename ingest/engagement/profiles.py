"""What a user sees: the profile, and why a day counts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from adapters.engagement.account_items import day_attributes
from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.event_store import EventStore
from adapters.engagement.expiry import Settler, is_due
from ingest.engagement.points.balance import AVAILABLE, DEBT
from ingest.engagement.preferences import SPAN, newest_choice, spans_view
from ingest.web.json_schema import (
    COUNT,
    TEXT,
    Schema,
    closed_object,
    list_of,
    one_of,
    open_object,
    text,
    text_or_null,
    whole,
)
from rules.book.daily import WEEKDAYS, weekday_names
from rules.book.levels import Level, standing_of
from rules.days import DAY, is_skipped, start_on
from rules.engagement.account_state import (
    DateReason,
    Profile,
    amnesty_of,
    covered_dates,
    date_at,
    explain_date,
)
from rules.engagement.events import Event
from rules.engagement.ledger import debt_of
from rules.engagement.lots import held_points
from rules.engagement.repairs import NotRepairable, RepairOffer, offered_repair, repair_view
from rules.engagement.streak import Streak, fold, shown_streak

_LEVEL_FIELDS: dict[str, Schema] = {
    "name": TEXT,
    "title": TEXT,
    "from": COUNT | {"description": "the least points ever earned"},
    "image_url?": TEXT,
}
_NEXT_LEVEL = open_object(
    {**_LEVEL_FIELDS, "missing": whole("points", 1)},
    type=["object", "null"],
    description="null: there is none",
)
LEVEL = open_object(
    {**_LEVEL_FIELDS, "next": _NEXT_LEVEL},
    type=["object", "null"],
    description="by the book in force; null: below the first level, or there are none",
)
REPAIR = closed_object(
    {
        "until": text("the last date on which it can be repaired, if nothing else happens", format="date"),
        "dates": list_of(text(format="date"), description="the missed dates that a repair covers, ascending"),
        "price_points": whole("of all of them", 1),
    },
    description="the run that has just broken can be repaired; left out: nothing can be",
)
PROFILE = open_object(
    {
        "user_id": TEXT,
        "current_streak": COUNT,
        "longest_streak": COUNT,
        "streak_status": one_of(["active", "at_risk", "broken", "none"]),
        "last_activity_date": text_or_null(),
        "timezone": TEXT,
        "total_bestie_points": COUNT,
        "balance": whole("below 0: a debt"),
        "available?": AVAILABLE,
        "debt?": DEBT,
        "freezes_available": whole("below 0: a debt"),
        "active_days": COUNT,
        "level?": LEVEL,
        "as_of?": TEXT,
        "alias?": text_or_null("the name on the boards that the user chose; null: a pseudonym"),
        "pauses?": list_of(SPAN) | {"description": "those that have not ended by as_of, oldest first"},
        "rest_days?": list_of(one_of(WEEKDAYS))
        | {"description": "the weekdays on which, as of as_of, a date without activity is no miss"},
        "day_starts_at?": text("when the date after as_of begins by the clock on the wall, such as 03:00"),
        "rest_days_chosen?": open_object(
            {"rest_days": list_of(one_of(WEEKDAYS)), "from": TEXT},
            description="the user's newest choice of rest days, which may begin later than as_of",
        ),
        "repair?": REPAIR,
    }
)
PROFILES = closed_object(
    {
        "users": list_of(PROFILE, description="in the order of ids"),
        "missing": list_of(TEXT, description="ids of nobody of whom anything is known, and of the erased"),
    }
)
DAY_RULES = {
    DateReason.COUNTED: "a date with at least one event counts, once",
    DateReason.FREEZE: "a missed date is covered by a freeze, in date order; it adds 0",
    DateReason.REPAIR: "the user has repaired a missed date; it adds 0",
    DateReason.PAUSE: "a paused date is no miss; it adds 0",
    DateReason.REST: "a rest day is no miss; it adds 0",
    DateReason.SHORT: "a date that a new start of the day cut short is no miss; it adds 0",
    DateReason.SKIPPED: "a date that the zone skipped is no miss",
    DateReason.AMNESTY: "a date that an outage touched is no miss; it adds 0",
    DateReason.MISSED: "a missed date that nothing covers ends the run",
    DateReason.OPEN: "the date is not over yet",
    DateReason.BEFORE: "there is no run before the first active date",
}
CountRead = Callable[[], None]


def uncounted() -> None:
    """Count no read: of a caller who may read as much as there is."""


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
        if profile:
            profile = self.accounts.with_terms(profile)
        else:
            # What is kept for others must be the newest there is. A read for one answer costs half as much.
            profile = self.accounts.profile(user_id, is_strong=self.cache.is_configured)
            if profile.version:
                self.cache.remember(profile)
        return profile

    def view(
        self, user_id: str, as_of: date | None, now: datetime, count_read: CountRead = uncounted
    ) -> dict[str, Any]:
        """Return the profile as the OpenAPI document describes it.

        as_of: a local date (None: the user's today). Streak and active days are as of this date. Points,
        balance and level are always the present ones, because they belong to the account and not to a date.
        What has expired by now is written first. count_read: is called before a whole ledger is read, and may
        raise.
        """
        return self._view(self._settled(self.get(user_id), now), as_of, now, count_read)

    def view_of(self, profile: Profile, now: datetime) -> dict[str, Any]:
        """Return a profile as of the user's today. Nothing is written."""
        return self._view(profile, None, now, uncounted)

    def views(self, user_ids: Iterable[str], now: datetime, count_read: CountRead) -> list[dict[str, Any]]:
        """Return the profiles of those users who have one, in bulk and in the order asked for.

        One that somebody has damaged is left out.
        """
        asked = list(dict.fromkeys(user_ids))
        profiles = self.accounts.readable_profiles(asked)
        known = [profiles[user] for user in asked if user in profiles and profiles[user].version]
        return [self._view(self._settled(profile, now), None, now, count_read) for profile in known]

    def _settled(self, profile: Profile, now: datetime) -> Profile:
        """Write what has expired by now, if anything has, and return the profile then."""
        if is_due(profile, now):
            profile = self.settler.settle(profile.user_id, now)
            self.cache.write_through([profile])
        return profile

    def _view(
        self, profile: Profile, as_of: date | None, now: datetime, count_read: CountRead
    ) -> dict[str, Any]:
        today_of_user = date_at(profile, now)
        when, repair = as_of or today_of_user, None
        if when == today_of_user:
            repair = self._repair(profile, when, now)
        profile = self._with_protection(profile, when, count_read)
        shown = shown_streak(self._streak(profile, when), profile.cover, when)
        return {
            "user_id": profile.user_id,
            "current_streak": shown.current,
            "longest_streak": shown.longest,
            "streak_status": shown.status.value,
            "last_activity_date": shown.last.isoformat() if shown.last else None,
            "timezone": profile.zone,
            "total_bestie_points": profile.total_points,
            "balance": profile.balance,
            "available": max(0, profile.balance - held_points(profile.holds, now)),
            "debt": debt_of(profile.balance),
            "freezes_available": shown.freezes_available,
            "active_days": shown.active_days,
            "level": level_view(self.settler.books.books().at(now).book.levels, profile.total_points),
            "as_of": when.isoformat(),
            "alias": profile.alias,
            "pauses": spans_view([span for span in profile.cover.pauses if span[1] >= when]),
            "rest_days": weekday_names(profile.cover.rest.on(when)),
            "day_starts_at": f"{start_on(when + DAY, profile.day_starts):%H:%M}",
            **({"rest_days_chosen": chosen} if (chosen := newest_choice(profile)) else {}),
            **({"repair": repair_view(repair)} if repair else {}),
        }

    def _repair(self, profile: Profile, today: date, now: datetime) -> RepairOffer | None:
        """Return what the user may repair; None for nothing."""
        rules = self.settler.books.books().at(now).book.repairs
        try:
            run = self.accounts.newest_break(profile, rules, today, is_strong=False)
            return offered_repair(run, profile.cover, profile.repairs, rules, today)
        except NotRepairable:
            return None

    def _with_protection(self, profile: Profile, until: date, count_read: CountRead) -> Profile:
        """Return the profile with all that protects its streak up to a date."""
        if profile.streak is None or profile.streak.last <= until:
            return profile
        return self.accounts.reaching_back(profile, until + DAY, count_read)

    def _streak(self, profile: Profile, until: date) -> Streak | None:
        """Return the streak with the active dates up to a date."""
        if profile.streak is None or profile.streak.last <= until:
            return profile.streak
        if profile.cover.opening and until < profile.cover.opening.last:
            return None  # another system knows of that time
        history = self.accounts.history(profile, until + DAY, until, is_strong=False)
        return fold(history.dates, profile.cover, history.start)

    def covered(
        self, user_id: str, first: date, last: date, now: datetime, count_read: CountRead = uncounted
    ) -> list[dict[str, str]]:
        """Return the dates of a span up to the user's today that something protects, oldest first.

        Each is {"date", "reason"}. Reasons are those of `explain`. count_read: as of `view`.
        """
        profile = self.accounts.reaching_back(self.get(user_id), first, count_read)
        days = covered_dates(profile, (first, last), date_at(profile, now))
        return [{"date": day.isoformat(), "reason": reason.value} for day, reason in days]

    def explain(
        self, user_id: str, when: date, now: datetime, count_read: CountRead = uncounted
    ) -> dict[str, Any]:
        """Return why a date counts or not: the rule, the zone, the freeze, and the date's first event.

        count_read: as of `view`.
        """
        profile = self._with_protection(self.get(user_id), when, count_read)
        streak = self._streak(profile, when)
        reason, length = explain_date(streak, profile, when, date_at(profile, now))
        day = self._day(user_id, when) if reason is DateReason.COUNTED else None
        first_event = self.events.get(user_id, day["first_event_id"]) if day else None
        zone = first_event.zone if first_event else profile.zone
        return {
            "user_id": user_id,
            "date": when.isoformat(),
            "counts": reason is DateReason.COUNTED,
            "reason": reason.value,
            "rule": DAY_RULES[reason],
            "zone": zone,
            "zone_skipped_it": is_skipped(when, zone),
            "day_starts_at": f"{start_on(when, profile.day_starts):%H:%M}",
            "freeze_used": reason in (DateReason.FREEZE, DateReason.REPAIR),
            **({"amnesty": amnesty_of(profile, when)} if reason is DateReason.AMNESTY else {}),
            "streak_length": length,
            "events_count": day["events_count"] if day else 0,
            "points_earned": day["points_earned"] if day else 0,
            "event": first_event and _event_view(first_event),
        }

    def _day(self, user_id: str, day: date) -> dict[str, Any] | None:
        cached = self.cache.day(user_id, day)
        if cached:
            return cached
        stored = self.accounts.days([(user_id, day)]).get((user_id, day))
        return day_attributes(stored) if stored else None


def level_view(levels: Sequence[Level], points: int) -> dict[str, Any] | None:
    """Return the level of points ever earned, and the next one; None below the first. levels: a book's."""
    level, following = standing_of(levels, points)
    if level is None:
        return None
    following_view = following and _level_fields(following) | {"missing": following.points - points}
    return _level_fields(level) | {"next": following_view}


def _level_fields(level: Level) -> dict[str, Any]:
    picture = {"image_url": level.image_url} if level.image_url else {}
    return {"name": level.name, "title": level.title, "from": level.points, **picture}


def _event_view(event: Event) -> dict[str, str]:
    device = {"device_time": event.device_time, "offline_since": event.offline_since}
    return {
        "event_id": event.event_id,
        "event_type": event.event_type,
        "occurred_at": event.occurred_at,
        "arrived_at": event.created_at,
        **{name: value for name, value in device.items() if value},
    }
