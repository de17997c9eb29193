"""The estimate of a device is what the service's own rule says, if nothing but dates is new (rule 2)."""

from datetime import date, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from streakline_client import estimated
from streakline_client.profile import new_profile

from rules.engagement.streak import Cover, fold, shown_streak

DAY = timedelta(days=1)
FIRST = date(2026, 3, 1)
dates = st.lists(st.integers(0, 30), min_size=1, max_size=14).map(sorted)


def shown(active: list[date], freezes: int, today: date) -> Any:
    """What the service answers."""
    cover = Cover(freezes=((FIRST, 1),) * freezes)
    seen = shown_streak(fold(active, cover) if active else None, cover, today)
    return {
        **new_profile("u"),
        "current_streak": seen.current,
        "longest_streak": seen.longest,
        "streak_status": seen.status.value,
        "last_activity_date": seen.last.isoformat() if seen.last else None,
        "freezes_available": seen.freezes_available,
        "active_days": seen.active_days,
        "as_of": today.isoformat(),
    }


@given(dates, st.integers(0, 3), st.integers(0, 14), st.integers(0, 4), st.integers(0, 4))
def test_it_is_what_the_service_will_say(
    numbers: list[int], freezes: int, known: int, later: int, after: int
) -> None:
    days = sorted({FIRST + number * DAY for number in numbers})
    before, new = days[:known], days[known:]
    read_on = min((before[-1] if before else FIRST) + later * DAY, new[0] if new else date.max)
    today = max(days[-1], read_on) + after * DAY
    wanted = shown(days, freezes, today)
    assert estimated(shown(before, freezes, read_on), new, today) == wanted
