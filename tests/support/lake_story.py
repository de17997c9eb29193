"""What users of a generated lake do, with the cases that are easily wrong.

Duplicate keys in two versions, NULLs, ties, reversed redemptions, late rows for old dates, ends of months and
of the year, quotes and non-ASCII in texts, properties that are no JSON, an account that never did anything.
"""

import json
import random
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Any

from rules.book.point_rules import points_left
from rules.lake.entities import ENTITIES, RULES, rows_of
from rules.lake.valid_row import read_row
from rules.leads.feature_changes import change_from_events
from rules.leads.feature_items import FeatureItem
from rules.leads.lake_entities import state_column, states_of
from rules.leads.lead_events import LeadEvent
from tests.support.books import TYPES
from tests.support.lake_sample import DAYS, FIRST, PROPERTIES, USERS, Row, Sample, event
from tests.support.lead_histories import History, features_of, is_readable
from tests.support.lead_histories import row as lead_event
from tests.support.published_books import AT, a_document, documents, published
from tests.support.questions.answer_story import AnswerStory

# A pause, and dates that an amnesty or a zone took away.
NEUTRAL = {"pauses": "2026-01-02/2026-01-04", "skipped_dates": "2026-01-06,2026-01-09"}

STREAKS = "reading week 2026-02-16 2 3 4 0,steps day 2026-02-27 1 1 1 0"
LEAGUE = {"last_date": date(2026, 3, 1), "division": "bronze", "cohort": 1, "extra": None} | {
    "league_rank": 1,
    "points": 5,
    "zone": "up",
    "members": 9,
}
ACHIEVEMENTS = "early 2026-02-03 2026-02-03T23:59:59.999999Z#2,rich 2026-02-05 2026-02-05T00:59:59.999999Z#9"


