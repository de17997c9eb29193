"""What a user sees: the profile, why a day counts, streaks and achievements."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from adapters.engagement.account_items import day_attributes
from adapters.engagement.account_store import AccountStore
from adapters.engagement.achievements import AchievementReader
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.event_store import EventStore
from adapters.engagement.goals import StreakReader, periods_of
from adapters.engagement.points import Settler, is_due
from ingest.engagement.points.balance import AVAILABLE, DEBT
from ingest.web.caller import ApiError
from ingest.web.json_schema import (
    COUNT,
    FLAG,
    TEXT,
    Schema,
    list_of,
    one_of,
    open_object,
    text,
    text_or_null,
    whole,
)
from rules.book.goal_rules import DAILY, Condition, ConditionKind, NeedKind, StreakPeriod, StreakRule
from rules.book.point_rules import UNIT
from rules.days import DAY, is_skipped
from rules.engagement.account_state import Profile, date_at
from rules.engagement.achievements import (
    DeclaredAchievement,
    StreakHistory,
    UserHistory,
    declared_achievements,
    key_of,
)
from rules.engagement.amnesty import amnesty_of
from rules.engagement.events import Event
from rules.engagement.goals import (
    KnownPeriods,
    PeriodReason,
    contribution_of,
    dates_of,
    explain_period,
    fold_periods,
    judging_version,
    outcome,
    progress,
    rule_of,
)
from rules.engagement.ledger import debt_of
from rules.engagement.lots import held_points
from rules.engagement.streak import (
    DateReason,
    Streak,
    StreakStatus,
    covered_dates,
    explain_date,
    fold,
    shown_streak,
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
        "as_of?": TEXT,
    }
)
_AMOUNT: Schema = {"type": "number", "minimum": 0}
_PERIOD = open_object(
    {
        "first": TEXT,
        "last": TEXT,
        "counts?": one_of(NeedKind),
        "property?": TEXT,
        "needs?": _AMOUNT,
        "have?": _AMOUNT,
        "missing?": _AMOUNT,
    },
    description="a date, a week or a month, with what it needs; without that: nothing is asked",
)
_STREAK = open_object(
    {
        "name": text("daily: the streak of the profile"),
        "per": one_of(StreakPeriod),
        "current_streak": COUNT,
        "longest_streak": COUNT,
        "status": one_of(StreakStatus),
        "reached": COUNT | {"description": "periods that were reached, in all"},
        "last_reached": text_or_null("the first date of the newest one"),
        "freezes_used?": COUNT,
        "period?": _PERIOD,
    }
)
STREAKS_VIEW = open_object({"user_id": TEXT, "as_of": TEXT, "streaks": list_of(_STREAK)})
PERIOD_VIEW = open_object(
    {
        "user_id": TEXT,
        "name": TEXT,
        "date": TEXT,
        "counts": FLAG,
        "reason": one_of(PeriodReason),
        "rule": TEXT,
        "rules_version": COUNT,
        "streak_length": COUNT,
        "period": _PERIOD,
        "contributions": list_of(open_object({"date": TEXT, "adds": _AMOUNT})),
    }
)
_CONDITION = open_object(
    {
        "counts": one_of(ConditionKind),
        "event_type?": TEXT,
        "property?": TEXT,
        "streak?": TEXT,
        "needs": _AMOUNT,
        "have": _AMOUNT | {"description": "of a streak: the longest"},
    }
)
_ACHIEVEMENT = open_object(
    {
        "name": TEXT,
        "title": TEXT,
        "achieved": FLAG,
        "achieved_at": text_or_null("when the event occurred by which it became true"),
        "needs": one_of(["all", "any"]),
        "conditions": list_of(_CONDITION),
    }
)
ACHIEVEMENTS_VIEW = open_object({"user_id": TEXT, "achievements": list_of(_ACHIEVEMENT)})
DAY_RULES = {
    DateReason.COUNTED: "a date with at least one event counts, once",
    DateReason.FREEZE: "a missed date is covered by a freeze, in date order; it adds 0",
    DateReason.PAUSE: "a paused date is no miss; it adds 0",
    DateReason.SKIPPED: "a date that the zone skipped is no miss",
    DateReason.AMNESTY: "a date that an outage touched is no miss; it adds 0",
    DateReason.MISSED: "a missed date that nothing covers ends the run",
    DateReason.OPEN: "the date is not over yet",
    DateReason.BEFORE: "there is no run before the first active date",
}
PERIOD_RULES = {
    PeriodReason.REACHED: "the period has what it needs; it adds 1",
    PeriodReason.FREEZE: "a missed period uses a freeze that was granted up to its end; it adds 0",
    PeriodReason.PAUSE: "most dates of the period were paused, so it is no miss; it adds 0",
    PeriodReason.SKIPPED: "the zone skipped most dates of the period, so it is no miss; it adds 0",
    PeriodReason.MISSED: "a missed period that nothing covers ends the run",
    PeriodReason.OPEN: "the period is not over yet",
    PeriodReason.UNASKED: "the book had no such streak when the period began: it is no miss, and adds 0",
    PeriodReason.BEFORE: "there is no run before the first period that was reached",
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
        profile = self._with_protection(profile, when)
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
            "available": max(0, profile.balance - held_points(profile.holds, now)),
            "debt": debt_of(profile.balance),
            "freezes_available": shown.freezes_available,
            "active_days": shown.active_days,
            "as_of": when.isoformat(),
        }

    def today(self, profile: Profile, now: datetime) -> date:
        """Return the user's today, or the newest active date if that is later."""
        return date_at(profile, now)

    def _with_protection(self, profile: Profile, until: date) -> Profile:
        """Return the profile with all that protects its streak up to a date.

        Raises AccountContended if its archive is damaged.
        """
        if profile.streak is None or profile.streak.last <= until:
            return profile
        return self.accounts.full_profile(profile, until + DAY)

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
        profile = self.accounts.full_profile(self.get(user_id), first)
        days = covered_dates(profile.streak, profile.cover, (first, last), self.today(profile, now))
        return [
            {"date": day.isoformat(), "reason": _date_reason(reason, amnesty_of(profile, day)).value}
            for day, reason in days
        ]

    def explain(self, user_id: str, when: date, now: datetime) -> dict[str, Any]:
        """Return why a date counts or not: the rule, the zone, the freeze, and the date's first event."""
        profile = self._with_protection(self.get(user_id), when)
        streak = self._streak(profile, when)
        reason, length = explain_date(streak, profile.cover, when, self.today(profile, now))
        amnesty = amnesty_of(profile, when)
        reason = _date_reason(reason, amnesty)
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
            "freeze_used": reason is DateReason.FREEZE,
            **({"amnesty": amnesty} if reason is DateReason.AMNESTY else {}),
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


