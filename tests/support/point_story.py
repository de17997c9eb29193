"""A history of the book with twelve versions and more, and users whose events are judged by them: live.

Live is what the functions do, without their sockets: the store of versions, the rules that judge, the rules
that apply an account's events, the publisher with all its rows, and curation.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from adapters.book_store import DOCUMENTS, BookStore
from adapters.engagement.account_items import entry_item
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.objects import Objects
from adapters.platform.publishing import DeliveryStream
from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from processors.publisher import Publisher
from rules.book.book import Terms, Version, terms_of
from rules.days import AT_MIDNIGHT, date_of, parse_moment, stamp
from rules.engagement.account_state import Account, Profile
from rules.engagement.events import Event, event_id, to_item
from rules.engagement.ledger import EntryKind
from rules.engagement.points import balancing_entries, clawback, reversed_events, shortfalls
from rules.lake.entities import EVENTS, LEDGER, RULES, Entity
from rules.lake.packed_records import HEADER
from tests.support.account_world import World
from tests.support.effort import SOAK
from tests.support.firehose import Firehose
from tests.support.published_books import Table, publish
from tests.support.raw_lake import ARRIVED

# A Monday each. In the first history lies ISO week 53 of 2026, in the others clocks change.
BASES = tuple(datetime(*day, tzinfo=UTC) for day in ((2026, 12, 21), (2027, 3, 22), (2026, 10, 19)))
ZONES = ("Europe/Berlin", "Asia/Tokyo", "America/Lima", "America/New_York")
KINDS = ("A", "B_B", "B.B", "W", "P")
BY_AMOUNT = "M"  # a type that earns by minutes
ALL_KINDS = (*KINDS, BY_AMOUNT)
VERSIONS_MIN = 12
HOURS = 24 * 20  # of a history
Json = dict[str, Any]
Judge = Callable[[Version, str, datetime, Json], Terms]


def type_by_amount(chance: random.Random) -> Json:
    """Return a type that earns by minutes, often with a cap."""
    each, earns = chance.choice(((5, 1), (0.1, 2), (0.003, 1), (30, 100)))
    said: Json = {"points": {"base": chance.choice((0, 2)), "of": "minutes", "each": each, "earns": earns}}
    if chance.random() < 0.6:
        said["cap"] = {"points": chance.choice((2, 7, 40)), "per": chance.choice(("day", "week"))}
    return said


def as_they_were_and_rewritten(seeds: int) -> list[tuple[int, bool]]:
    """Return (seed, whether its history is rewritten): `make test` takes each seed one of both ways."""
    return [(seed, is_) for seed in range(seeds) for is_ in (False, True) if SOAK or is_ == bool(seed % 2)]


class WholeWorld(World):
    """A user whose days are all read, also those that caps over weeks ask for."""

    def account(self, dates: Iterable[date]) -> Account:
        read = super().account(dates)
        return replace(read, days={**dict.fromkeys(read.days), **self.days})


@dataclass
class PointStory:
    """judge: what a version says of an event; a planted fault says something else."""

    seed: int
    judge: Judge = terms_of
    table: Table = field(default_factory=Table)
    users: dict[str, list[Event]] = field(default_factory=dict)
    worlds: dict[str, WholeWorld] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.base = self.some_base()
        self.now = self.base + timedelta(days=40)
        for _ in range(self.chance.randrange(VERSIONS_MIN, VERSIONS_MIN + 4)):
            before = self.base - timedelta(days=9)
            publish(self.table, self.some_book(), self.some_instant(), before)
        store = BookStore(self.table, "RuleBooks")
        self.books = store.look()

    def some_base(self) -> datetime:
        return BASES[self.seed % len(BASES)]

    def some_instant(self) -> datetime:
        """Two of them are often the same; many are midnights somewhere."""
        return self.base + timedelta(hours=self.chance.choice((0, 1, 23, 120, 168, *range(-48, HOURS, 6))))

    def some_book(self) -> Json:
        types = {
            kind: self.some_type(kind) for kind in ALL_KINDS if kind == "A" or self.chance.random() < 0.9
        }
        return {"event_types": types, "boosts": list(self.some_boosts(sorted(types)))}

    def some_type(self, kind: str) -> Json:
        if kind == BY_AMOUNT:
            return type_by_amount(self.chance)
        points = self.chance.choice((0, 1, 3, 7, 10, 900))
        said: Json = {"points": points, "keeps_streak": kind != "P"}
        if self.chance.random() < 0.85:
            per = "week" if kind == "W" else self.chance.choice(("day", "day", "week"))
            most = self.chance.choice([points, points + 1, points * 2, points * 3 + 2])
            cap = (
                {"events": self.chance.choice((1, 2, 3))} if self.chance.random() < 0.4 else {"points": most}
            )
            said["cap"] = cap | {"per": per}
        return said

    def some_boosts(self, kinds: list[str]) -> Iterator[Json]:
        """Boosts that follow each other; of all types, or of some."""
        at = self.base
        while self.chance.random() < 0.8 and at < self.base + timedelta(days=20):
            since = at + timedelta(hours=self.chance.randrange(1, 90))
            at = since + timedelta(hours=self.chance.randrange(1, 60))
            boost: Json = {
                "since": since.isoformat(),
                "until": at.isoformat(),
                "factor": self.chance.choice((2, 3)),
            }
            if self.chance.random() < 0.6:
                boost["event_types"] = self.chance.sample(kinds, self.chance.randrange(1, len(kinds) + 1))
            yield boost

    # ---- what users do

    def live(self, users: int = 3, events: int = 70) -> None:
        """Users whose events come in any order, in batches, some of them twice; all later than all versions."""
        for number in range(users):
            name = f"u{number}"
            found = list(filter(None, (self.some_event(name, each) for each in range(events))))
            self.users[name] = list({each.event_id: each for each in found}.values())
            self.worlds[name] = WholeWorld(Profile(name), now=self.now)
            sent = [*self.users[name], *self.chance.sample(self.users[name], 9)]
            self.chance.shuffle(sent)
            while sent:
                size = self.chance.randrange(1, 9)
                batch, sent = sent[:size], sent[size:]
                self.worlds[name].apply(list({each.event_id: each for each in batch}.values()))

    def some_event(self, user: str, number: int) -> Event | None:
        """An event of a random instant, as the door accepts it; None if no version takes its type."""
        days, hours = self.chance.randrange(18), self.chance.choice((0, 5, 12, 22, 23))
        at = self.base + timedelta(days=days, hours=hours, minutes=self.chance.choice((0, 30, 59)))
        kind, zone = self.chance.choice(ALL_KINDS), ZONES[int(user[1:]) % len(ZONES)]
        version = next(self.books.judging(kind, at, self.now), None)
        if version is None:
            return None
        properties = (
            {"minutes": self.chance.choice((0, 0.1, 0.3, 4.999, 5, 29.5, 600))} if kind == BY_AMOUNT else {}
        )
        terms, moment = self.judge(version, kind, at, properties), parse_moment(at.isoformat())
        day, read_in = date_of(moment, zone, None, AT_MIDNIGHT)
        key = f"k{number}"
        return Event(
            *(user, event_id(user, key, moment), key, kind, at.isoformat(), day, read_in, terms.points),
            source="test",
            created_at=stamp(self.now),
            rules_version=terms.version,
            cap=terms.cap,
            is_passive=not terms.keeps_streak,
            measures=terms.measures,
            timezone=zone,
        )

    def rewrite(self, reversals: int = 12, versions: int = 4) -> None:
        """Events are reversed; versions take effect in the past, and all ledgers follow; and both again."""
        worlds = list(self.worlds.values())
        for _ in range(2):
            for world in worlds:
                for _ in range(reversals):
                    self.reverse_one(world)
            for _ in range(versions):
                book = self.some_book()
                book["event_types"] = {kind: self.some_type(kind) for kind in ALL_KINDS} | book["event_types"]
                publish(self.table, book, self.some_instant(), self.now)
            self.books = BookStore(self.table, "RuleBooks").look()
            for world in worlds:
                changes = shortfalls([each.draft for each in world.entries], self.books)
                world.apply(commands=balancing_entries(changes, self.books.newest.number, "rerated"))

    def reverse_one(self, world: WholeWorld) -> None:
        drafts = [each.draft for each in world.entries]
        gone = reversed_events(drafts)
        left = [
            each
            for each in world.entries
            if each.draft.kind is EntryKind.EARN and each.draft.event_id not in gone
        ]
        if left:
            earned = self.chance.choice(left)
            made = clawback(earned.draft, earned.created_at, drafts, self.books, "refunded")
            world.apply(commands=made)

    # ---- the lake

    def rows(self) -> Mapping[tuple[str, Entity], list[Item]]:
        """Return the items that the tables' streams tell."""
        events = [encode_item(to_item(each)) for some in self.users.values() for each in some]
        entries = [entry_item(each) for world in self.worlds.values() for each in world.entries]
        books = [each for each in self.table.items if decode_item(each)["book"] == DOCUMENTS]
        return {("BPEvents", EVENTS): events, ("RewardsLedger", LEDGER): entries, ("RuleBooks", RULES): books}

    def into(self, objects: Objects) -> list[Partition]:
        """Publish and curate everything; returns what was curated."""
        tasks = set()
        for (table, entity), items in self.rows().items():
            for name, data in enumerate(self.published(table, entity, items)):
                dt, hour = (part.decode() for part in partition_of(data))
                objects.put(
                    f"raw/{entity.name}/arrived={ARRIVED}/dt={dt}/hour={hour}/{self.now:%Y%m%d}-{name}", data
                )
                tasks.add(Partition(entity.name, dt, hour))
        for task in tasks:
            curate(objects, task)
        return sorted(tasks, key=str)

    def published(self, table: str, entity: Entity, items: list[Item]) -> list[bytes]:
        client = Firehose()
        records: list[Mapping[str, Any]] = [
            {
                "eventName": "INSERT",
                "eventSourceARN": f"arn:aws:dynamodb:eu-west-1:1:table/{table}/stream/s",
                "dynamodb": {
                    "ApproximateCreationDateTime": self.now.timestamp(),
                    "NewImage": each,
                    "SequenceNumber": f"1{number:05}",
                },
            }
            for number, each in enumerate(items)
        ]
        outcome = Publisher({table: [(entity, DeliveryStream(client, "d"))]}).publish(records)
        assert (outcome.counts["published"], outcome.poison) == (len(items), [])
        return client.taken


def partition_of(data: bytes) -> tuple[bytes, bytes]:
    head = HEADER.match(data)
    assert head
    return head[0][7:17], head[0][27:29]
