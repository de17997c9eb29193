"""Reads settings that the newest profile lacks, from the lake's events and older versions of profiles.

They are read from curated files. The warehouse is not asked: it may be away, and is loaded while
reconciliation runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adapters.platform.objects import Objects
from analytics.lake.curated_files import tables
from analytics.lake.layout import curated_files
from analytics.recompute.user_fold import pauses_of
from analytics.reconcile.profile_settings import Changes, PastSettings
from rules.days import stamp
from rules.engagement.account import TZ_CHANGES_KEPT_MAX
from rules.engagement.archive import Spans

READERS = 4
FIRST_VERSION = 1
OBSERVED_COLUMNS = ("user_id", "event_id", "timezone")
CHOSEN_COLUMNS = ("user_id", "version", "timezone_chosen", "updated_at")


@dataclass(frozen=True, slots=True)
class SettingsHistory:
    """Reads past settings from the lake: once for each user, one user at a time, newest files first."""

    objects: Objects
    _by_user: dict[str, PastSettings] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, user_id: str) -> PastSettings:
        """Return a user's past settings."""
        with self._lock:
            if user_id not in self._by_user:
                self._by_user[user_id] = PastSettings(*self._observed(user_id), self._changes(user_id))
            return self._by_user[user_id]

    def pauses(self, user_id: str) -> Spans:
        """Return all pauses of all versions of a user's profile: a pause is never withdrawn."""
        rows = (row for rows in self._rows_of(user_id, "streaks", ("user_id", "pauses")) for row in rows)
        return tuple(sorted({pause for row in rows for pause in pauses_of(row["pauses"])}))

    def _observed(self, user_id: str) -> tuple[str | None, str]:
        """Return the newest zone that an event named, and the event's id; (None, "") if none named a zone.

        An event's file is placed by the time in its id, so the newest file that names a zone has the newest.
        """
        for rows in self._rows_of(user_id, "events", OBSERVED_COLUMNS):
            zones = [(row["event_id"], row["timezone"]) for row in rows if row["timezone"] is not None]
            if zones:
                event_id, zone = max(zones)
                return zone, event_id
        return None, ""

    def _changes(self, user_id: str) -> Changes:
        """Return the changes of zone: at least as many as a profile keeps, or all since version 1."""
        versions: dict[int, tuple[str | None, Any]] = {}
        changes: Changes = ()
        for rows in self._rows_of(user_id, "streaks", CHOSEN_COLUMNS):
            versions |= {row["version"]: (row["timezone_chosen"], row["updated_at"]) for row in rows}
            chosen = [(zone, at) for _, (zone, at) in sorted(versions.items()) if zone is not None]
            changes = changes_of(chosen)
            # The time of the oldest change is not sure: an older file may have an earlier version with the
            # same zone.
            if FIRST_VERSION in versions or len(changes) > TZ_CHANGES_KEPT_MAX:
                break
        return changes

    def _rows_of(self, user_id: str, entity: str, names: tuple[str, ...]) -> Iterator[list[dict[str, Any]]]:
        """Yield the user's rows in each of an entity's files that has any, newest file first."""
        files = reversed(curated_files(self.objects, entity))
        for _, table in tables(self.objects, entity, files, names, READERS):
            rows = table.filter(pc.equal(table["user_id"], pa.scalar(user_id)))
            if rows.num_rows:
                yield rows.to_pylist()


def changes_of(versions: list[tuple[str, datetime]]) -> Changes:
    """Return changes of zone as (when, zone), from successive versions: (zone chosen, when written)."""
    changes: list[tuple[str, str]] = []
    for chosen, updated_at in versions:
        if not changes or changes[-1][1] != chosen:
            changes.append((stamp(updated_at.replace(tzinfo=UTC)), chosen))
    return tuple(changes)
