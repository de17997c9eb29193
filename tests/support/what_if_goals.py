"""Stories for what-if whose books have streaks and achievements, with a plain reading of what users have of them."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from rules.book.document import read_book
from rules.engagement.account_state import date_at
from rules.engagement.ledger import Entry
from tests.support.achievement_story import corrections_of
from tests.support.goal_story import MINUTES, SIX
from tests.support.plain_achievements import Earned, PlainAchievements
from tests.support.plain_goals import ONE, Done, PlainGoals, Protection, Run, label, least
from tests.support.what_if_story import Json, Told, WhatIfStory, properties_of

FIVE = tuple(f"a{number}" for number in range(5))
Numbered = Sequence[tuple[int, datetime, Json]]
Figures = dict[tuple[str, str], tuple[int, int, int]]


class GoalWhatIfStory(WhatIfStory):
    """Books have some of six streaks, and some of five achievements; some books have none."""

    def some_book(self) -> Json:
        made = super().some_book()
        for said in made["event_types"].values():
            said["properties"] = {"properties": {"minutes": MINUTES}}
        if self.chance.random() < 0.8:
            kept = [name for name in SIX if self.chance.random() < 0.7]
            made["streaks"] = {
                name: self.some_streak(*SIX[name], sorted(made["event_types"])) for name in kept
            }
        if self.chance.random() < 0.8:
            names = [name for name in FIVE if self.chance.random() < 0.7]
            made["achievements"] = {name: self.some_achievement(made) for name in names}
        return made

    def some_streak(self, per: str, kind: str, types: list[str]) -> Json:
        needs: Json = {
            "events": self.chance.choice((1, 2, 3)),
            "active_days": self.chance.choice((1, 2)),
            "sum": {"property": "minutes", "at_least": self.chance.choice((0.5, 10, 30.125))},
        }
        said: Json = {"per": per, "needs": {kind: needs[kind]}}
        if kind == "sum" or self.chance.random() < 0.6:
            said["event_types"] = self.chance.sample(types, self.chance.randrange(1, len(types) + 1))
        return said | {name: self.chance.random() < 0.5 for name in ("freezes", "pauses")}

    def some_achievement(self, book: Json) -> Json:
        kind, streak = self.chance.choice(sorted(book["event_types"])), sorted(book.get("streaks", {}))
        some: list[Json] = [
            {"points_earned": self.chance.choice((1, 40, 150))},
            {"count": kind, "at_least": self.chance.choice((1, 3, 9))},
            {
                "sum": {"event_type": kind, "property": "minutes"},
                "at_least": self.chance.choice((0.5, 40.125)),
            },
        ]
        some += (
            [{"streak": self.chance.choice(streak), "at_least": self.chance.choice((1, 2, 3))}]
            if streak
            else []
        )
        conditions = [self.chance.choice(some) for _ in range(self.chance.choice((1, 1, 2)))]
        history = self.chance.random() < 0.5
        return {self.chance.choice(("all", "any")): conditions, "history": history, "title": f"T{len(some)}"}

    # ---- the versions as documents

    def numbered(self) -> Numbered:
        return [
            (each.number, each.effective_at, self.documents[each.number - 1]) for each in self.books.versions
        ]

    def numbered_with(self, document: Json, since: datetime | None, until: datetime | None) -> Numbered:
        """The same for books_with."""
        real = {number: said for number, _, said in self.numbered()}
        books = self.books_with(read_book(document), since, until)
        at_end = self.books.at(until).number if until else 0
        of = {100: document, 101: real.get(at_end)}
        return [
            (each.number, each.effective_at, of.get(each.number) or real[each.number % 200])
            for each in books.versions
        ]


def counted_of(entries: Sequence[Entry]) -> list[Entry]:
    gone = {each.draft.event_id for each in entries if each.draft.kind == "CLAWBACK"}
    return [each for each in entries if each.draft.kind == "EARN" and each.draft.event_id not in gone]


def plain_goals(told: Told, numbered: Numbered) -> tuple[PlainGoals, list[Earned]]:
    entries = told.world.entries
    counted = counted_of(entries)
    corrected = corrections_of(entries, counted)
    history = []
    for each in counted:
        at = each.draft.event_id or ""
        done = Done(
            date.fromisoformat(each.draft.activity_date or ""),
            each.draft.event_type or "",
            properties_of(told.events[at].idempotency_key),
            each.draft.rules_version or 1,
        )
        history.append(Earned(at, each.draft.points + corrected.get(at, 0), done))
    changes = [
        (date.fromisoformat(each.draft.freeze_date or ""), 1 if "granted" in each.draft.freeze else -1)
        for each in entries
        if each.draft.freeze
        and each.draft.freeze_date
        and each.draft.freeze.value in ("freeze_granted", "freeze_revoked")
    ]
    cover = told.world.profile.cover
    protection = Protection(changes, cover.pauses, cover.skipped)
    return PlainGoals(numbered, [each.done for each in history], protection), history


def standing(plain: PlainGoals, name: str, per: str, today: date) -> Run:
    """A streak as it shows on a date: the period of that date counts if it is reached."""
    run = plain.run(name, per, today - ONE)
    dates = [today + timedelta(days=each) for each in range(-31, 32)]
    dates = [each for each in dates if label(per, each) == label(per, today)]
    if dates[-1] == today - ONE:
        return run
    book, _ = plain.asking(name, dates)
    streak = book.get("streaks", {}).get(name)
    if streak and streak["per"] == per:
        keeping = [kind for kind, said in book["event_types"].items() if said.get("keeps_streak", True)]
        if plain.have(streak, streak.get("event_types", keeping), dates) >= least(streak["needs"]):
            run.length, run.reached = run.length + 1, run.reached + 1
            run.longest = max(run.longest, run.length)
    return run


def plain_figures(
    told: Mapping[str, Told], numbered: Numbered, now: datetime, names: Mapping[str, str | None]
) -> Figures:
    """What users have of streaks and achievements. names: with the period of a streak."""
    found: Figures = {}
    for user, each in told.items():
        plain, history = plain_goals(each, numbered)
        document: Any = PlainGoals(numbered, []).newest(now)
        today = date_at(each.world.profile, now)
        for name, per in names.items():
            if per is not None and name in document.get("streaks", {}):
                run = standing(plain, name, per, today)
                if run.reached:
                    found[name, user] = run.length, run.longest, run.reached
            said = document.get("achievements", {}).get(name)
            if per is None and said:
                first = min(at.date() for _, at, book in numbered if name in book.get("achievements", {}))
                achievements = PlainAchievements(history, plain, now.date())
                if achievements.dated(said, None if said["history"] else first):
                    found[name, user] = 1, 1, 1
    return found
