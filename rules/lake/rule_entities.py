"""The entity of the book of rules: a row for each item of each version.

`rule_rows` makes a version's document into rows, and `book_of` makes rows into a book again.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, time
from typing import Any

from rules.book.board_rules import BoardPeriod, BoardRule
from rules.book.book import Book, Boost, Declarer, EventType
from rules.book.daily import NO_REST, DailyRules, Weekday, weekday_names
from rules.book.document import read_book
from rules.book.goal_rules import (
    AchievementRule,
    Condition,
    ConditionKind,
    Need,
    NeedKind,
    StreakPeriod,
    StreakRule,
)
from rules.book.levels import Level
from rules.book.point_rules import AmountRule, Period
from rules.days import stamp
from rules.lake.schema import Entity, Field, PublishedTable, Required, Row, Type

TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP = Type

# The kinds of rows
EVENT_TYPE, BOOST, STREAK, ACHIEVEMENT = "event_type", "boost", "streak", "achievement"
LEVEL, DAILY, BOARD, BOOK = "level", "daily", "board", "book"
# The sections of a document that are in its row of kind BOOK
BOOK_SECTIONS = ("freezes", "repairs", "pauses", "expiry", "offline", "answers")
FREEZES, PAUSES, REST_DAYS = "freezes", "pauses", "rest_days"  # what covers a missed period
ALL, ANY = "all", "any"  # the values of the column `combined`


DOCUMENTS = "documents"  # of RuleBooks: adapters/book_store.py


def is_whole_book(attributes: Mapping[str, Any]) -> bool:
    """Whether an item of RuleBooks is rows: the one of a version that has the whole document."""
    return bool(attributes["book"] == DOCUMENTS)


def rule_rows(attributes: Mapping[str, Any], arrived: datetime) -> Iterator[Row]:
    """Yield the rows of a version's item of the table RuleBooks. Raises KeyError, ValueError for others.

    Data contracts, reminders and the number of friends are not in the lake: no figure follows from what
    senders promise, what phones show, or how many friends somebody may have.
    """
    document = json.loads(attributes["document"])
    published = ("version", "effective_at", "published_at", "author", "note")
    common = {name: attributes[name] for name in published} | {"stored_at": stamp(arrived)}
    yield from ({**common, **item} for item in book_items(read_book(document)))
    sections = {name: document[name] for name in BOOK_SECTIONS if name in document}
    text = json.dumps(sections, sort_keys=True, separators=(",", ":"))
    yield {**common, "item": BOOK, "kind": BOOK, "document": text}


def book_items(book: Book) -> Iterator[Row]:
    """Yield the rows of a book's items, without the columns of its version."""
    for name, rule in sorted(book.event_types.items()):
        yield {"item": f"{EVENT_TYPE}/{name}", "kind": EVENT_TYPE, "event_type": name, **_type_row(rule)}
    for index, boost in enumerate(book.boosts):
        yield {"item": f"{BOOST}/{index}", "kind": BOOST, **_boost_row(boost)}
    for name, streak in sorted(book.streaks.items()):
        yield {"item": f"{STREAK}/{name}", "kind": STREAK, "name": name, **_streak_row(streak)}
    for name, achievement in sorted(book.achievements.items()):
        for index, condition in enumerate(achievement.conditions):
            identity = {"item": f"{ACHIEVEMENT}/{name}/{index}", "kind": ACHIEVEMENT, "name": name}
            yield {**identity, **_condition_row(achievement, condition)}
    for level in book.levels:
        identity = {"item": f"{LEVEL}/{level.name}", "kind": LEVEL, "name": level.name}
        yield {**identity, "at_least": level.points, "title": level.title or None}
    if replace(book.daily, boards=(), leagues=None) != NO_REST:
        weekdays = ",".join(weekday_names(book.daily.rest_days)) or None
        most = book.daily.chosen_max or None
        start = f"{book.daily.day_starts_at:%H:%M}"
        rest = {"rest_days": weekdays, "rest_days_chosen": most}
        yield {"item": DAILY, "kind": DAILY, **rest, "day_starts_at": start}
    for board in book.daily.boards:
        dates = {
            "first_date": board.first and board.first.isoformat(),
            "last_date": board.last and board.last.isoformat(),
        }
        identity = {"item": f"{BOARD}/{board.name}", "kind": BOARD, "name": board.name}
        per = board.per and board.per.value
        yield {**identity, "per": per, **dates, "grouped_by": board.group or None}


