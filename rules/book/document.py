"""The document of a book of rules: how a `Book` is made of it, and which faults its JSON Schema cannot find.

The schema is in book_schema.py. A document's faults are (path, reason) pairs: the path has the keys and
indexes that lead to the bad value.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from itertools import chain, combinations
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rules.book.board_rules import SEASON_DATES_MAX, BoardPeriod
from rules.book.book import (
    NO_ANSWERS,
    NO_FREEZES,
    NO_PAUSES,
    USUAL_OFFLINE,
    AnswerRules,
    Book,
    Boost,
    Declarer,
    EventType,
    FreezeRules,
    OfflineRules,
    PauseRules,
    Timing,
)
from rules.book.contracts import Path, contract_faults
from rules.book.daily import NO_REPAIRS, RepairRules, daily_rules
from rules.book.goal_rules import (
    DAILY,
    UNIT,
    AchievementRule,
    Condition,
    ConditionKind,
    Need,
    NeedKind,
    StreakPeriod,
    StreakRule,
    thousandths,
)
from rules.book.levels import Level
from rules.book.point_rules import DAYS_SUFFIX, POINTS_MAX, AmountRule, Period
from rules.book.reminders import LANGUAGE_DEFAULT, foreign_mark, reminder_rules
from rules.book.rewards import ALWAYS, FREEZE_REWARD, NEVER, REPAIR_REWARD, Reward
from rules.days import parse_moment

Section = Mapping[str, Any]  # a part of the document
Faults = Iterator[tuple[Path, str]]

# The ledger calls freezes and repairs by these names. Their prices are elsewhere in the book.
RESERVED_REWARDS = frozenset({FREEZE_REWARD, REPAIR_REWARD})
# Characters that nobody sees: controls (a description may have line ends), and marks that reverse the
# direction of writing, such as U+202E.
INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
URL = re.compile(r"[!-\[\]-~]+", re.ASCII)  # no blank, no control character, no backslash
SUMMED_MAX = 4  # how many properties of one event type may be summed
AMOUNT_MAX = 1_000_000  # what one event may add to a sum, before it is counted in thousandths
# How many dates every period has at least: no streak can need more active dates.
DATES_MAX = {StreakPeriod.DAY: 1, StreakPeriod.WEEK: 7, StreakPeriod.MONTH: 28}


class Fault(NamedTuple):
    """One fault of a document."""

    path: Path  # the keys and indexes that lead to the bad value, from the outside in
    reason: str

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path)) or 'the book'} {self.reason}"


class BookRefused(ValueError):
    """A document has faults, so no book is made of it."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults  # all that is wrong, in the order of the document


def read_book(document: Section) -> Book:
    """Return the book of a document that satisfies book_schema.BOOK and has no faults.

    The faults of a published document are not looked for again: a later release, which may be stricter, has
    to read it too.
    """
    event_types = document["event_types"]
    keeping = [name for name, section in event_types.items() if section.get("keeps_streak", True)]
    expiry = document.get("expiry")
    return Book(
        event_types={name: _event_type(section) for name, section in event_types.items()},
        boosts=tuple(map(_boost, document.get("boosts", ()))),
        freezes=FreezeRules(**document["freezes"]) if "freezes" in document else NO_FREEZES,
        repairs=RepairRules(**document["repairs"]) if "repairs" in document else NO_REPAIRS,
        pauses=PauseRules(**document["pauses"]) if "pauses" in document else NO_PAUSES,
        expiry=(expiry.get("end_of") or f"{expiry['after_days']}{DAYS_SUFFIX}") if expiry else None,
        rewards={name: _reward(section) for name, section in document.get("rewards", {}).items()},
        streaks={name: _streak(section, keeping) for name, section in document.get("streaks", {}).items()},
        achievements={
            name: _achievement(section) for name, section in document.get("achievements", {}).items()
        },
        levels=tuple(map(_level, document.get("levels", ()))),
        friends_max=document.get("friends", {"max": 0})["max"],
        offline=OfflineRules(**document["offline"]) if "offline" in document else USUAL_OFFLINE,
        answers=_answers(document["answers"]) if "answers" in document else NO_ANSWERS,
        daily=daily_rules(document.get("daily"), document.get("boards"), document.get("leagues")),
        reminders=reminder_rules(document.get("reminders")),
    )


