"""A plain reading of rule 11: each lot by itself, spent by expiry, emptied when its time comes."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

EARNING = ("EARN", "CLAWBACK", "RERATE")


@dataclass
class Plain:
    """Accounts as told by the rule: each lot by itself, spent by expiry, emptied when its time comes."""

    earned: list[tuple[date, int]]
    moved: list[tuple[datetime, int]]  # what was spent and not given back

    def expired(self, now: datetime) -> dict[date, int]:
        """By expiry, what has expired by an instant."""
        lots: dict[date, int] = {}
        for on, points in self.earned:
            lots[on] = lots.get(on, 0) + points
        gone: dict[date, int] = {}
        open_, owed = dict(lots), 0  # owed: spent beyond what is there
        steps: list[tuple[datetime, int, int | date]] = [(when, 1, points) for when, points in self.moved]
        steps += [(datetime(on.year, on.month, on.day, 12, tzinfo=UTC), 2, on) for on in lots]
        for when, _, value in sorted(steps, key=lambda each: each[:2]):
            if when > now:
                break
            if isinstance(value, int):
                owed += value
                taken = [on for on in sorted(open_) if open_[on]]
                for on in taken:
                    some = max(0, min(owed, open_[on]))
                    open_[on] -= some
                    owed -= some
            else:
                left = open_.pop(value) - owed
                owed = max(0, -left)
                gone[value] = max(0, left)
        return {on: points for on, points in gone.items() if points}

    @classmethod
    def of(cls, entries: Iterable[dict[str, Any]]) -> "Plain":
        """What an account's ledger items say of earning and spending. What expired is left out."""
        by_place = {each["created_at"]: each for each in entries}
        undone = {each["reverses"] for each in by_place.values() if each.get("reverses")}
        earned = [
            (date.fromisoformat(each["expires_on"]), each["points"])
            for each in by_place.values()
            if each["kind"] in EARNING and each.get("expires_on")
        ]
        moved = [
            (datetime.fromisoformat(each.get("held_at") or place), -each["points"])
            for place, each in by_place.items()
            if each["kind"] == "REDEEM" and place not in undone
        ]
        return cls(earned, moved)
