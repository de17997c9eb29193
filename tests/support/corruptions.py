"""Ways to corrupt a town's tables by hand, by name."""

from collections.abc import Callable
from typing import Any

from adapters.platform.items import Item
from tests.support.town import Town


def edit(change: Callable[[Item], Any]) -> Callable[[Town, str], None]:
    def apply(town: Town, user: str) -> None:
        profile = town.profile(user)
        before = dict(profile)
        change(profile)
        assert profile != before
        town.put("UserStreaks", profile)

    return apply


def edit_day(change: Callable[[Item], Any]) -> Callable[[Town, str], None]:
    def apply(town: Town, user: str) -> None:
        when, day = town.chance.choice(sorted(town.projections.days(user).items()))
        before = dict(day)
        change(day)
        assert day != before, when
        town.put("DailyActivity", day)

    return apply


def lost_profile(town: Town, user: str) -> None:
    town.delete("UserStreaks", user_id=user)


def lost_day(town: Town, user: str) -> None:
    town.delete("DailyActivity", user_id=user, activity_date=max(town.projections.days(user)))


def made_up_day(town: Town, user: str) -> None:
    day = next(iter(town.projections.days(user).values()))
    town.put("DailyActivity", {**day, "activity_date": {"S": "2026-02-02"}})


def number(name: str, by: int) -> Callable[[Item], Any]:
    return lambda each: each.update({name: {"N": str(int(each[name]["N"]) + by)}})


def value(name: str, wire: dict[str, Any]) -> Callable[[Item], Any]:
    return lambda each: each.update({name: wire})


def without(*names: str) -> Callable[[Item], Any]:
    return lambda each: [each.pop(name, None) for name in names]


HAND = {
    "total": edit(number("total_bestie_points", 10)),
    "balance": edit(number("balance", -1)),
    "streak": edit(number("current_streak", 3)),
    "longest": edit(number("longest_streak", 100)),
    "active days": edit(number("active_days", -1)),
    "seq": edit(number("ledger_seq", 1)),
    "lapses": edit(number("lapses_at", -86400 * 40)),
    "date": edit(value("last_activity_date", {"S": "2026-03-01"})),
    "head in the past": edit(value("ledger_head", {"S": "2026-01-01T00:00:00.000000Z"})),
    "head in the future": edit(value("ledger_head", {"S": "2031-01-01T00:00:00.000000Z"})),
    "head as number": edit(value("ledger_head", {"N": "-3"})),
    "freezes": edit(value("freezes", {"S": "2025-03-01+1"})),
    "freezes spent": edit(value("freezes_spent", {"S": "2025-03-01"})),
    "checkpoint": edit(value("streak_checkpoints", {"L": [{"S": "2020-01-31 1 1 1 7"}]})),
    "checkpoint that cannot be read": edit(value("streak_checkpoints", {"L": [{"S": "2020-01-31"}]})),
    "pauses": edit(value("pauses", {"S": "2025-03-01/1"})),
    "pauses as a list": edit(value("pauses", {"L": [{"S": "2025-03-01/1"}]})),
    "skipped": edit(value("skipped_dates", {"L": [{"S": "2026-03-14"}]})),
    "partition": edit(value("leaderboard_partition", {"S": "arctic#0"})),
    "zone": edit(value("timezone", {"S": "Arctic/Longyearbyen"})),
    "chosen zone": edit(
        lambda each: each.update({"chosen_zone": {"S": "Africa/Cairo"}, "timezone": {"S": "Africa/Cairo"}})
    ),
    "no zone that is": edit(value("chosen_zone", {"S": "Mars/Base"})),
    "review": edit(value("tz_review", {"S": "yes"})),
    "total as text": edit(value("total_bestie_points", {"S": "many"})),
    "balance as text": edit(lambda each: each.update({"balance": {"S": each["balance"]["N"]}})),
    "longest as flag": edit(value("longest_streak", {"BOOL": True})),
    "version as text": edit(value("version", {"S": "4"})),
    "total as fraction": edit(value("total_bestie_points", {"N": "1.5"})),
    "updated as number": edit(value("streak_updated_at", {"N": "4"})),
    "no version": edit(without("version")),
    "no head": edit(without("ledger_head")),
    "no head and seq": edit(without("ledger_head", "ledger_seq")),
    "no streak": edit(without("last_activity_date")),
    "no date of update": edit(without("streak_updated_at")),
    "no partition": edit(without("leaderboard_partition", "lapses_at")),
    "no total": edit(without("total_bestie_points")),
    "no zone": edit(without("timezone")),
    "no active days": edit(without("observed_at", "active_days")),
    "one too many": edit(value("nickname", {"S": "Bob"})),
    "almost empty": edit(lambda each: [each.pop(name) for name in list(each) if name != "user_id"]),
    "lost": lost_profile,
    "day lost": lost_day,
    "day made up": made_up_day,
    "day count": edit_day(number("events_count", 1)),
    "day points": edit_day(number("points_earned", -5)),
    "day points as text": edit_day(value("points_earned", {"S": "5"})),
    "day head": edit_day(value("ledger_head", {"S": "2031-01-01T00:00:00.000000Z"})),
    "day without head": edit_day(without("ledger_head")),
    "day first": edit_day(value("first_event_id", {"S": "2026-01-01T00:00:00Z#x"})),
    "day types": edit_day(value("points_by_cap", {"M": {"CHECK_IN": {"N": "0"}, "X": {"N": "1"}}})),
    "day created": edit_day(value("created_at", {"S": "2026-01-01T00:00:00.000000Z"})),
    "day almost empty": edit_day(
        lambda each: [each.pop(name) for name in list(each) if name not in ("user_id", "activity_date")]
    ),
}