def _event_type(section: Section) -> EventType:
    cap, points, by_amount = section.get("cap", {}), section["points"], None
    if isinstance(points, Mapping):
        by_amount = AmountRule(points["of"], thousandths(points["each"]), points["earns"])
        points = points.get("base", 0)
    return EventType(
        points=points,
        by_amount=by_amount,
        cap_points=cap.get("points"),
        cap_events=cap.get("events"),
        per=Period(cap.get("per", Period.DAY)),
        declared_by=Declarer(section.get("declared_by", Declarer.ANYBODY)),
        keeps_streak=section.get("keeps_streak", True),
        properties=section.get("properties"),
    )


def _boost(section: Section) -> Boost:
    since, until = _instant(section["since"]), _instant(section["until"])
    return Boost(since, until, section["factor"], frozenset(section.get("event_types", ())))


def _instant(text: str) -> datetime:
    return parse_moment(text).utc


def _reward(section: Section) -> Reward:
    valid_from = _instant(section["valid_from"]) if "valid_from" in section else ALWAYS
    valid_until = _instant(section["valid_until"]) if "valid_until" in section else NEVER
    return Reward(**{**section, "valid_from": valid_from, "valid_until": valid_until})


def _answers(section: Section) -> AnswerRules:
    timing = Timing(**section["timing"]) if "timing" in section else None
    return AnswerRules(**{**section, "timing": timing})


def _streak(section: Section, keeping: list[str]) -> StreakRule:
    """keeping: the event types that keep streaks, which count if the section names none."""
    ((kind, value),) = section["needs"].items()
    if kind == NeedKind.SUM:
        need = Need(NeedKind.SUM, thousandths(value["at_least"]), value["property"])
    else:
        need = Need(NeedKind(kind), value)
    return StreakRule(
        per=StreakPeriod(section["per"]),
        need=need,
        event_types=frozenset(section.get("event_types", keeping)),
        freezes=section.get("freezes", False),
        pauses=section.get("pauses", False),
        rest_days=section.get("rest_days", False),
    )


def _achievement(section: Section) -> AchievementRule:
    return AchievementRule(
        tuple(map(_condition, section.get("all") or section["any"])),
        needs_all="all" in section,
        stays=section.get("withdrawn", "never") == "never",
        of_history=section.get("history", False),
        title=section.get("title", ""),
        points=section.get("points", 0),
        image_url=section.get("image_url", ""),
        is_secret=section.get("secret", False),
    )


def _level(section: Section) -> Level:
    return Level(section["name"], section["from"], section.get("title", ""), section.get("image_url", ""))


def _condition(condition: Section) -> Condition:
    (kind,) = (each for each in ConditionKind if each in condition)
    value = condition[kind]
    if kind is ConditionKind.POINTS:
        return Condition(kind, value)
    if kind is ConditionKind.SUM:
        return Condition(kind, thousandths(condition["at_least"]), value["event_type"], value["property"])
    if kind is ConditionKind.COUNT:
        return Condition(kind, condition["at_least"], event_type=value)
    return Condition(kind, condition["at_least"], streak=value)


def faults_of(document: Section) -> list[Fault]:
    """Return the faults of a document that satisfies book_schema.BOOK."""
    return [
        Fault(*fault)
        for fault in chain(
            _type_faults(document),
            _boost_faults(document),
            _limit_faults(document),
            _reward_faults(document),
            _streak_faults(document),
            _excess_sum_faults(document),
            _achievement_faults(document),
            _level_faults(document),
            _reminder_faults(document),
            _board_faults(document),
            _league_faults(document),
        )
    ]


def _type_faults(document: Section) -> Faults:
    for name, section in document["event_types"].items():
        path: Path = ("event_types", name)
        if (cap := section.get("cap")) is not None:
            if ("points" in cap) == ("events" in cap):
                yield (*path, "cap"), "must have points or events, and not both"
            elif "events" in cap and isinstance(section["points"], Mapping):
                yield (*path, "cap", "events"), "cannot be, because events differ in points here: take points"
            elif "points" in cap and cap["points"] < (least := _event_type(section).points):
                yield (*path, "cap", "points"), f"is below the {least} points of one event"
        if isinstance(section["points"], Mapping):
            yield from _amount_faults(document, name, (*path, "points"))
        for inner, reason in contract_faults(section["properties"]) if "properties" in section else ():
            yield (*path, "properties", *inner), reason


def _amount_faults(document: Section, event_type: str, path: Path) -> Faults:
    """Yield the faults of points by an amount. path: to them."""
    points = document["event_types"][event_type]["points"]
    if Decimal(str(points["each"])) * UNIT % 1:
        yield (*path, "each"), "has more than three decimals"
    elif reason := _property_fault(document, event_type, points["of"]):
        yield (*path, "of"), reason
    elif (most := most_points(document["event_types"][event_type])) > POINTS_MAX:
        yield path, f"let one event earn {most:,} points; {POINTS_MAX:,} are allowed"


