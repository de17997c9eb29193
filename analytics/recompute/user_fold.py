"""Folds one account from the lake's rows, by the rules.

A night continues the fold of the night before. It has the profile up to an entry, the streak up to a
date (it is *settled* up to there), and the active dates after that date. An entry of an older date cannot be
added, nor can a pause that reaches further back. Then the account is folded from its first entry.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import date, time
from functools import lru_cache
from typing import Any

from adapters.engagement.account_items import profile_attributes, profile_from
from rules.book.board_rules import BoardPeriod, BoardRule
from rules.book.daily import DailyRules, DailyTerms, Weekday
from rules.book.point_rules import Cap
from rules.engagement.account import profile_with_entries
from rules.engagement.account_state import Profile
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, Setting, active_events
from rules.engagement.reconciliation import DIGEST_BITS, digest_of
from rules.engagement.rest_days import NO_TERMS, RestDays, choice_of_text, choice_text
from rules.engagement.streak import (
    NO_REST_DAYS,
    Checkpoint,
    Cover,
    Streak,
    cover_until,
    fold,
    is_still_settled,
    lapse_date,
)

Row = Mapping[str, Any]
# The fields of a draft that its row in the lake has.
DRAFT_COLUMNS = (
    *("kind", "points", "event_id", "event_type", "activity_date", "reward_id", "reverses", "freeze"),
    *("freeze_date", "rules_version", "cap", "is_passive", "expires_on", "held_at", "reason", "brand"),
    *("measures", "timezone", "setting", "set_to"),
)
# The columns of a row from which `entry_of` makes an entry, in this order.
ENTRY = ("account_id", "created_at", "seq", "balance", *DRAFT_COLUMNS)
KINDS = {kind.value: kind for kind in EntryKind}
FREEZES: dict[str | None, FreezeNote | None] = {None: None, **{note.value: note for note in FreezeNote}}
SETTING_KINDS: dict[str | None, Setting | None] = {None: None, **{each.value: each for each in Setting}}
BOARD = ("name", "per", "first", "last", "group")  # the fields of a BoardRule
cap_of = lru_cache(1024)(Cap.of)  # millions of entries have few different caps


class AllEntriesNeeded(Exception):
    """The fold cannot be continued: the account must be folded from its first entry."""


def entry_of(values: Sequence[Any]) -> Entry:
    """Return the entry of a row. values: those of the columns ENTRY; instants are stamps, dates ISO texts.

    If a row cannot be an entry that this system has written, only its points are taken. So it differs from
    the ledger's entry, and the comparison finds it.
    """
    account_id, created_at, seq, balance, *draft_values = values
    draft_fields = dict(zip(DRAFT_COLUMNS, draft_values, strict=True))
    try:
        draft_fields["kind"] = KINDS[draft_fields["kind"]]
        draft_fields["freeze"] = FREEZES[draft_fields["freeze"]]
        draft_fields["cap"] = cap_of(draft_fields["cap"])
        draft_fields["setting"] = SETTING_KINDS[draft_fields["setting"]]
        draft_fields["is_passive"] = bool(draft_fields["is_passive"])
        entry = Entry(account_id, created_at, seq, balance, Draft(**draft_fields))
        if entry.draft.kind in (EntryKind.SETTING, EntryKind.REVERSE):  # these have texts that may be wrong
            profile_with_entries(Profile(account_id), [entry])
    except (KeyError, ValueError):
        return Entry(account_id, created_at, seq, balance, Draft(EntryKind.ADJUST, draft_fields["points"]))
    return entry


def dates_of(text: str | None) -> tuple[date, ...]:
    """Read dates separated by commas, such as `2026-01-30,2026-01-31`."""
    return tuple(date.fromisoformat(day) for day in (text or "").split(",") if day)


@dataclass(slots=True)
class UserFold:
    """The fold of an account over the rows that were added."""

    user_id: str
    seq: int | None = None  # of the newest entry; None: there is no entry
    profile: Profile = field(init=False)  # by all entries, but for the streak
    entries: int = 0  # the number of entries
    points: int = 0  # the sum of all entries
    digest: int = 0  # of all entries
    is_sound: bool = True  # the entries are numbered 0, 1, 2 ... and the points add up to the balances
    settled: Streak | None = None  # the streak up to settled_on, by the cover settled_cover
    settled_on: date | None = None  # None: the streak is not settled up to any date
    settled_cover: Cover = field(default_factory=Cover)
    active: dict[date, int] = field(default_factory=dict)  # later date -> how many events make it active

    daily_terms: DailyTerms = NO_TERMS  # what the books say of dates

    def __post_init__(self) -> None:
        self.profile = Profile(self.user_id, cover=Cover(rest=RestDays(self.daily_terms)))

    def add_entries(self, entries: Iterable[Entry]) -> None:
        """Add later entries, oldest first. An opening entry may come twice. Raises AllEntriesNeeded."""
        new = []
        for entry in entries:
            if entry.seq == 0 and self.seq is not None:
                continue
            self.is_sound &= entry.seq == (0 if self.seq is None else self.seq + 1)
            self.seq = entry.seq
            self.points += entry.draft.points
            self.is_sound &= self.points == entry.balance
            new.append(entry)
        if not new:
            return
        self.entries += len(new)
        self.digest = (self.digest + digest_of(new)) % (1 << DIGEST_BITS)
        self.profile = profile_with_entries(self.profile, new)
        for day, events in active_events(new).items():
            if self.settled_on and day <= self.settled_on:
                raise AllEntriesNeeded
            self.active[day] = self.active.get(day, 0) + events

    def streak(self, until: date = date.max) -> Streak | None:
        """Return the streak of all active dates up to `until`. Raises AllEntriesNeeded."""
        cover = self.profile.cover
        if self.settled_on and not is_still_settled(
            self.settled, self.settled_cover, cover_until(cover, self.settled_on)
        ):
            raise AllEntriesNeeded
        dates = (day for day, events in self.active.items() if events > 0 and day <= until)
        return fold(dates, cover, self.settled)

    def settled_up_to(self, until: date) -> "UserFold":
        """Return the fold with its streak settled up to a date. Raises AllEntriesNeeded."""
        later = copy(self)
        later.active = dict(self.active)
        if self.settled_on and until <= self.settled_on:
            return later
        later.settled, later.settled_on = self.streak(until), until
        later.settled_cover = cover_until(self.profile.cover, until)
        later.active = {day: events for day, events in self.active.items() if day > until}
        return later

    def row(self) -> dict[str, Any]:
        """Return the account as a row of the result. Raises AllEntriesNeeded."""
        streak, profile = self.streak(), self.profile
        head = profile.head
        attributes = {name: value for name, value in profile_attributes(profile).items() if value is not None}
        return {
            "user_id": self.user_id,
            "last_activity_date": streak and streak.last,
            "current_streak": streak and streak.length,
            "longest_streak": streak and streak.longest,
            "active_days": streak and streak.active_days,
            "freezes_spent": (",".join(map(str, streak.spent)) or None) if streak else None,
            "lapses_on": lapse_date(streak, profile.cover) if streak else None,
            "entries": self.entries if head else None,
            "total_bestie_points": profile.total_points if head else None,
            "points": self.points if head else None,
            "balance": profile.balance if head else None,
            "ledger_head": head and head.created_at,
            "ledger_seq": self.seq,
            "sound": self.is_sound if head else None,
            "digest": self.digest if head else None,
            "profile": json.dumps(attributes),
        }

    @property
    def state(self) -> str:
        """The values of the fold that the row does not have, as JSON for a later night."""
        streak, cover = self.settled, self.settled_cover
        state = {
            "streak": streak
            and [streak.last, streak.length, streak.longest, streak.active_days, streak.spent],
            "settled_on": self.settled_on,
            "cover": {
                "freezes": cover.freezes,
                "pauses": cover.pauses,
                "skipped": sorted(cover.skipped),
                "opening": cover.opening and cover.opening.text,
                **({"rest": _rest_values(cover.rest)} if cover.rest.terms or cover.rest.chosen else {}),
            },
            "active": sorted(self.active.items()),
        }
        return json.dumps(state, default=date.isoformat)

    @classmethod
    def of(cls, row: Row, daily_terms: DailyTerms = NO_TERMS) -> "UserFold":
        """Return the fold again. row: the answer of `row`, with the column `state`."""
        state, has_ledger = json.loads(row["state"]), row["ledger_head"] is not None
        fold = cls(
            user_id=row["user_id"],
            seq=row["ledger_seq"],
            entries=row["entries"] or 0,
            points=row["points"] or 0,
            digest=row["digest"] or 0,
            is_sound=row["sound"] if has_ledger else True,
            settled=_streak_from(state["streak"]) if state["streak"] else None,
            settled_on=date.fromisoformat(state["settled_on"]) if state["settled_on"] else None,
            settled_cover=_cover_from(state["cover"]),
            active={date.fromisoformat(day): events for day, events in state["active"]},
            daily_terms=daily_terms,
        )
        fold.profile = profile_from(json.loads(row["profile"]), daily_terms)
        return fold


def _freezes_from(freezes: Iterable[Any]) -> tuple[tuple[date, int], ...]:
    return tuple((date.fromisoformat(day), change) for day, change in freezes)


def _streak_from(values: Sequence[Any]) -> Streak:
    last, length, longest, active_days, spent = values
    return Streak(
        date.fromisoformat(last), length, longest, active_days, tuple(map(date.fromisoformat, spent))
    )


def _cover_from(values: Mapping[str, Any]) -> Cover:
    return Cover(
        _freezes_from(values["freezes"]),
        tuple((date.fromisoformat(first), date.fromisoformat(last)) for first, last in values["pauses"]),
        frozenset(map(date.fromisoformat, values["skipped"])),
        opening=Checkpoint.of(values["opening"]) if values["opening"] else None,
        rest=_rest_from(values["rest"]) if "rest" in values else NO_REST_DAYS,
    )


def _rest_values(rest: RestDays) -> list[Any]:
    terms = [
        (
            *(since, sorted(rules.rest_days), rules.chosen_max, f"{rules.day_starts_at:%H:%M}"),
            *([[[getattr(rule, name) for name in BOARD] for rule in rules.boards]] if rules.boards else []),
        )
        for since, rules in rest.terms
    ]
    return [terms, [choice_text(*choice) for choice in rest.chosen]]


def _rest_from(values: Sequence[Any]) -> RestDays:
    terms, choices = values
    return RestDays(
        tuple(
            (
                date.fromisoformat(since),
                DailyRules(
                    frozenset(map(Weekday, weekdays)),
                    most,
                    time.fromisoformat(start),
                    tuple(map(_board_from, *boards)) if boards else (),
                ),
            )
            for since, weekdays, most, start, *boards in terms
        ),
        tuple(map(choice_of_text, choices)),
    )


def _board_from(values: Sequence[Any]) -> BoardRule:
    name, per, first, last, group = values
    begins, ends = (day and date.fromisoformat(day) for day in (first, last))
    return BoardRule(name, BoardPeriod(per) if per else None, begins, ends, group)
