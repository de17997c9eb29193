"""What a user sees of streaks and achievements, and why a period counts."""

from collections.abc import Container, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from adapters.engagement.achievements import AchievementReader, AchievementReading, StreakReader, periods_of
from ingest.engagement.profiles import CountRead, Profiles, uncounted
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
from rules.book.goal_rules import DAILY, UNIT, Condition, ConditionKind, NeedKind, StreakPeriod, StreakRule
from rules.engagement.account_state import Profile, date_at
from rules.engagement.achievements import StreakHistory, UserHistory, is_about, key_of
from rules.engagement.bonuses import PaidBonuses, paid_points
from rules.engagement.goals import (
    DeclaredAchievement,
    KnownPeriods,
    PeriodReason,
    contribution_of,
    dates_of,
    declared_achievements,
    explain_period,
    fold_periods,
    judging_version,
    outcome,
    progress,
    rule_of_period,
)
from rules.engagement.streak import StreakStatus

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
ACHIEVEMENT = open_object(
    {
        "name": TEXT,
        "title": TEXT,
        "image_url?": TEXT,
        "achieved": FLAG,
        "achieved_at": text_or_null("when the event occurred by which it became true"),
        "points?": whole("its bonus, once a user", 1),
        "paid?": whole("what the ledger has of the bonus; 0: not yet, or another system has paid", 0),
        "needs": one_of(["all", "any"]),
        "conditions": list_of(_CONDITION),
    }
)
ACHIEVEMENTS_VIEW = open_object(
    {
        "user_id": TEXT,
        "achievements": list_of(ACHIEVEMENT),
        "secrets?": COUNT | {"description": "how many more there are, secret until the user has them"},
    }
)
PERIOD_RULES = {
    PeriodReason.REACHED: "the period has what it needs; it adds 1",
    PeriodReason.FREEZE: "a missed period uses a freeze that was granted up to its end; it adds 0",
    PeriodReason.REST: "the date is a rest day, so it is no miss; it adds 0",
    PeriodReason.SHORT: "a new start of the day cut the date short, so it is no miss; it adds 0",
    PeriodReason.PAUSE: "most dates of the period were paused, so it is no miss; it adds 0",
    PeriodReason.SKIPPED: "the zone skipped most dates of the period, so it is no miss; it adds 0",
    PeriodReason.MISSED: "a missed period that nothing covers ends the run",
    PeriodReason.OPEN: "the period is not over yet",
    PeriodReason.UNASKED: "the book had no such streak when the period began: it is no miss, and adds 0",
    PeriodReason.BEFORE: "there is no run before the first period that was reached",
}


@dataclass(frozen=True, slots=True)
class GoalViews:
    """Shows streaks, of the profile and of the book, and why a period counts."""

    profiles: Profiles
    reader: StreakReader

    def view(
        self, user_id: str, as_of: date | None, now: datetime, count_read: CountRead = uncounted
    ) -> dict[str, Any]:
        """Return a user's streaks on a local date (None: today): the daily one, and those of the book.

        count_read: as of Profiles.view.
        """
        daily = self.profiles.view(user_id, as_of, now, count_read)
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
        is_over = date_at(profile, now) > per.last(first)
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
    rule = rule_of_period(periods.books, name, first)
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
        if not declared:
            return {"user_id": user_id, "achievements": [], "secrets": 0}
        reading = self.reader.read(self.profiles.get(user_id), declared, now)
        achievements = [
            _achievement_view(name, achievement, reading)
            for name, achievement in sorted(declared.items())
            if name in reading.achieved or not achievement.rule.is_secret
        ]
        secrets = len(declared) - len(achievements)
        return {"user_id": user_id, "achievements": achievements, "secrets": secrets}

    def new_by(
        self, profile: Profile, event_ids: AbstractSet[str], event_types: Container[str], now: datetime
    ) -> list[dict[str, Any]]:
        """Return the achievements that a user would not have without these events, which the profile counts.

        event_types: theirs. Nothing is read if no achievement is about them. Raises TooManyEntries.
        """
        books = self.reader.streaks.book_store.books()
        streaks = books.at(now).book.streaks
        declared = declared_achievements(books, now)
        if not any(is_about(each.rule, event_types, streaks) for each in declared.values()):
            return []
        reading = self.reader.read(profile, declared, now, is_strong=True)
        new = reading.new_by(declared, event_ids)
        return [_achievement_view(name, declared[name], reading) for name in sorted(new)]


def _achievement_view(
    name: str, achievement: DeclaredAchievement, reading: AchievementReading
) -> dict[str, Any]:
    picture = {"image_url": achievement.rule.image_url} if achievement.rule.image_url else {}
    return {
        "name": name,
        "title": achievement.rule.title,
        **picture,
        "achieved": name in reading.achieved,
        "achieved_at": reading.achieved.get(name),
        **_bonus_view(name, achievement.rule.points, reading.history.bonuses),
        "needs": "all" if achievement.rule.needs_all else "any",
        "conditions": [
            _condition_view(condition, reading.history, reading.streaks)
            for condition in achievement.rule.conditions
        ],
    }


def _bonus_view(name: str, points: int, paid: PaidBonuses) -> dict[str, int]:
    return {"points": points, "paid": paid_points(paid, name)} if points else {}


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