def _type_row(rule: EventType) -> Row:
    has_cap = rule.cap_points is not None or rule.cap_events is not None
    by_amount = rule.by_amount
    return {
        "points": rule.points,
        "property": by_amount.of if by_amount else None,
        "points_each": by_amount.each if by_amount else None,
        "points_earned": by_amount.earns if by_amount else None,
        "cap_points": rule.cap_points,
        "cap_events": rule.cap_events,
        "per": rule.per.value if has_cap else None,
        "declared_by": rule.declared_by.value,
        "keeps_streak": rule.keeps_streak,
    }


def _boost_row(boost: Boost) -> Row:
    return {
        "since": stamp(boost.since),
        "until": stamp(boost.until),
        "factor": boost.factor,
        "event_types": ",".join(sorted(boost.event_types)) or None,
    }


def _streak_row(rule: StreakRule) -> Row:
    flags = {FREEZES: rule.freezes, PAUSES: rule.pauses, REST_DAYS: rule.rest_days}
    covers = [name for name, is_covering in flags.items() if is_covering]
    return {
        "per": rule.per.value,
        "need": rule.need.kind.value,
        "at_least": rule.need.at_least,
        "property": rule.need.property,
        "event_types": ",".join(sorted(rule.event_types)),
        "covered_by": ",".join(covers) or None,
    }


def _condition_row(rule: AchievementRule, condition: Condition) -> Row:
    return {
        "combined": ALL if rule.needs_all else ANY,
        "of_history": rule.of_history,
        "stays": rule.stays,
        "points": rule.points or None,
        "need": condition.kind.value,
        "at_least": condition.at_least,
        "event_type": condition.event_type,
        "property": condition.property,
        "streak": condition.streak,
    }


RULES = Entity(
    "rules",
    "One row per item of each version of the book: an event type, a streak, a level, a board, or the rest.",
    (
        Required("version", INTEGER, "the version of the book of rules"),
        Required(
            *("item", TEXT),
            "event_type/X, boost/0, streak/X, achievement/X/0, level/X, board/X, daily or book",
            128,
        ),
        Required(
            *("kind", TEXT),
            "event_type, boost, streak, achievement, level, board, daily or book (all the rest)",
            16,
        ),
        Required("effective_at", TIMESTAMP, "from when the version is in force"),
        Required("published_at", TIMESTAMP, "when it was published; 1970-01-01: the shipped book"),
        Required("author", TEXT, "who published it", 512),
        Required("note", TEXT, "why, in the author's words", 4096),
        Required("stored_at", TIMESTAMP, "when it came into the table RuleBooks"),
        Field("event_type", TEXT, "event_type: its name; achievement: a condition's type", 64),
        Field(
            "points",
            INTEGER,
            "event_type: of one event, whatever its amount, before boosts and cap; achievement: its bonus",
        ),
        Field("cap_points", INTEGER, "event_type: the most points that a user earns with it in a period"),
        Field("cap_events", INTEGER, "event_type: or the most events; a boost lifts what they earn"),
        Field("per", TEXT, "the period of a cap, a streak or a board: day, week, month", 16),
        Field("declared_by", TEXT, "event_type: who may send it, anybody or server", 16),
        Field("keeps_streak", BOOLEAN, "event_type: whether an event makes its date active"),
        Field("since", TIMESTAMP, "boost: events that occurred at this instant or later"),
        Field("until", TIMESTAMP, "boost: and before this one"),
        Field("factor", INTEGER, "boost: what their points are multiplied by"),
        Field("event_types", TEXT, "boost, streak: the types, separated by commas; empty: all"),
        Field("document", TEXT, "book: freezes, repairs, pauses, expiry, offline and answers, JSON text"),
        Field("name", TEXT, "streak, achievement, level, board: its name", 64),
        Field("need", TEXT, "active_days, events, sum; of achievements points_earned, count, streak", 16),
        Field(
            "at_least",
            INTEGER,
            "streak, achievement: how much is needed; a sum in thousandths; level: the points",
        ),
        Field(
            "property",
            TEXT,
            "streak, achievement: the property that is summed; event_type: the one that earns",
            64,
        ),
        Field("covered_by", TEXT, "streak: what covers a missed period: freezes, pauses, rest_days", 32),
        Field("streak", TEXT, "achievement: the streak in a condition", 64),
        Field("combined", TEXT, "achievement: whether all or any condition must be true", 8),
        Field("of_history", BOOLEAN, "achievement: whether its date may be before its declaration"),
        Field("stays", BOOLEAN, "achievement: whether it is never withdrawn"),
        Field("points_each", INTEGER, "event_type: how many thousandths of the property earn"),
        Field("points_earned", INTEGER, "event_type: points of each whole points_each"),
        Field("title", TEXT, "level: what people see in place of the name", 400),
        Field("rest_days", TEXT, "daily: weekdays without a miss, separated by commas", 64),
        Field("rest_days_chosen", INTEGER, "daily: how many weekdays a user may choose"),
        Field("day_starts_at", TEXT, "daily: when dates begin by the clock on the wall, such as 03:00", 8),
        Field("first_date", DATE, "board: the first date of its only period"),
        Field("last_date", DATE, "board: and the last one"),
        Field("grouped_by", TEXT, "board: the attribute of users that divides it", 64),
    ),
    key=("version", "item"),
    occurred="stored_at",
    left_out=frozenset({"book"}),
    expand=rule_rows,
    may_age=False,
    published=PublishedTable("RuleBooks", "PublishRulesMapping"),
    has_row=is_whole_book,
)


