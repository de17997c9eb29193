"""A user's streaks, and why a period counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from adapters.engagement.goals import StreakReader, periods_of
from ingest.engagement.profiles import Profiles
from ingest.web.caller import ApiError
from rules.book.goal_rules import DAILY, NeedKind, StreakPeriod, StreakRule
from rules.book.point_rules import UNIT
from rules.engagement.account_state import Profile
from rules.engagement.goals import (
    KnownPeriods,
    PeriodReason,
    contribution_of,
    dates_of,
    explain_period,
    judging_version,
    outcome,
    progress,
    rule_of,
    shown_goal_streak,
)

RULES = {
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
class GoalViews:
    """Shows streaks: of the profile, and of the book."""

    profiles: Profiles
    reader: StreakReader

    def view(self, user_id: str, as_of: date | None, now: datetime) -> dict[str, Any]:
        """Return a user's streaks on a local date (None: today): the daily one, and those of the book."""
        daily = self.profiles.view(user_id, as_of, now)
        when, books = date.fromisoformat(daily["as_of"]), self.reader.book_store.books()
        pers = periods_of(books, now)
        told = [_daily_view(daily)]
        if pers:
            profile, known = self.reader.periods(
                self.profiles.get(user_id), min(p.first(when) for p in pers.values()), when, now
            )
            told += [_goal_view(known, name, per, profile, when) for name, per in sorted(pers.items())]
        return {"user_id": user_id, "as_of": when.isoformat(), "streaks": told}

    def explain(self, user_id: str, name: str, asked: date, now: datetime) -> dict[str, Any]:
        """Return why the period of a date counts for a streak or not; raises 404 for no such streak."""
        books = self.reader.book_store.books()
        per = periods_of(books, now).get(name)
        if per is None:
            raise ApiError(404, "not_found", "the book in force has no such streak")
        first = per.first(asked)
        profile, known = self.reader.periods(self.profiles.get(user_id), first, per.last(first), now)
        version, rule = judging_version(books, name, first)
        is_over = self.profiles.today(profile, now) > per.last(first)
        letter = outcome(rule, per, first, known.days)
        reason, length = explain_period(
            known.before(name, per, first), letter, profile.cover, is_over=is_over, is_asked=rule is not None
        )
        return {
            "user_id": user_id,
            "name": name,
            "date": asked.isoformat(),
            "counts": reason is PeriodReason.REACHED,
            "reason": reason.value,
            "rule": RULES[reason],
            "rules_version": version.number,
            "streak_length": length,
            "period": _period_view(rule, per, first, known),
            "contributions": _contributions(rule, first, known),
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
    known: KnownPeriods, name: str, per: StreakPeriod, profile: Profile, when: date
) -> dict[str, Any]:
    first = per.first(when)
    rule = rule_of(known.books, name)(first)
    past = known.before(name, per, first)
    have = progress(rule, first, known.days) if rule else 0
    seen, status = shown_goal_streak(rule, past, have, profile.cover)
    return {
        "name": name,
        "per": per.value,
        "current_streak": seen.length,
        "longest_streak": seen.longest,
        "status": status.value,
        "reached": seen.reached,
        "last_reached": seen.last and seen.last.isoformat(),
        "freezes_used": len(seen.spent),
        "period": _period_view(rule, per, first, known),
    }


def _period_view(
    rule: StreakRule | None, per: StreakPeriod, first: date, known: KnownPeriods
) -> dict[str, Any]:
    """Return a period's dates, what it needs, has and lacks. rule: None where nothing is asked."""
    view: dict[str, Any] = {"first": first.isoformat(), "last": per.last(first).isoformat()}
    if rule is None:
        return view
    have, kind = progress(rule, first, known.days), rule.need.kind
    return view | {
        "counts": kind.value,
        **({"property": rule.need.property} if rule.need.property else {}),
        "needs": _number(rule.need.at_least, kind),
        "have": _number(have, kind),
        "missing": _number(max(0, rule.need.at_least - have), kind),
    }


def _contributions(rule: StreakRule | None, first: date, known: KnownPeriods) -> list[dict[str, Any]]:
    """Return the dates of a period that add something, with what they add."""
    if rule is None:
        return []
    found = []
    for day in dates_of(rule.per, first):
        adds = contribution_of(rule.need, rule.event_types, [known.days.get(day, {})])
        if adds:
            found.append({"date": day.isoformat(), "adds": _number(adds, rule.need.kind)})
    return found


def _number(amount: int, kind: NeedKind) -> int | float:
    if kind is not NeedKind.SUM or amount % UNIT == 0:
        return amount // UNIT if kind is NeedKind.SUM else amount
    return amount / UNIT