def most_points(section: Section) -> int:
    """Return the most points that one event earns before boosts and cap. section: of its type.

    An amount is bounded by the type's data contract.
    """
    rule = _event_type(section)
    if rule.by_amount is None:
        return rule.points
    most_amount = thousandths(section["properties"]["properties"][rule.by_amount.of]["maximum"])
    return rule.points + rule.by_amount.points(most_amount)


def _boost_faults(document: Section) -> Faults:
    boosts: list[tuple[int, Boost]] = []  # those whose instants can be read, with their indexes
    for index, section in enumerate(document.get("boosts", ())):
        path: Path = ("boosts", index)
        unreadable = list(_instant_faults(section, path, "since", "until"))
        yield from unreadable
        yield from _type_name_faults(document, section, path)
        if unreadable:
            continue
        boost = _boost(section)
        if boost.since >= boost.until:
            yield (*path, "until"), "is not after since"
        boosts.append((index, boost))
    for (index, boost), (later_index, later_boost) in combinations(boosts, 2):
        if _overlap(boost, later_boost):
            yield ("boosts", later_index), f"overlaps with boosts.{index}: which of them applies?"


def _instant_faults(section: Section, path: Path, *names: str) -> Faults:
    for name in names:
        try:
            if name in section:
                _instant(section[name])
        except ValueError as error:
            yield (*path, name), str(error)


def _type_name_faults(document: Section, section: Section, path: Path) -> Faults:
    for index, name in enumerate(section.get("event_types", ())):
        if name not in document["event_types"]:
            yield (*path, "event_types", index), f"names {name}, which is no event type"


def _overlap(one: Boost, other: Boost) -> bool:
    share_a_type = not (one.event_types and other.event_types) or one.event_types & other.event_types
    return bool(share_a_type) and one.since < other.until and other.since < one.until


def _limit_faults(document: Section) -> Faults:
    """Yield the faults of the sections repairs, pauses, offline, expiry, daily and answers."""
    pauses, offline, expiry = (document.get(name) for name in ("pauses", "offline", "expiry"))
    if (repairs := document.get("repairs")) and repairs["dates_max"] > repairs["a_year"]:
        yield ("repairs", "dates_max"), "is more than a_year"
    if pauses and pauses["dates_max"] > pauses["dates_a_year"]:
        yield ("pauses", "dates_max"), "is more than dates_a_year"
    if offline and offline["days_max"] > offline["days_a_year"]:
        yield ("offline", "days_max"), "is more than days_a_year"
    if expiry is not None and len(expiry) != 1:
        yield ("expiry",), "must have after_days or end_of, and not both"
    daily = document.get("daily")
    if daily is not None and (not daily or {"rest_days", "rest_days_chosen"} <= daily.keys()):
        yield ("daily",), "must have rest_days or rest_days_chosen, and not both, or day_starts_at"
    if "answers" in document:
        answers = _answers(document["answers"])
        if answers.timing and answers.timing.from_ms > answers.timing.to_ms:
            yield ("answers", "timing", "from_ms"), "is more than to_ms"
        if answers.day_points_max < answers.most:
            reason = f"is below the {answers.most} points that one answer can earn"
            yield ("answers", "day_points_max"), reason


def _reward_faults(document: Section) -> Faults:
    for reward_id, section in document.get("rewards", {}).items():
        path: Path = ("rewards", reward_id)
        if reward_id in RESERVED_REWARDS:
            yield path, "is the name of what the book sells elsewhere"
        unreadable = list(_instant_faults(section, path, "valid_from", "valid_until"))
        yield from unreadable
        if not unreadable and _reward(section).valid_from >= _reward(section).valid_until:
            yield (*path, "valid_until"), "is not after valid_from"
        yield from _shown_faults(section, path)


def _shown_faults(section: Section, path: Path) -> Faults:
    """Yield what people could not read or see of a section's title, description and picture."""
    for name, allowed in (("title", ""), ("description", "\n"), ("text", "\n"), ("text_of_one", "\n")):
        text = section.get(name)
        if text is not None and not text.strip():
            yield (*path, name), "is blank: leave it out"
        invisible = (each for each in INVISIBLE.findall(text or "") if each not in allowed)
        if character := next(invisible, None):
            yield (*path, name), f"has the character U+{ord(character):04X}, which nobody sees"
    if "image_url" in section and (reason := _url_fault(section["image_url"])):
        yield (*path, "image_url"), reason


