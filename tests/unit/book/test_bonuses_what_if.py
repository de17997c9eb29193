"""What-if leaves bonuses as they were paid, before and after alike."""

from datetime import UTC, date, datetime
from typing import Any

from analytics.what_if.user_history import LedgerRow, UserSettings, actual_world

NOW = datetime(2026, 3, 9, tzinfo=UTC)
NOTHING: Any = dict.fromkeys(LedgerRow._fields)


def row(kind: str, points: int, seq: int, **more: Any) -> LedgerRow:
    place = int(NOW.timestamp() * 1_000_000) + seq
    fields = {"user_id": "u", "kind": kind, "points": points, "seq": seq, "created_at": place}
    return LedgerRow(**{**NOTHING, **fields, **more})


def test_a_bonus_is_ever_earned_and_spent_like_any_other_points() -> None:
    rows = [
        row("EARN", 10, 1, event_type="READ", event_id="e", day=date(2026, 3, 8)),
        row("BONUS", 50, 2, reward_id="three", day=date(2026, 3, 8)),
        row("REDEEM", -55, 3, reward_id="mug"),
        row("BONUS", -50, 4, reward_id="three", day=date(2026, 3, 8)),
    ]
    world = actual_world(rows[:3], UserSettings(), NOW)
    assert (world.earned, world.balance) == (60, 5)
    world = actual_world(rows, UserSettings(), NOW)
    assert (world.earned, world.balance) == (10, -45)
