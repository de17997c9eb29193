"""Reads the texts in which a profile's row in the lake lists dates and pauses."""

from datetime import date

from rules.engagement.streak import Checkpoint


def dates_of(text: str | None) -> tuple[date, ...]:
    """Read dates separated by commas, such as `2026-01-30,2026-01-31`."""
    return tuple(date.fromisoformat(each) for each in (text or "").split(",") if each)


def opening_of(text: str | None) -> Checkpoint | None:
    """Read the streak that another system has told, such as `2026-01-30 12 90 300 0`."""
    return Checkpoint.of(text) if text else None


def pauses_of(text: str | None) -> tuple[tuple[date, date], ...]:
    """Read pauses separated by commas, such as `2026-01-01/2026-01-31`: both dates are included."""
    pairs = (each.split("/") for each in (text or "").split(",") if each)
    return tuple((date.fromisoformat(first), date.fromisoformat(last)) for first, last in pairs)
