"""Users with twenty achievements, which change with twelve versions and more of the book."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from rules.book.goal_rules import StreakPeriod
from rules.engagement.achievements import StreakHistory
from rules.engagement.goals import KnownPeriods, PeriodOutcome, declared_achievements, unsettled_goals
from rules.engagement.ledger import Entry
from tests.support.goal_story import SHIPPED, SIX, GoalStory
from tests.support.plain_achievements import Earned, PlainAchievements
from tests.support.plain_goals import Done
from tests.support.point_story import Json

TWENTY = tuple(f"a{number:02}" for number in range(20))


def corrections_of(entries: Iterable[Entry], counted: list[Entry]) -> dict[str, int]:
    """What was corrected of the points of a date, by the id of its first event."""
    of_events = {each.created_at for each in counted}
    firsts: dict[str, str] = {}
    for each in counted:
        day, event_id = each.draft.activity_date or "", each.draft.event_id or ""
        firsts[day] = min(event_id, firsts.get(day, event_id))
    found: dict[str, int] = {}
    for each in entries:
        day = each.draft.activity_date or ""
        is_points = each.draft.kind in ("EARN", "CLAWBACK", "RERATE")
        if is_points and each.created_at not in of_events and day in firsts:
            found[firsts[day]] = found.get(firsts[day], 0) + each.draft.points
    return found


@dataclass
class AchievementStory(GoalStory):
    """Books with achievements of all kinds of conditions."""

    def some_book(self) -> Json:
        made = super().some_book()
        kept = [name for name in TWENTY if self.chance.random() < 0.9]
        made["achievements"] = {name: self.some_achievement(made) for name in kept}
        return made

    def some_achievement(self, book: Json) -> Json:
        conditions = [self.some_condition(book) for _ in range(self.chance.choice((1, 1, 2, 3)))]
        return {
            self.chance.choice(("all", "any")): conditions,
            "withdrawn": self.chance.choice(("never", "when_untrue")),
            "history": self.chance.random() < 0.6,
        }

    def some_condition(self, book: Json) -> Json:
        kind = self.chance.choice(sorted(book["event_types"]))
        least = self.chance.choice((1, 2, 5, 12, 20))
        streak = self.chance.choice(sorted(book["streaks"]) or [""])
        made: list[Json] = [
            {"points_earned": self.chance.choice((1, 40, 150, 1000))},
            {"count": kind, "at_least": least},
            {
                "sum": {"event_type": kind, "property": "minutes"},
                "at_least": self.chance.choice((0.5, 30.125, 80)),
            },
        ]
        if streak:
            made.append({"streak": streak, "at_least": self.chance.choice((1, 2, 3, 4))})
        return self.chance.choice(made)

    # ---- live, and plain

    def history(self, user: str) -> StreakHistory:
        """The streaks of a user up to the newest period that is over or reached, as days tell them."""
        world = self.worlds[user]
        days = {when: day.measures for when, day in world.days.items() if day.measures}
        known = KnownPeriods(unsettled_goals(self.books), self.books, days)
        end_of_all = self.now.date() + timedelta(days=32)
        found = {}
        for name, (per, _) in SIX.items():
            past = known.before(name, StreakPeriod(per), end_of_all)
            end = past.letters.rfind(PeriodOutcome.REACHED) + 1
            found[name] = type(past)(past.per, past.first, past.letters[:end])
        return StreakHistory(found, world.profile.cover, self.books)

    def dated(self, user: str) -> dict[str, str]:
        """By the plain reading: the id of the event that each achievement is dated at."""
        counted = self.counted(user)
        corrected = corrections_of(self.worlds[user].entries, counted)
        history = [
            Earned(
                each.draft.event_id or "",
                each.draft.points + corrected.get(each.draft.event_id or "", 0),
                Done(
                    date.fromisoformat(each.draft.activity_date or ""),
                    each.draft.event_type or "",
                    self.properties[each.draft.event_id or ""],
                    each.draft.rules_version or 1,
                ),
            )
            for each in counted
        ]
        plain = PlainAchievements(history, self.plain(user), self.now.date())
        number = self.books.at(self.now).number
        document = self.documents[number - 2] if number > 1 else SHIPPED
        found = {}
        for name, said in document.get("achievements", {}).items():
            first = min(
                each.effective_at.date()
                for each in self.books.versions
                if each.number > 1 and name in self.documents[each.number - 2]["achievements"]
            )
            at = plain.dated(said, None if said["history"] else first)
            if at:
                found[name] = at
        assert found.keys() <= declared_achievements(self.books, self.now).keys()
        return found