def _event_view(event: Event) -> dict[str, str]:
    device = {"device_time": event.device_time, "offline_since": event.offline_since}
    return {
        "event_id": event.event_id,
        "event_type": event.event_type,
        "occurred_at": event.occurred_at,
        "arrived_at": event.created_at,
        **{name: value for name, value in device.items() if value},
    }


def _date_reason(reason: DateReason, amnesty: int | None) -> DateReason:
    """Return the reason of a date without activity: an amnesty's dates are among those that are skipped."""
    return DateReason.AMNESTY if reason is DateReason.SKIPPED and amnesty else reason


@dataclass(frozen=True, slots=True)
class GoalViews:
    """Shows streaks, of the profile and of the book, and why a period counts."""

    profiles: Profiles
    reader: StreakReader

    def view(self, user_id: str, as_of: date | None, now: datetime) -> dict[str, Any]:
        """Return a user's streaks on a local date (None: today): the daily one, and those of the book."""
        daily = self.profiles.view(user_id, as_of, now)
        when, books = date.fromisoformat(daily["as_of"]), self.reader.book_store.books()
        per_of_streak = periods_of(books, now)
        streaks = [_daily_view(daily)]
        if per_of_streak:
            first = min(per.first(when) for per in per_of_streak.values())
            profile, periods = self.reader.periods(self.profiles.get(user_id), first, when, now)
            streaks += [
                _goal_view(periods, name, per, profile, when) for name, per in sorted(per_of_streak.items())
            ]
        return {"user_id": user_id, "as_of": when.isoformat(), "streaks": streaks}

    def explain(self, user_id: str, name: str, when: date, now: datetime) -> dict[str, Any]:
        """Return why the period of a date counts for a streak or not; raises 404 for no such streak."""
        books = self.reader.book_store.books()
        per = periods_of(books, now).get(name)
        if per is None:
            raise ApiError(404, "not_found", "the book in force has no such streak")
        first = per.first(when)
        profile, periods = self.reader.periods(self.profiles.get(user_id), first, per.last(first), now)
        version, rule = judging_version(books, name, first)
        is_over = self.profiles.today(profile, now) > per.last(first)
        letter = outcome(rule, per, first, periods.days)
        reason, length = explain_period(
            periods.before(name, per, first),
            letter,
            profile.cover,
            is_over=is_over,
            is_asked=rule is not None,
        )
        return {
            "user_id": user_id,
            "name": name,
            "date": when.isoformat(),
            "counts": reason is PeriodReason.REACHED,
            "reason": reason.value,
            "rule": PERIOD_RULES[reason],
            "rules_version": version.number,
            "streak_length": length,
            "period": _period_view(rule, per, first, periods),
            "contributions": _contributions(rule, first, periods),
        }


