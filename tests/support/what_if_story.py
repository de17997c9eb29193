"""Users who earn, spend, take freezes and pause, in one order, under one book or another: told by the rules.

Whoever tells a history twice, under the books that were and under a candidate, knows what a fresh stack would
show. A stack's stores and doors are left out; the rules that they call are called here.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from io import BytesIO
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects
from analytics.lake.arrow import arrow_schema
from rules.book.book import Book, Books, Version, terms_of
from rules.book.daily import Weekday
from rules.book.document import read_book
from rules.days import AT_MIDNIGHT, date_of, parse_moment, stamp, unstamp
from rules.engagement.account import decide
from rules.engagement.account_state import Decision, History, Profile, date_at
from rules.engagement.events import Event, event_id
from rules.engagement.ledger import EARNING, INTO_DEBT, Draft, EntryKind, FreezeNote
from rules.engagement.lots import Expiry, SettlementBasis, settlement_of
from rules.engagement.points import balancing_entries, clawback, shortfalls
from rules.engagement.repairs import NotRepairable, newest_break, offered_repair, repair_drafts
from rules.engagement.rest_days import ChoiceTooSoon, RestDays, chosen_anew
from rules.engagement.streak import Cover, fold, revocation_date, shown_streak
from rules.lake.entities import ENTITIES, RULES, rows_of
from rules.lake.valid_row import read_row
from tests.support.point_story import BASES, KINDS, WholeWorld, type_by_amount

Json = dict[str, Any]
HOMES = ("Europe/Berlin", "Asia/Tokyo", "America/Lima", "America/New_York", "Pacific/Apia")
DAYS = 45
REWARDS = ("cup", "bag")
RESTS: tuple[Json, ...] = ({}, {"rest_days": ["saturday", "sunday"]}, {"rest_days_chosen": 2})


def properties_of(key: str) -> Json:
    """What an event was sent with: it follows from its key alone."""
    minutes = (0, 0.5, 5, 12.125, 31, None)[crc32(key.encode()) % 6]
    return {} if minutes is None else {"minutes": minutes}


class ActiveWorld(WholeWorld):
    """An account that is decided with the whole history of its active dates."""

    def decide(self, delivered: Sequence[Event], commands: Sequence[Draft] = ()) -> Decision:
        self.now += timedelta(microseconds=1)
        done = {entry.draft.event_id for entry in self.entries}
        fresh = [each for each in delivered if each.event_id not in done]
        account = self.account(each.activity_date for each in delivered)
        active = History([day for day, each in self.days.items() if each.is_active])
        return decide(replace(account, history=active), fresh, self.now, commands)


@dataclass(frozen=True)
class Act:
    """Something that a user did at an instant. key: names it, and what a later act speaks of."""

    at: datetime
    what: str
    key: str
    sent: Any = None


@dataclass
class Told:
    """A user's account as some books make it. refused: the acts that were not possible."""

    user: str
    books: Books
    world: ActiveWorld = field(init=False)
    events: dict[str, Event] = field(default_factory=dict)
    holds: dict[str, tuple[datetime, int]] = field(default_factory=dict)
    spent: dict[str, str] = field(default_factory=dict)
    granted: dict[str, date] = field(default_factory=dict)
    free: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    refused: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cover = Cover(rest=RestDays(self.books.daily_terms))
        self.world = ActiveWorld(Profile(self.user, cover=cover))

    def tell(self, act: Act) -> bool:
        """Do something; returns whether it was possible."""
        self.world.now = act.at
        if act.what != "events_":
            self.settle(act.at)
        why = getattr(self, act.what)(act)
        if why:
            self.refused[act.key] = why
        return not why

    def settle(self, now: datetime) -> None:
        """Write what has expired by now. Points that are held are not gone meanwhile, and count as spent."""
        drafts = [each.draft for each in self.world.entries]
        lots: dict[date, int] = defaultdict(int)
        for each in drafts:
            if each.kind in EARNING and each.expires_on:
                lots[date.fromisoformat(each.expires_on)] += each.points
        if not lots:
            return
        total = sum(each.points for each in drafts if each.kind in EARNING)
        balance = sum(each.points for each in drafts)
        at = SettlementBasis(
            Expiry(min(lots)), balance, total, lots, self.world.entries, self.world.profile.holds
        )
        if found := settlement_of(at, now, 10**6).drafts:
            self.world.apply(commands=found)

    @property
    def available(self) -> int:
        return self.world.profile.balance - sum(points for _, points in self.holds.values())

    # ---- what users do; each returns why it is not possible

    def events_of(self, act: Act) -> Iterator[Event]:
        for key, kind, occurred, home in act.sent:
            version = next(self.known(act.at).judging(kind, occurred, act.at), None)
            if version is None:
                continue
            properties = properties_of(key)
            terms = terms_of(version, kind, occurred, properties)
            moment = parse_moment(occurred.isoformat())
            day, zone = date_of(moment, home, None, AT_MIDNIGHT)
            yield Event(
                *(self.user, event_id(self.user, key, moment), key, kind, occurred.isoformat(), day, zone),
                *(terms.points, "test", stamp(act.at), terms.version, terms.cap, not terms.keeps_streak),
                expiry=terms.expiry,
                timezone=home,
                properties=json.dumps(properties),
                measures=terms.measures,
            )

    def events_(self, act: Act) -> None:
        found = list(self.events_of(act))
        self.events |= {each.event_id: each for each in found}
        if found:
            self.world.apply(found)

    def redeem(self, act: Act) -> str:
        if self.available < act.sent:
            return "redemption"
        self.world.apply(commands=[Draft(EntryKind.REDEEM, -act.sent, reward_id="mug")])
        self.spent[act.key] = self.newest_redemption()
        return ""

    def hold(self, act: Act) -> str:
        if self.available < act.sent:
            return "hold"
        self.holds[act.key] = act.at, act.sent
        self._keep_holds()
        return ""

    def capture(self, act: Act) -> str:
        if act.sent in self.holds:
            at, points = self.holds.pop(act.sent)
            self._keep_holds()
            if self.world.profile.balance < points:
                return "hold"  # a clawback came between; whoever holds releases it
            draft = Draft(EntryKind.REDEEM, -points, reward_id="mug", held_at=stamp(at))
            self.world.apply(commands=[draft])
            self.spent[act.sent] = self.newest_redemption()
        return ""

    def reward(self, act: Act) -> str:
        version = self.known(act.at).at(act.at)
        found = version.book.rewards.get(act.sent)
        if not found or not found.is_valid(act.at) or self.available < found.price_points:
            return "redemption"
        more: Json = {"brand": found.brand, "rules_version": version.number}
        draft = Draft(EntryKind.REDEEM, -found.price_points, reward_id=act.sent, **more)
        self.world.apply(commands=[draft])
        self.spent[act.key] = self.newest_redemption()
        return ""

    # ---- what is taken back

    def known(self, now: datetime) -> Books:
        """The versions that are published by an instant."""
        return Books(each for each in self.books.versions if each.published_at <= now)

    def claw_back(self, act: Act) -> str:
        entries = [each for each in self.world.entries if each.draft.event_id == act.sent]
        if len(entries) == 1:  # it counts here, and was not reversed before
            drafts = [each.draft for each in self.world.entries]
            place = entries[0].created_at
            made = clawback(entries[0].draft, place, drafts, self.known(act.at), "refunded")
            self.world.apply(commands=made)
        return ""

    def rerate(self, act: Act) -> str:
        books = self.known(act.at)
        changes = shortfalls([each.draft for each in self.world.entries], books)
        self.world.apply(commands=balancing_entries(changes, books.newest.number, "rerated"))
        return ""

    def newest_redemption(self) -> str:
        """Where the newest redemption stands: dates that a new freeze covers are told after it."""
        redeemed = [each for each in self.world.entries if each.draft.kind is EntryKind.REDEEM]
        return redeemed[-1].created_at

    def _keep_holds(self) -> None:
        from rules.engagement.lots import Hold

        until = stamp(datetime(2999, 1, 1, tzinfo=UTC))
        holds = tuple(Hold(key, points, "mug", stamp(at), until) for key, (at, points) in self.holds.items())
        self.world.put(replace(self.world.profile, holds=holds))

    def freeze(self, act: Act) -> str:
        terms, month = self.known(act.at).at(act.at).book.freezes, f"{act.at:%Y-%m}"
        profile, local = self.world.profile, act.at.date()
        last = max(local, profile.streak.last) if profile.streak else local
        if shown_streak(profile.streak, profile.cover, last).freezes_available >= terms.held_max:
            return "freeze"
        price = terms.price(self.free[month])
        if price and self.available < price:  # in debt, what is free stays free
            return "freeze"
        self.free[month] += price == 0 and self.free[month] < terms.free_a_month
        return self._grant(act, price, local)

    def _grant(self, act: Act, price: int, day: date) -> str:
        note = {"freeze": FreezeNote.GRANTED, "freeze_date": day.isoformat()}
        self.world.apply(commands=[Draft(EntryKind.REDEEM, -price, reward_id="streak_freeze", **note)])  # type: ignore[arg-type]
        self.spent[act.key] = self.newest_redemption()
        self.granted[self.spent[act.key]] = day
        return ""

    def reverse(self, act: Act) -> str:
        place = self.spent.pop(act.sent, None)
        if place is None:
            return ""
        entry = next(each for each in self.world.entries if each.created_at == place)
        more: Json = {}
        if place in self.granted:
            profile = self.world.profile
            gone = revocation_date(profile.streak, profile.cover, self.granted[place], act.at.date())
            more = {"freeze": FreezeNote.REVOKED, "freeze_date": gone.isoformat()}
        draft = Draft(
            EntryKind.REVERSE, -entry.draft.points, reverses=place, held_at=entry.draft.held_at, **more
        )
        self.world.apply(commands=[draft])
        return ""

    def pause(self, act: Act) -> str:
        first, last = act.sent
        profile = self.world.profile
        terms = self.known(act.at).at(act.at).book.pauses
        dates = [(until - since).days + 1 for since, until in (*profile.cover.pauses, (first, last))]
        if dates[-1] > terms.dates_max or sum(dates) > terms.dates_a_year:  # a story is shorter than a year
            return "pause"
        cover = replace(profile.cover, pauses=(*profile.cover.pauses, (first, last)))
        self.world.set(replace(profile, cover=cover))
        return ""

    def rest(self, act: Act) -> str:
        profile = self.world.profile
        with suppress(ChoiceTooSoon):
            cover = replace(profile.cover, rest=chosen_anew(profile.cover.rest, act.sent, act.at))
            if cover != profile.cover:
                self.world.set(replace(profile, cover=cover))
        return ""

    def repair(self, act: Act) -> str:
        version, profile = self.known(act.at).at(act.at), self.world.profile
        rules, today = version.book.repairs, date_at(profile, act.at)
        active = [day for day, each in self.world.days.items() if each.is_active]
        run = newest_break(active, None, profile.cover, today)
        try:
            offer = offered_repair(run, profile.cover, profile.repairs, rules, today)
        except NotRepairable:
            return "repair"
        if self.available < offer.price_points:
            return "repair"
        self.world.apply(commands=repair_drafts(offer, version.number))
        return ""

    # ---- what it comes to

    def shown(self, now: datetime) -> Json:
        """What a stack shows, in the words of analytics.what_if.figures.USERS."""
        self.world.now = now
        self.holds.clear()
        self._keep_holds()
        self.settle(now)
        entries = self.world.entries
        may_owe = any(each.draft.kind in INTO_DEBT for each in entries)
        assert may_owe or min((each.balance for each in entries), default=0) >= 0
        profile = self.world.profile
        streak = fold([day for day, each in self.world.days.items() if each.is_active], profile.cover)
        assert streak == profile.streak
        seen = shown_streak(streak, profile.cover, date_at(profile, now))
        return {
            "earned": profile.total_points,
            "balance": profile.balance,
            "shown": seen.current,
            "length": streak.length if streak else 0,
            "longest": seen.longest,
            "active_days": seen.active_days,
        }

    def days(self) -> dict[date, int]:
        return {day: each.points_earned for day, each in self.world.days.items()}