class Story:
    """What the users do, told in parts: everything until `late`, and what came late."""

    def __init__(self, days: int = DAYS) -> None:
        self.random, self.sample, self.number, self.days = random.Random(7), Sample(), 0, days
        self.balance: dict[str, int] = {}
        self.seq: dict[str, int] = {}
        self.version: dict[str, int] = {}
        self.redeemed: list[Row] = []
        self.earned: dict[tuple[str, date, str], int] = {}
        self.leads = History(3, leads=8, events=60, times=2)  # so, few files
        self.answers = AnswerStory(self.sample)

    def first_part(self) -> Sample:
        for user in USERS:
            chance = self.random.choice([0.1, 0.4, 0.9])
            for day in range(self.days):
                if user.startswith("same") and day % 10 == 0:  # two users with the same points: a tie
                    self.day(user, FIRST + timedelta(days=day), ["LESSON_COMPLETED"])
                elif not user.startswith("same") and self.random.random() < chance:
                    kinds = self.random.choices(sorted(TYPES), k=self.random.randint(1, 3))
                    self.day(user, FIRST + timedelta(days=day), kinds)
            if self.balance.get(user, 0) > 40:
                self.redeem(user, 15)
                self.redeem(user, 2)
                self.reverse(self.redeem(user, 20))
                self.repair(user)
            self.profile(user)
        for number, (one, other) in enumerate(pairwise(USERS)):
            self.pair(f"pair{number}", (one, other), "server" if number % 3 == 0 else "")
        self.open("idle")
        self.profile("idle", current_streak=None, longest_streak=None, active_days=None, ledger_head=None)
        self.tell_leads(1)
        self.answers.first_part()
        return self.sample

    def late_part(self) -> Sample:
        """Rows for old dates, a new user at an old date, cut points, reversals and newer profiles."""
        for user in USERS[:5]:
            self.day(user, FIRST + timedelta(days=self.random.randint(0, 9)), ["CHECK_IN", "APP_OPENED"])
            self.profile(user)
        self.day("latecomer", FIRST, ["CONTRIBUTION"])
        self.profile("latecomer")
        self.pair("pair1", (USERS[1], USERS[2]), "", "parting")
        self.pair("pair3", (USERS[3], ""), "server", "erasure")
        self.pair("late", ("latecomer", USERS[0]), "")
        self.reverse(self.redeemed[0])
        self.entry(USERS[1], "EXPIRE", -1)
        self.entry(USERS[2], "ADJUST", 3)
        for user, points in ((USERS[3], 5), (USERS[3], -5), (USERS[4], 0)):
            self.entry(user, "BONUS", points, reward_id="three", activity_date=FIRST)
        row = next(iter(self.sample.rows["events"].values()))
        self.sample.put("events", row | {"version": "1", "source": "corrected"})
        for _ in range(20):
            self.leads._event(self.random.choice(self.leads.leads))
        self.tell_leads(2)
        self.answers.late_part()
        self.publish_books()
        return self.sample

    def publish_books(self) -> None:
        """The first publication: the shipped book is stored with it, and no event is judged by the new one."""
        for each in documents(published(a_document())):
            for row in rows_of(RULES, each, AT):
                read = read_row(json.dumps(row).encode(), RULES, row["dt"], row["hour"])
                self.sample.put("rules", read)
        for day in (date(2026, 4, 2), date(2026, 5, 30)):
            read_at = f"{day}T10:00:00.000000Z#read"
            said = {
                "event_type": "READ",
                "event_id": read_at,
                "activity_date": day,
                "measures": "n,pages=40000",
            }
            self.seq[USERS[1]] += 1
            self._entry(
                USERS[1], datetime.fromisoformat(f"{day}T11:00:00+00:00"), kind="EARN", points=0, **said
            )

    def judged(self, user: str, kind: str) -> Row:
        """What an event is judged by."""
        return {"rules_version": 1, "cap": f"{TYPES[kind].cap_points}/day"}

    def day(self, user: str, day: date, kinds: list[str]) -> None:
        first, earned = None, 0
        for kind in kinds:
            self.number += 1
            moment = datetime(day.year, day.month, day.day, self.random.choice([0, 23]), 59, 59, 999_999, UTC)
            more = {"properties": PROPERTIES[self.number % len(PROPERTIES)]} if "PURCHASE" in kind else {}
            more |= (terms := self.judged(user, kind))
            row, limit = event(user, moment, kind, self.number, **more), TYPES[kind].cap_points
            had = self.earned.get((user, day, kind), 0)
            points = points_left(row["points_awarded"], limit, {limit or 0: had})
            self.earned[user, day, kind] = had + points
            first, earned = first or row["event_id"], earned + points
            self.sample.put("events", row)
            named = {"event_id": row["event_id"], "event_type": kind, "activity_date": day, **terms}
            head = self.entry(user, "EARN", points, **named)["created_at"]
        held = self.sample.rows["daily_activity"].get((user, day), {})
        self.sample.put(
            "daily_activity",
            {
                "user_id": user,
                "activity_date": day,
                "first_event_id": first,
                "events_count": held.get("events_count", 0) + len(kinds),
                "points_earned": held.get("points_earned", 0) + earned,
                "points_by_type": None,
                "ledger_head": head,
                "created_at": held.get("created_at", head),
                "extra": None,
            },
        )

    def open(self, user: str) -> None:
        self.seq[user] = self.balance[user] = 0
        self.sample.arrived[user] = datetime(2026, 3, 1, 5, tzinfo=UTC)
        opened = datetime(1970, 1, 1, tzinfo=UTC)
        self._entry(user, opened, kind="OPEN", points=0)

    def entry(self, user: str, kind: str, points: int, **more: Any) -> Row:
        if user not in self.seq:
            self.open(user)
        self.seq[user] += 1
        self.balance[user] += points
        self.number += 1
        return self._entry(user, self.moment(), kind=kind, points=points, **more)

    def moment(self) -> datetime:
        """When the newest entry was written."""
        return datetime(2026, 2, 27, 23, tzinfo=UTC) + timedelta(
            minutes=self.number, microseconds=self.number
        )

    def _entry(self, user: str, moment: datetime, **more: Any) -> Row:
        names = [each.name for each in ENTITIES["ledger"].fields]
        row = dict.fromkeys([*names, "extra"]) | {"account_id": user, "created_at": moment, **more}
        row |= {"seq": self.seq[user], "balance": self.balance[user]}
        self.sample.put("ledger", row)
        return row

    def redeem(self, user: str, points: int) -> Row:
        brand = {} if points % 2 else {"brand": "acme", "rules_version": 1}
        row = self.entry(user, "REDEEM", -points, reward_id="mug", **brand)
        self.redeemed.append(row)
        return row

    def reverse(self, spent: Row) -> None:
        place = f"{spent['created_at']:%Y-%m-%dT%H:%M:%S.%f}Z"
        self.entry(
            spent["account_id"],
            "REVERSE",
            -spent["points"],
            reverses=place,
            reward_id="mug",
            brand=spent["brand"],
        )

    def repair(self, user: str) -> None:
        """A date is repaired, and given back."""
        day = date(2026, 2, 26)
        said: Row = {"reward_id": "streak_repair", "freeze_date": day}
        spent = self.entry(user, "REDEEM", -1, freeze="freeze_granted", rules_version=1, **said)
        place = f"{spent['created_at']:%Y-%m-%dT%H:%M:%S.%f}Z"
        self.entry(user, "REVERSE", 1, reverses=place, freeze="freeze_revoked", **said)

    def profile(self, user: str, **more: Any) -> None:
        days = sorted(day for who, day in self.sample.rows["daily_activity"] if who == user)
        if user not in self.seq:
            self.open(user)
        if user in USERS[::2] and user not in self.version:
            skipped = NEUTRAL["skipped_dates"].replace(",", " ")
            for seconds, (name, value) in enumerate((("pause", NEUTRAL["pauses"]), ("skipped", skipped)), 1):
                self.seq[user] += 1
                at = self.moment() + timedelta(seconds=seconds)
                self._entry(user, at, kind="SETTING", points=0, setting=name, set_to=value)
        for _ in range(2):
            self.version[user] = self.version.get(user, 0) + 1
            names = [each.name for each in ENTITIES["streaks"].fields]
            row = dict.fromkeys([*names, "extra"]) | {
                "user_id": user,
                "version": self.version[user],
                "current_streak": 1,
                "longest_streak": min(len(days), 9) or 1,
                "active_days": len(days),
                "last_activity_date": days[-1] if days else None,
                "lapses_at": datetime.combine(days[-1], time(), UTC) + timedelta(days=2) if days else None,
                "total_bestie_points": self.balance[user],
                "balance": self.balance[user],
                "timezone": "Europe/Paris",
                "updated_at": datetime(2026, 3, 2, 1, self.version[user], tzinfo=UTC),
                **(NEUTRAL if user in USERS[::2] else {}),
                **more,
            }
            self.sample.put("streaks", row)
        folded = datetime(2026, 3, 2, 2, self.version[user], tzinfo=UTC)
        goals = {"streaks": STREAKS, "achievements": ACHIEVEMENTS} if user in USERS[::2] else {}
        row = {"user_id": user, "version": int(folded.timestamp()), "folded_at": folded, **goals}
        self.sample.put("user_goals", row)
        monday = date(2026, 2, 23)
        self.sample.put("league_results", LEAGUE | {"user_id": user, "first_date": monday})

    def pair(self, pair_id: str, users: tuple[str, str], role: str, ending: str = "") -> None:
        """Let a pair begin, or end: by the first of both. A user without a name was erased."""
        since = datetime(2026, 2, 1, 12, tzinfo=UTC)
        for number, user in enumerate(users):
            if user:
                row = {"pair_id": pair_id, "user_id": user, "since": since}
                row |= {"role": role or ("asker", "answerer")[number], "version": "0", "changed_at": since}
                if ending:
                    at = since + timedelta(days=30)
                    row |= {"ended_at": at, "ending": None if number else ending}
                    row |= {"changed_at": at, "version": "1"}
                self.sample.put("friendships", row)

    def tell_leads(self, version: int) -> None:
        """All events of leads so far, their features as of an instant after the last merge, and memories."""
        history = self.leads
        for each in history.events:
            self.sample.put("lead_events", lead_event(each))
        merged = max(each.occurred for each in history.events if "leads" in each.event_type)
        for root, leaves in sorted(history.groups.items()):
            own = [each for each in history.events if each.lead_organization_id in leaves]
            newest = max((each.occurred for each in own), default=merged)
            as_of = max(newest, merged) + timedelta(days=self.random.choice([3, 45]), microseconds=1)
            values = features_of(history.events, root, as_of)
            known = [each for each in history.events if each.occurred <= as_of and is_readable(each)]
            if not any(each.lead_organization_id in leaves for each in known):
                continue
            several: Row = {"leaves": ",".join(leaves)} if len(leaves) > 1 else {}
            moments = dict.fromkeys(
                ("purchases_as_of", "sentiment_as_of", "activity_as_of", "campaigns_as_of"), as_of
            )
            self._features(
                root,
                version,
                as_of,
                computed_at=as_of,
                active_on=as_of.date(),
                **several,
                **moments,
                **values,
                **states(own, as_of),
            )
            for leaf in set(leaves) - {root}:
                self._features(leaf, version, as_of, merged_into=root, topology=3)
            for leaf in leaves:
                self._memories(leaf, version, as_of)

    def _features(self, lead: str, version: int, changed_at: datetime, **more: Any) -> None:
        names = [each.name for each in ENTITIES["lead_features"].fields]
        row = dict.fromkeys([*names, "extra"]) | {"lead_organization_id": lead, "version": version}
        self.sample.put("lead_features", row | {"changed_at": changed_at} | more)

    def _memories(self, lead: str, version: int, at: datetime) -> None:
        for key, expires in (("color", None), ("size", at + timedelta(days=900)), ("mood", at)):
            row = {
                "lead_organization_id": lead,
                "memory_type": "preference",
                "memory_key": key,
                "version": version,
                "value": '"größe\'s"',
                "confidence_milli": 750,
                "source": "web",
                "source_event_ids": "a,b",
                "created_at": at,
                "updated_at": at,
                "expires_at": expires,
                "extra": None,
            }
            self.sample.put("lead_memory", row)


def states(events: Iterable[LeadEvent], as_of: datetime) -> Row:
    """The columns with a lead's state, as the stream's publisher writes them."""
    item = FeatureItem("lead")
    change = change_from_events(item, events, as_of)
    return (
        {}
        if change is None
        else {state_column(each): text for each, text in states_of(change.inputs).items()}
    )