def book_of(rows: Iterable[Mapping[str, Any]]) -> Book:
    """Return a book with the event types, boosts, streaks, achievements, levels and dates of one version.

    rows: all rows of the version, from curated files. The rest of the book has its defaults.
    """
    all_rows = list(rows)
    types = {row["event_type"]: _event_type(row) for row in all_rows if row["kind"] == EVENT_TYPE}
    streaks = {row["name"]: _streak(row) for row in all_rows if row["kind"] == STREAK}
    boosts = tuple(_boost(row) for row in all_rows if row["kind"] == BOOST)
    levels = [
        Level(row["name"], row["at_least"], row["title"] or "") for row in all_rows if row["kind"] == LEVEL
    ]
    daily = next((_daily(row) for row in all_rows if row["kind"] == DAILY), NO_REST)
    boards = [_board(row) for row in all_rows if row["kind"] == BOARD]
    return Book(
        types,
        boosts,
        streaks=streaks,
        achievements=_achievements(all_rows),
        levels=tuple(sorted(levels, key=lambda level: level.points)),
        daily=replace(daily, boards=tuple(sorted(boards, key=lambda board: board.name))),
    )


def _daily(row: Mapping[str, Any]) -> DailyRules:
    names = (row["rest_days"] or "").split(",")
    return DailyRules(
        frozenset(Weekday.of(name) for name in names if name),
        row["rest_days_chosen"] or 0,
        time.fromisoformat(row["day_starts_at"] or "00:00"),
    )


def _board(row: Mapping[str, Any]) -> BoardRule:
    per = BoardPeriod(row["per"]) if row["per"] else None
    first, last = (row[name] and date.fromisoformat(str(row[name])) for name in ("first_date", "last_date"))
    return BoardRule(row["name"], per, first, last, row["grouped_by"] or "")


def _event_type(row: Mapping[str, Any]) -> EventType:
    by_amount = None
    if row["property"]:
        by_amount = AmountRule(row["property"], row["points_each"], row["points_earned"])
    return EventType(
        points=row["points"],
        by_amount=by_amount,
        cap_points=row["cap_points"],
        cap_events=row["cap_events"],
        per=Period(row["per"] or Period.DAY),
        declared_by=Declarer(row["declared_by"]),
        keeps_streak=row["keeps_streak"],
    )


def _boost(row: Mapping[str, Any]) -> Boost:
    types = frozenset((row["event_types"] or "").split(",")) - {""}
    return Boost(row["since"], row["until"], row["factor"], types)


def _streak(row: Mapping[str, Any]) -> StreakRule:
    covers = (row["covered_by"] or "").split(",")
    return StreakRule(
        StreakPeriod(row["per"]),
        Need(NeedKind(row["need"]), row["at_least"], row["property"]),
        frozenset(row["event_types"].split(",")),
        freezes=FREEZES in covers,
        pauses=PAUSES in covers,
        rest_days=REST_DAYS in covers,
    )


def _achievements(rows: Iterable[Mapping[str, Any]]) -> dict[str, AchievementRule]:
    """Return the achievements of a book's rows. Each row is one condition of one achievement."""
    rows_by_name: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["kind"] == ACHIEVEMENT:
            rows_by_name.setdefault(row["name"], []).append(row)
    return {name: _achievement(conditions) for name, conditions in rows_by_name.items()}


def _achievement(rows: Iterable[Mapping[str, Any]]) -> AchievementRule:
    """Return the achievement of its rows. The column `item` ends with the index of the row's condition."""
    in_order = sorted(rows, key=lambda row: int(row["item"].rpartition("/")[2]))
    first = in_order[0]  # all rows have the same values but for their conditions
    return AchievementRule(
        tuple(map(_condition, in_order)),
        needs_all=first["combined"] == ALL,
        stays=first["stays"],
        of_history=first["of_history"],
        points=first["points"] or 0,
    )


def _condition(row: Mapping[str, Any]) -> Condition:
    kind = ConditionKind(row["need"])
    return Condition(kind, row["at_least"], row["event_type"], row["property"], row["streak"])