def _url_fault(url: str) -> str | None:
    """Return why a browser could not load a picture from a URL (RFC 3986); None if it may."""
    if not url.startswith(("https://", "data:image/")):
        return "must begin with https:// or data:image/"
    if URL.fullmatch(url) is None:
        return (
            "must be a URL in ASCII, without blanks and backslashes: others are written %20, and hosts xn--"
        )
    if url.startswith("data:"):
        return None if "," in url else "has no picture: it follows a comma, data:image/svg+xml,%3Csvg ..."
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError as error:
        return f"is no URL: {error}"[:200]
    if "@" in parts.netloc:
        return "must not have a user or a password in it"
    return None if parts.hostname and has_port else "has no host that can be called"


def _streak_faults(document: Section) -> Faults:
    for name, section in document.get("streaks", {}).items():
        path: Path = ("streaks", name)
        if name == DAILY:
            yield path, "is the streak of the profile, which every book has: choose another name"
        needs = section["needs"]
        if len(needs) != 1:
            yield (*path, "needs"), "must have exactly one of active_days, events and sum"
            continue
        dates_max = DATES_MAX[StreakPeriod(section["per"])]
        if needs.get(NeedKind.ACTIVE_DAYS, 0) > dates_max:
            reason = f"is more than the {dates_max} that every {section['per']} has"
            yield (*path, "needs", NeedKind.ACTIVE_DAYS), reason
        yield from _type_name_faults(document, section, path)
        if section.get("rest_days") and section["per"] != StreakPeriod.DAY:
            yield (*path, "rest_days"), f"are dates: a streak per {section['per']} has none"
        if "sum" in needs:
            yield from _sum_faults(document, path, section)


def _sum_faults(document: Section, path: Path, section: Section) -> Faults:
    sum_need, sum_path = section["needs"]["sum"], (*path, "needs", "sum")
    if Decimal(str(sum_need["at_least"])) * UNIT % 1:
        yield (*sum_path, "at_least"), "has more than three decimals"
    if "event_types" not in section:
        yield path, "needs event_types: of which events is the property summed?"
    for event_type in section.get("event_types", ()):
        if reason := _property_fault(document, event_type, sum_need["property"]):
            yield (*sum_path, "property"), reason


def _excess_sum_faults(document: Section) -> Faults:
    """Yield the points, streaks and achievements that sum one property too many of an event type."""
    properties: dict[str, set[str]] = {}  # by event type
    for path, event_type, summed in _declared_sums(document):
        properties.setdefault(event_type, set()).add(summed)
        if len(properties[event_type]) > SUMMED_MAX:
            yield path, f"sums more than {SUMMED_MAX} properties of {event_type}"


def _declared_sums(document: Section) -> Iterator[tuple[Path, str, str]]:
    """Yield each sum that points, streaks and achievements declare: path, event type, property."""
    for name, section in document["event_types"].items():
        if isinstance(section["points"], Mapping):
            yield ("event_types", name, "points"), name, section["points"]["of"]
    for name, section in document.get("streaks", {}).items():
        if "sum" in section["needs"]:
            for event_type in section.get("event_types", ()):
                yield ("streaks", name), event_type, section["needs"]["sum"]["property"]
    for name, section in document.get("achievements", {}).items():
        for condition in section.get("all", section.get("any", ())):
            if "sum" in condition:
                yield ("achievements", name), condition["sum"]["event_type"], condition["sum"]["property"]


def _achievement_faults(document: Section) -> Faults:
    for name, section in document.get("achievements", {}).items():
        path: Path = ("achievements", name)
        if "image_url" in section and (reason := _url_fault(section["image_url"])):
            yield (*path, "image_url"), reason
        if "points" in section:
            if section.get("withdrawn") != "when_untrue":
                reason = "must be when_untrue: what was paid is taken back when it is no longer true"
                yield (*path, "withdrawn"), reason
            if section.get("history"):
                yield (*path, "history"), "cannot be with points, which are for events since the declaration"
        if ("all" in section) == ("any" in section):
            yield path, "must have all or any, and not both"
            continue
        key = "all" if "all" in section else "any"
        for index, condition in enumerate(section[key]):
            for inner_path, reason in _condition_faults(document, condition):
                yield (*path, key, index, *inner_path), reason


def _level_faults(document: Section) -> Faults:
    levels = document.get("levels", ())
    names: set[str] = set()
    for index, section in enumerate(levels):
        path: Path = ("levels", index)
        if section["name"] in names:
            yield (*path, "name"), f"is {section['name']}, which another level has"
        names.add(section["name"])
        if index and section["from"] <= (before := levels[index - 1]["from"]):
            yield (*path, "from"), f"is not above the {before} of the level before"
        yield from _shown_faults(section, path)