def _daily_view(profile: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": DAILY,
        "per": StreakPeriod.DAY.value,
        "current_streak": profile["current_streak"],
        "longest_streak": profile["longest_streak"],
        "status": profile["streak_status"],
        "reached": profile["active_days"],
        "last_reached": profile["last_activity_date"],
    }


def _goal_view(
    periods: KnownPeriods, name: str, per: StreakPeriod, profile: Profile, when: date
) -> dict[str, Any]:
    first = per.first(when)
    rule = rule_of(periods.books, name)(first)
    streak, status = periods.standing(name, per, when, profile.cover)
    return {
        "name": name,
        "per": per.value,
        "current_streak": streak.length,
        "longest_streak": streak.longest,
        "status": status.value,
        "reached": streak.reached,
        "last_reached": streak.last and streak.last.isoformat(),
        "freezes_used": len(streak.spent),
        "period": _period_view(rule, per, first, periods),
    }


def _period_view(
    rule: StreakRule | None, per: StreakPeriod, first: date, periods: KnownPeriods
) -> dict[str, Any]:
    """Return a period's dates, what it needs, has and lacks. rule: None where nothing is asked."""
    view: dict[str, Any] = {"first": first.isoformat(), "last": per.last(first).isoformat()}
    if rule is None:
        return view
    have, kind = progress(rule, first, periods.days), rule.need.kind
    return view | {
        "counts": kind.value,
        **({"property": rule.need.property} if rule.need.property else {}),
        "needs": _amount(rule.need.at_least, kind),
        "have": _amount(have, kind),
        "missing": _amount(max(0, rule.need.at_least - have), kind),
    }


def _contributions(rule: StreakRule | None, first: date, periods: KnownPeriods) -> list[dict[str, Any]]:
    """Return the dates of a period that add something, with what they add."""
    if rule is None:
        return []
    contributions = []
    for day in dates_of(rule.per, first):
        adds = contribution_of(rule.need, rule.event_types, [periods.days.get(day, {})])
        if adds:
            contributions.append({"date": day.isoformat(), "adds": _amount(adds, rule.need.kind)})
    return contributions


def _amount(stored: int, kind: NeedKind | ConditionKind) -> float:
    """Return an amount as people write it. A sum is stored in thousandths."""
    if kind not in (NeedKind.SUM, ConditionKind.SUM):
        return stored
    return stored / UNIT if stored % UNIT else stored // UNIT


@dataclass(frozen=True, slots=True)
class AchievementViews:
    """Shows achievements: which a user has, since when, and how far the others are."""

    profiles: Profiles
    reader: AchievementReader

    def view(self, user_id: str, now: datetime) -> dict[str, Any]:
        """Return all achievements of the book in force."""
        declared = declared_achievements(self.reader.streaks.book_store.books(), now)
        achievements = self._views(user_id, declared, now) if declared else []
        return {"user_id": user_id, "achievements": achievements}

    def _views(
        self, user_id: str, declared: Mapping[str, DeclaredAchievement], now: datetime
    ) -> list[dict[str, Any]]:
        reading = self.reader.read(self.profiles.get(user_id), declared, now)
        return [
            {
                "name": name,
                "title": achievement.rule.title,
                "achieved": name in reading.achieved,
                "achieved_at": reading.achieved.get(name),
                "needs": "all" if achievement.rule.needs_all else "any",
                "conditions": [
                    _condition_view(condition, reading.history, reading.streaks)
                    for condition in achievement.rule.conditions
                ],
            }
            for name, achievement in sorted(declared.items())
        ]


def _condition_view(condition: Condition, history: UserHistory, streaks: StreakHistory) -> dict[str, Any]:
    if condition.kind is ConditionKind.STREAK:
        have = fold_periods(streaks.periods[condition.streak or ""], streaks.cover).longest
    else:
        have = history.sums().get(key_of(condition), 0)
    subject = {"event_type": condition.event_type, "property": condition.property, "streak": condition.streak}
    return {
        "counts": condition.kind.value,
        **{name: value for name, value in subject.items() if value},
        "needs": _amount(condition.at_least, condition.kind),
        "have": _amount(have, condition.kind),
    }
