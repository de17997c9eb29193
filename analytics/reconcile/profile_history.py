"""Asks the warehouse's events and older profile versions for settings that a newest profile lacks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any

from analytics.reconcile.profile_settings import PastSettings, changes_of
from analytics.warehouse.statements import literal

Rows = Callable[[str], Sequence[dict[str, Any]]]
OBSERVED = """SELECT event_id, timezone FROM lake.events
WHERE user_id = {user} AND timezone IS NOT NULL ORDER BY event_id DESC LIMIT 1"""
CHOSEN = """SELECT timezone_chosen, updated_at FROM lake.streaks
WHERE user_id = {user} AND timezone_chosen IS NOT NULL ORDER BY version"""


@dataclass(frozen=True, slots=True)
class SettingsHistory:
    """Asks a warehouse for past settings: once for each user, and one user at a time.

    rows: the warehouse's method `rows`.
    """

    rows: Rows
    _known: dict[str, PastSettings] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, user_id: str) -> PastSettings:
        """Return a user's past settings. Raises StatementFailed."""
        with self._lock:
            if user_id not in self._known:
                self._known[user_id] = self._ask(literal(user_id))
            return self._known[user_id]

    def _ask(self, user: str) -> PastSettings:
        observed = self.rows(OBSERVED.format(user=user))
        versions = [
            (str(each["timezone_chosen"]), _moment(each["updated_at"]))
            for each in self.rows(CHOSEN.format(user=user))
        ]
        zone, at = (observed[0]["timezone"], observed[0]["event_id"]) if observed else (None, "")
        return PastSettings(zone, at, changes_of(versions))


def _moment(value: Any) -> datetime:
    """Return a timestamp as a datetime. Redshift's Data API answers with text."""
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