def _reminder_faults(document: Section) -> Faults:
    reminders = document.get("reminders")
    if reminders is None:
        return
    texts, language = reminders["texts"], reminders.get("language", LANGUAGE_DEFAULT)
    if language not in texts:
        yield ("reminders", "language"), f"is {language}, which texts lacks: whose text do others get?"
    names: set[str] = set()
    for name, section in texts.items():
        path: Path = ("reminders", "texts", name)
        if name.lower() in names:
            yield path, "differs from another language in capitals only"
        names.add(name.lower())
        yield from _shown_faults(section, path)
        for each in section:
            if mark := foreign_mark(section[each]):
                yield (*path, each), f"has {mark}: the only mark is {{days}}"
        if "{days}" in section["title"]:
            yield (*path, "title"), "has {days}, which stands in text and text_of_one alone"


def _board_faults(document: Section) -> Faults:
    for name, section in document.get("boards", {}).items():
        path: Path = ("boards", name)
        dates: dict[str, date] = {}
        for end in ("from", "until"):
            try:
                dates |= {end: date.fromisoformat(section[end])} if end in section else {}
            except ValueError as error:
                yield (*path, end), f"is no date that exists: {error}"
                break
        else:
            if ("per" in section) == bool(dates) or len(dates) == 1:
                yield path, "must have per, or from and until, and not both"
            elif dates and dates["from"] > dates["until"]:
                yield (*path, "until"), "is before from"
            elif dates and (dates["until"] - dates["from"]).days >= SEASON_DATES_MAX:
                yield (*path, "until"), f"makes more than {SEASON_DATES_MAX} dates"


def _league_faults(document: Section) -> Faults:
    if (leagues := document.get("leagues")) is None:
        return
    board = document.get("boards", {}).get(leagues["board"])
    if board is None:
        yield ("leagues", "board"), f"names {leagues['board']}, which is no board"
    elif board.get("per") != BoardPeriod.WEEK or "group" in board:
        yield ("leagues", "board"), f"names {leagues['board']}, which is not per week and without group"
    if leagues["up"] + leagues["down"] >= leagues["size"]:
        yield ("leagues", "size"), "is not above up + down: nobody would stay"


def _condition_faults(document: Section, condition: Section) -> Faults:
    kinds = [each for each in ConditionKind if each in condition]
    if len(kinds) != 1:
        yield (), "must have exactly one of points_earned, count, sum and streak"
        return
    (kind,) = kinds
    if kind is ConditionKind.POINTS:
        if "at_least" in condition:
            yield (), "has its threshold in points_earned"
        return
    if "at_least" not in condition:
        yield (), "needs at_least"
        return
    if kind is ConditionKind.SUM:
        yield from _sum_condition_faults(document, condition)
        return
    if Decimal(str(condition["at_least"])) % 1:
        yield ("at_least",), "is not whole"
    name = condition[kind]
    if kind is ConditionKind.STREAK and name not in document.get("streaks", {}):
        yield (kind.value,), f"names {name}, which is no streak"
    if kind is ConditionKind.COUNT and name not in document["event_types"]:
        yield (kind.value,), f"names {name}, which is no event type"


def _sum_condition_faults(document: Section, condition: Section) -> Faults:
    event_type, name = condition["sum"]["event_type"], condition["sum"]["property"]
    if Decimal(str(condition["at_least"])) * UNIT % 1:
        yield ("at_least",), "has more than three decimals"
    if event_type not in document["event_types"]:
        yield ("sum", "event_type"), f"names {event_type}, which is no event type"
    elif reason := _property_fault(document, event_type, name):
        yield ("sum", "property"), reason


def _property_fault(document: Section, event_type: str, name: str) -> str | None:
    """Return why a property of an event type cannot be summed; None if it can, or the book lacks the type."""
    if event_type not in document["event_types"]:
        return None
    contract = (document["event_types"][event_type].get("properties") or {}).get("properties") or {}
    described = contract.get(name)
    if isinstance(described, Mapping) and described.get("type") in ("integer", "number"):
        least: Any = described.get("minimum")
        most: Any = described.get("maximum")
        if (
            all(isinstance(bound, int | float) for bound in (least, most))
            and 0 <= least <= most <= AMOUNT_MAX
        ):
            return None
    return (
        f"is no bounded number of {event_type}: its data contract must give it a type (integer or number),"
        f" a minimum of 0 or more and a maximum of up to {AMOUNT_MAX}"
    )