class WhatIfStory:
    """Users with their acts, under books of several versions.

    travels: users change their zones, also to claim what no calendar gives. calm: books differ in points,
    caps, boosts and expiry alone. taken_back, sold: how often an event is reversed, or a reward redeemed.
    paused_dates: how many a book allows in a year. rests: books have rest days, or users choose some. repairs:
    books sell the repair of a date, at several prices. retroactive: how many versions take effect in the past; each ledger is rated anew after each of them.
    """

    def __init__(
        self,
        seed: int,
        users: int = 4,
        acts: int = 60,
        *,
        travels: bool = False,
        calm: bool = False,
        taken_back: float = 0,
        paused_dates: int = 92,
        sold: float = 0,
        retroactive: int = 0,
        by_amount: bool = False,
        rests: bool = False,
        repairs: bool = False,
    ) -> None:
        self.chance = random.Random(seed)
        self.base = BASES[seed % len(BASES)]
        self.now = self.base + timedelta(days=DAYS + 12)
        self.travels, self.calm, self.by_amount = travels, calm, by_amount
        self.taken_back, self.sold, self.paused_dates = taken_back, sold, paused_dates
        self.rests, self.repairs = rests, repairs
        self.documents = [self.some_book() for _ in range(self.chance.randrange(1, 5))]
        instants = sorted(self.some_instant() for _ in self.documents[1:])
        self.books = books_of(self.documents, [self.base - timedelta(days=9), *instants])
        self.rerated: list[datetime] = []
        for _ in range(retroactive):
            self.rewrite()
        self.acts: dict[str, list[Act]] = {}
        self.told: dict[str, Told] = {}
        for number in range(users):
            self.live(f"u{number}", acts)

    def some_instant(self) -> datetime:
        return self.base + timedelta(
            hours=self.chance.choice((0, 1, 23, 120, 168, *range(-48, 24 * DAYS, 6)))
        )

    def rewrite(self) -> None:
        """Publish a version that takes effect in the past; it keeps streaks as those before it did."""
        at = self.base + timedelta(hours=self.chance.randrange(24 * DAYS // 3, 24 * DAYS))
        said = self.some_book()
        said["event_types"] = {kind: self.some_type(kind) for kind in KINDS} | said["event_types"]
        number = len(self.documents) + 1
        since = at - timedelta(hours=self.chance.randrange(1, 300))
        self.documents.append(said)
        self.books = Books([*self.books.versions, Version(number, since, lambda: read_book(said), at)])
        self.rerated.append(at + timedelta(minutes=2))

    @property
    def settled_at(self) -> datetime | None:
        """An instant after the last version of the past has come to all ledgers."""
        return max(self.rerated) + timedelta(minutes=1) if self.rerated else None

    def some_book(self) -> Json:
        types = {
            kind: self.some_type(kind)
            for kind in KINDS
            if kind == "A" or self.calm or self.chance.random() < 0.85
        }
        made: Json = {"format": 1, "event_types": types, "boosts": list(self.some_boosts(sorted(types)))}
        held, free, price = (self.chance.choice(some) for some in ((1, 2, 5), (0, 1, 2), (0, 5, 20)))
        if self.calm:
            held, free, price = 5, 2, 20
        made["freezes"] = {"held_max": held, "free_a_month": free, "price_points": price}
        made["pauses"] = {"dates_max": 91, "dates_a_year": self.paused_dates}
        if self.sold:
            made["rewards"] = dict(self.some_rewards())
        if self.chance.random() < 0.5:
            days = self.chance.choice((1, 3, 10))
            made["expiry"] = self.chance.choice(({"after_days": days}, {"end_of": "month"}))
        if self.rests:
            made["daily"] = self.chance.choice(RESTS)
        if self.repairs:
            price = self.chance.choice((1, 5, 30))
            made["repairs"] = {"price_points": price, "within_days": 5, "dates_max": 1, "a_year": 12}
        return made

    def some_type(self, kind: str) -> Json:
        if self.by_amount and kind in ("A", "W") and self.chance.random() < 0.6:
            return type_by_amount(self.chance)
        points = self.chance.choice((0, 1, 3, 7, 10, 30))
        keeps = kind != "P" if self.calm else self.chance.random() < (0.2 if kind == "P" else 0.8)
        said: Json = {"points": points, "keeps_streak": keeps}
        if self.chance.random() < 0.85:
            per = "week" if kind == "W" else self.chance.choice(("day", "day", "week"))
            most = self.chance.choice([points, points + 1, points * 2, points * 3 + 2])
            cap: Json = {"events": self.chance.choice((1, 2, 3))}
            said["cap"] = (cap if self.chance.random() < 0.4 else {"points": most}) | {"per": per}
        return said

    def some_rewards(self) -> Iterator[tuple[str, Json]]:
        for name in REWARDS:
            if self.chance.random() < 0.8:
                said: Json = {"price_points": self.chance.choice((2, 5, 20)), "brand": "acme"}
                if self.chance.random() < 0.3:
                    said["valid_until"] = self.some_instant().isoformat()
                yield name, said

    def some_boosts(self, kinds: list[str]) -> Iterator[Json]:
        at = self.base
        while self.chance.random() < 0.8 and at < self.base + timedelta(days=DAYS):
            since = at + timedelta(hours=self.chance.randrange(1, 90))
            at = since + timedelta(hours=self.chance.randrange(1, 60))
            boost: Json = {"since": since.isoformat(), "until": at.isoformat()}
            boost["factor"] = self.chance.choice((2, 3))
            if self.chance.random() < 0.6:
                boost["event_types"] = self.chance.sample(kinds, self.chance.randrange(1, len(kinds) + 1))
            yield boost

    def live(self, user: str, acts: int) -> None:
        """Do things at instants that grow; what is not possible was never done."""
        chance, told = self.chance, Told(user, self.books)
        self.acts[user], self.told[user] = [], told
        busy, home = chance.choice((0.5, 2, 6)), HOMES[int(user[1:]) % len(HOMES)]
        now, keys = self.base, iter(range(10**6))
        due = iter(sorted(self.rerated))
        rerated = next(due, None)
        while now < self.base + timedelta(days=DAYS) and len(self.acts[user]) < acts:
            if (
                rerated and rerated < now
            ):  # whoever acts between publication and this is judged by the new one
                self.acts[user].append(Act(now, "rerate", f"r{rerated}"))
                told.tell(self.acts[user][-1])
                rerated = next(due, None)
            now += timedelta(
                minutes=chance.randrange(1, round(60 * 24 / busy)), microseconds=chance.randrange(9)
            )
            if self.travels and chance.random() < 0.2:
                home = chance.choice((*HOMES, "Pacific/Kiritimati", "-11:00"))
            act = self.some_act(f"k{next(keys)}", now, home, told)
            if act and act.what == "events_":  # what was refused is in no lake
                taken = {each.idempotency_key for each in told.events_of(act)}
                sent = [each for each in act.sent if each[0] in taken]
                act = replace(act, sent=sent) if sent else None
            if act and told.tell(act):
                self.acts[user].append(act)
            told.refused.clear()
        if self.taken_back and chance.random() < 0.6:
            self.owe(told, now)

    def owe(self, told: Told, now: datetime) -> None:
        """Spend everything, or hold half of it, and have the newest events reversed: a debt, or a capture that is refused."""
        told.world.now = now
        told.settle(now)
        is_held = self.chance.random() < 0.5
        points = max(1, told.available // (2 if is_held else 1))
        acts: list[tuple[str, Any]] = [("hold" if is_held else "redeem", points)]
        acts += [("claw_back", each) for each in list(told.events)[-self.chance.randrange(1, 9) :]]
        for number, (what, sent) in enumerate([*acts, *[("capture", "end0")] * is_held]):
            act = Act(now + timedelta(minutes=1 + number), what, f"end{number}", sent)
            if told.tell(act):
                self.acts[told.user].append(act)
            told.refused.clear()

    def some_act(self, key: str, now: datetime, home: str, told: Told) -> Act | None:
        chance = self.chance
        what = chance.choice(
            ("events_",) * 9 + ("redeem", "redeem", "hold", "capture", "freeze", "reverse", "pause")
        )
        if self.taken_back and chance.random() < self.taken_back:
            return Act(now, "claw_back", key, chance.choice(list(told.events))) if told.events else None
        if self.repairs and chance.random() < 0.15:
            return Act(now, "repair", key)
        if self.rests and chance.random() < 0.1:
            return Act(now, "rest", key, chance.sample(list(Weekday), chance.randrange(3)))
        if self.sold and chance.random() < self.sold:
            return Act(now, "reward", key, chance.choice(REWARDS))
        if what == "events_":
            ago = chance.choice((0, 0, 0, 2, 20, 50, 71, 200))
            sent = [
                (
                    f"{key}-{n}",
                    chance.choice(KINDS),
                    now - timedelta(hours=ago + n * chance.choice((0, 1, 9))),
                    home,
                )
                for n in range(chance.choice((1, 1, 2, 4)))
            ]
            return Act(now, what, key, sent)
        if what in ("redeem", "hold") and self.taken_back and told.available > 0 and chance.random() < 0.6:
            return Act(now, what, key, told.available)  # so that what is taken back is owed
        if what in ("redeem", "hold"):
            return Act(now, what, key, chance.randrange(1, 60))
        if what == "capture":
            return Act(now, what, key, chance.choice(list(told.holds))) if told.holds else None
        if what == "reverse":
            return Act(now, what, key, chance.choice(list(told.spent))) if told.spent else None
        first = now.date() + timedelta(days=chance.randrange(3, 9))
        is_free = all(last < first for _, last in told.world.profile.cover.pauses)
        if what == "pause" and (chance.random() < 0.7 or not is_free):
            return None
        return Act(now, what, key, (first, first + timedelta(days=3)) if what == "pause" else None)

    # ---- told once more

    def retold(self, books: Books) -> dict[str, Told]:
        """Tell all acts under other books, on fresh accounts: those of which a lake knows."""
        found = {}
        for user, acts in self.acts.items():
            found[user] = told = Told(user, books)
            captured = {act.sent for act in acts if act.what == "capture"}
            for act in acts:
                if act.what != "hold" or act.key in captured:
                    told.tell(act)
        return found

    def books_with(self, candidate: Book, since: datetime | None, until: datetime | None) -> Books:
        """Return what a fresh stack would have published: the candidate in the place of what was."""
        versions = [each for each in self.books.versions if since and each.effective_at < since]
        begin = since or datetime(1970, 1, 1, tzinfo=UTC)
        versions.append(Version(100, begin, lambda: candidate))
        if until:
            last = self.books.at(until)
            versions.append(Version(101, until, lambda: last.book))
            versions += [
                replace(each, number=200 + each.number)
                for each in self.books.versions
                if each.effective_at > until
            ]
        return Books(versions)

    # ---- the lake

    def into(self, objects: Objects) -> None:
        """Write what the tables' streams would have led to, as curated files."""
        rows: dict[tuple[str, str], list[Json]] = defaultdict(list)
        for told in self.told.values():
            told.shown(self.now)
            for entry in told.world.entries:
                rows["ledger", entry.created_at[:10]].append(entry_row(entry))
            for each in told.events.values():
                rows["events", each.event_id[:10]].append(event_row(each))
            rows["streaks", str(self.now.date())].append(profile_row(told.world.profile, self.now))
        rows["rules", str(self.now.date())] += [
            read_row(json.dumps(row).encode(), RULES, row["dt"], row["hour"])
            for number, document in enumerate(self.documents, 1)
            for row in rows_of(RULES, self._item(number, document), self.now)
        ]
        for (entity, day), listed in rows.items():
            data = BytesIO()
            self.chance.shuffle(listed)
            pq.write_table(pa.Table.from_pylist(listed, arrow_schema(ENTITIES[entity])), data)
            objects.put(f"curated/{entity}/dt={day}/day.parquet", data.getvalue())

    def _item(self, number: int, document: Json) -> Json:
        version = self.books.numbered(number)
        at = stamp(version.effective_at)
        return {
            "book": "documents",
            "version": number,
            "effective_at": at,
            "published_at": max(at, stamp(version.published_at)),
            "author": "ann",
            "note": "",
            "document": json.dumps(document),
        }


def books_of(documents: list[Json], instants: list[datetime]) -> Books:
    pairs = enumerate(zip(documents, instants, strict=True), 1)
    return Books(
        [Version(number, at, lambda said=said: read_book(said)) for number, (said, at) in pairs]  # type: ignore[misc]
    )


def entry_row(entry: Any) -> Json:
    draft = entry.draft
    day = {
        name: date.fromisoformat(text)
        for name in ("activity_date", "freeze_date", "expires_on")
        if (text := getattr(draft, name))
    }
    return {
        "account_id": entry.account_id,
        "created_at": unstamp(entry.created_at),
        "seq": entry.seq,
        "kind": draft.kind.value,
        "points": draft.points,
        "balance": entry.balance,
        **{
            name: getattr(draft, name)
            for name in ("event_id", "event_type", "reward_id", "reverses", "held_at", "reason", "brand")
        },
        "freeze": draft.freeze and draft.freeze.value,
        "rules_version": draft.rules_version,
        "cap": draft.cap and draft.cap.text,
        "is_passive": True if draft.is_passive else None,
        "measures": draft.measures,
        "setting": draft.setting,
        "set_to": draft.set_to,
        **day,
    }


def event_row(event: Event) -> Json:
    return {
        "event_id": event.event_id,
        "user_id": event.user_id,
        "idempotency_key": event.idempotency_key,
        "event_type": event.event_type,
        "occurred_at": unstamp(event.event_id.partition("#")[0]),
        "occurred_local": event.occurred_at,
        "activity_date": event.activity_date,
        "zone": event.zone,
        "points_awarded": event.points_awarded,
        "source": event.source,
        "properties": event.properties,
        "created_at": unstamp(event.created_at),
        "version": "0",
        "rules_version": event.rules_version,
        "cap": event.cap and event.cap.text,
        "is_passive": True if event.is_passive else None,
        "expiry": event.expiry,
    }


def profile_row(profile: Profile, now: datetime) -> Json:
    return {
        "user_id": profile.user_id,
        "version": profile.version,
        "total_bestie_points": profile.total_points,
        "balance": profile.balance,
        "timezone": profile.zone,
        "skipped_dates": ",".join(map(str, sorted(profile.cover.skipped))) or None,
        "updated_at": now,
    }
