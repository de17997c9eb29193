"""Users with six kinds of streaks under a book of twelve versions and more, with freezes, pauses and moves."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any

from adapters.engagement.account_items import profile_attributes
from adapters.platform.items import Item, encode_item
from rules.book.book import terms_of
from rules.days import AT_MIDNIGHT, date_of, parse_moment, stamp
from rules.engagement.events import Event, event_id
from rules.engagement.ledger import Entry
from rules.lake.entities import STREAKS, Entity
from tests.support.account_world import grant, revoke
from tests.support.plain_goals import Done, PlainGoals, Protection
from tests.support.point_story import KINDS, ZONES, Json, PointStory

# Each with its period; what it needs changes with each version.
SIX = {
    "d_events": ("day", "events"),
    "w_days": ("week", "active_days"),
    "w_events": ("week", "events"),
    "w_minutes": ("week", "sum"),
    "m_minutes": ("month", "sum"),
    "m_days": ("month", "active_days"),
}
DAYS = 75
MINUTES: Json = {"type": "number", "minimum": 0, "maximum": 1000}


@dataclass
class GoalStory(PointStory):
    """properties: what each event was sent with, by its id."""

    properties: dict[str, Json] = field(default_factory=dict)
    documents: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.now = self.base + timedelta(days=DAYS + 20)

    def some_instant(self) -> datetime:
        return self.base + timedelta(hours=self.chance.choice((0, 1, 24, *range(-48, 24 * DAYS, 6))))

    def some_book(self) -> Json:
        made = super().some_book()
        for said in made["event_types"].values():
            said["properties"] = {"properties": {"minutes": MINUTES}}
        kept = [name for name in SIX if self.chance.random() < 0.85]
        made["streaks"] = {name: self.some_streak(*SIX[name], sorted(made["event_types"])) for name in kept}
        self.documents.append(made)
        return made

    def some_streak(self, per: str, kind: str, types: list[str]) -> Json:
        dates = {"day": 1, "week": 7, "month": 28}[per]
        needs: Json = {
            "events": self.chance.choice((1, 2, dates // 2 or 1)),
            "active_days": self.chance.randrange(1, dates // 2 + 2),
            "sum": {"property": "minutes", "at_least": self.chance.choice((0.5, 10, 30.125, 7 * dates))},
        }
        said: Json = {"per": per, "needs": {kind: needs[kind]}}
        if kind == "sum" or self.chance.random() < 0.6:
            said["event_types"] = self.chance.sample(types, self.chance.randrange(1, len(types) + 1))
        return said | {name: self.chance.random() < 0.5 for name in ("freezes", "pauses")}

    def some_event(self, user: str, number: int) -> Event | None:
        """An event, as the door accepts it. Users move from zone to zone every nine days."""
        days, hours = self.chance.randrange(DAYS), self.chance.choice((0, 5, 12, 22, 23))
        if days // 10 % 3 == int(user[1:]) % 3 and self.chance.random() < 0.8:
            return None  # some days in a row with little in them
        at = self.base + timedelta(days=days, hours=hours, minutes=self.chance.choice((0, 30, 59)))
        return self.accepted(user, f"k{number}", at, ZONES[(int(user[1:]) + days // 9) % len(ZONES)])

    def accepted(self, user: str, key: str, at: datetime, zone: str) -> Event | None:
        """An event of some type, with some properties; None if no version takes the type."""
        kind = self.chance.choice(KINDS)
        version = next(self.books.judging(kind, at, self.now), None)
        if version is None:
            return None
        said = (
            {"minutes": self.chance.choice((0, 0.5, 5, 12.125, 0.1, 0.2))}
            if self.chance.random() < 0.8
            else {}
        )
        terms, moment = terms_of(version, kind, at, said), parse_moment(at.isoformat())
        day, read_in = date_of(moment, zone, None, AT_MIDNIGHT)
        made = Event(
            *(user, event_id(user, key, moment), key, kind, at.isoformat(), day, read_in),
            terms.points,
            source="test",
            created_at=stamp(self.now),
            rules_version=terms.version,
            cap=terms.cap,
            is_passive=not terms.keeps_streak,
            measures=terms.measures,
            timezone=zone,
        )
        self.properties[made.event_id] = said
        return made

    def live(self, users: int = 3, events: int = 120) -> None:
        super().live(users, events)
        for world in self.worlds.values():
            days = [self.base.date() + timedelta(days=self.chance.randrange(DAYS)) for _ in range(6)]
            for day in days[: self.chance.randrange(5)]:
                world.apply(commands=[grant(day)])
            if self.chance.random() < 0.3:
                world.apply(commands=[revoke(max(days))])
            pauses = tuple(
                (day, day + timedelta(days=self.chance.randrange(1, 12)))
                for day in days[self.chance.randrange(7) :]
            )
            cover = replace(world.profile.cover, pauses=pauses)
            world.set(replace(world.profile, cover=cover))

    def rows(self) -> Mapping[tuple[str, Entity], list[Item]]:
        profiles = [encode_item(profile_attributes(world.profile)) for world in self.worlds.values()]
        return {**super().rows(), ("UserStreaks", STREAKS): profiles}

    # ---- the same, as the plain reading takes it

    def counted(self, user: str) -> list[Entry]:
        """The entries of events that nobody has reversed."""
        entries = self.worlds[user].entries
        gone = {each.draft.event_id for each in entries if each.draft.kind == "CLAWBACK"}
        return [each for each in entries if each.draft.kind == "EARN" and each.draft.event_id not in gone]

    def plain(self, user: str) -> PlainGoals:
        world = self.worlds[user]
        done = [
            Done(
                date.fromisoformat(each.draft.activity_date or ""),
                each.draft.event_type or "",
                self.properties[each.draft.event_id or ""],
                each.draft.rules_version or 1,
            )
            for each in self.counted(user)
        ]
        cover = world.profile.cover
        changes = [
            (date.fromisoformat(each.draft.freeze_date or ""), 1 if "granted" in each.draft.freeze else -1)
            for each in world.entries
            if each.draft.freeze and each.draft.freeze.value in ("freeze_granted", "freeze_revoked")
        ]
        numbered: list[tuple[int, datetime, Any]] = [
            (each.number, each.effective_at, self.documents[each.number - 2] if each.number > 1 else SHIPPED)
            for each in self.books.versions
        ]
        return PlainGoals(numbered, done, Protection(changes, cover.pauses, cover.skipped))


SHIPPED: Json = {"event_types": {}}


def shuffled(events: list[Event], seed: int) -> list[Event]:
    """Events in another order."""
    found = list(events)
    random.Random(seed).shuffle(found)
    return found
