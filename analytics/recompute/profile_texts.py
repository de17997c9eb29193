"""Reads the texts of a profile's row in the lake: dates, pauses, and the opening of a streak."""

from datetime import date

from rules.engagement.streak import Checkpoint


def dates_of(text: str | None) -> tuple[date, ...]:
    """Read dates separated by commas, such as `2026-01-30,2026-01-31`."""
    return tuple(date.fromisoformat(day) for day in (text or "").split(",") if day)


def opening_of(text: str | None) -> Checkpoint | None:
    """Read the streak that came from another system, such as `2026-01-30 12 90 300 0`."""
    return Checkpoint.of(text) if text else None


def pauses_of(text: str | None) -> tuple[tuple[date, date], ...]:
    """Read pauses separated by commas, such as `2026-01-01/2026-01-31`. Both dates are included."""
    pairs = (pause.split("/") for pause in (text or "").split(",") if pause)
    return tuple((date.fromisoformat(first), date.fromisoformat(last)) for first, last in pairs)
