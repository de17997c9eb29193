"""Points for achievements (docs/rules.md, rule 15): a bonus, once a user and achievement.

A bonus is an entry of the ledger, dated at the date for which the event counts that made its achievement
true. A bonus of 0 points says that another system has paid it (rule 20).
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import NamedTuple

from rules.engagement.ledger import EARNING, Draft, Entry, EntryKind, FreezeNote, Setting

BONUSES_MAX = 40  # entries of one settlement, so that they fit into a transaction
ELSEWHERE = "elsewhere"  # in place of a date: another system has paid
# Settings that change which periods of a streak are missed.
_COVERING = frozenset({Setting.PAUSE, Setting.REST_DAYS, Setting.SKIPPED, Setting.AMNESTIES, Setting.OPENING})
_FREEZES = frozenset({FreezeNote.GRANTED, FreezeNote.REVOKED})

PaidBonuses = Mapping[
    str, int
]  # points that are not 0, by `{achievement} {date}`; or `{achievement} elsewhere`


class DueBonus(NamedTuple):
    """A bonus that a user must have."""

    day: date
    points: int


def may_change_bonuses(draft: Draft) -> bool:
    """Whether an entry may make an achievement true or untrue. A bonus never does: it leads to no other."""
    return draft.kind in EARNING or draft.freeze in _FREEZES or draft.setting in _COVERING


def with_bonuses(paid: PaidBonuses, entries: Iterable[Entry]) -> dict[str, int]:
    """Return what was paid, with the bonuses of later entries."""
    after = dict(paid)
    for draft in (entry.draft for entry in entries if entry.draft.kind is EntryKind.BONUS):
        day = draft.activity_date if draft.points else ELSEWHERE
        key = f"{draft.reward_id} {day}"
        after[key] = after.get(key, 0) + draft.points
        if draft.points and not after[key]:
            del after[key]
    return after


def bonus_drafts(paid: PaidBonuses, due: Mapping[str, DueBonus], paying: Collection[str]) -> list[Draft]:
    """Return the entries that make a ledger agree with the bonuses that are due, gains first.

    due: by achievement. paying: the achievements of the book that have points; of others nothing is paid or
    taken back.
    """
    changes = {
        (name, bonus.day.isoformat()): bonus.points
        for name, bonus in due.items()
        if f"{name} {ELSEWHERE}" not in paid
    }
    for name, _, day in (key.partition(" ") for key in paid):
        if name in paying and day != ELSEWHERE:
            changes[name, day] = changes.get((name, day), 0) - paid[f"{name} {day}"]
    drafts = [
        Draft(EntryKind.BONUS, points, activity_date=day, reward_id=name)
        for (name, day), points in sorted(changes.items())
        if points
    ]
    return sorted(drafts, key=lambda draft: -draft.points)


def paid_points(paid: PaidBonuses, name: str) -> int:
    """Return the points that a user has for an achievement."""
    return sum(points for key, points in paid.items() if key.partition(" ")[0] == name)
