"""A night's pass: partitions of the lake that are old enough, each gone through once, and again if it grew.

It reads no table as a whole. The night after a partition becomes old enough, its rows name the items. What
came late to it is too young by then: the state notes when to look again. A partition that a night has curated
anew is looked at that night.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from adapters.platform.objects import Objects, StoredObject
from analytics.lake import layout
from analytics.lake.layout import Place
from analytics.retention.aged_rows import Ages, first_after, old_rows
from analytics.retention.leaving import Leaving, Left
from analytics.retention.retention_state import RetentionState
from rules.days import DAY

# What had a time to live has gone by it, if it came so long before the first night: DynamoDB takes some days.
TTL_DAYS = 100


class OutOfTime(Exception):
    """The rest is another call's."""


@dataclass(slots=True)
class RetentionPass:
    """One kind of thing in one night. fresh: the partitions that the night has curated. has_time: to go on.

    told: what came of it in this call.
    """

    objects: Objects
    leaving: Leaving
    run_id: str
    today: date
    fresh: Collection[Place]
    has_time: Callable[[], bool] = lambda: True
    told: Left = field(default_factory=Left)

    def run(self) -> bool:
        """Go on where the last call has ended; returns whether all is done.

        Raises NoObject if somebody puts a file in the place of others meanwhile; it is safe to repeat.
        """
        today = self.today.isoformat()
        state = RetentionState.read(self.objects, self.leaving.name, today)
        state.begin(
            self.run_id, {each.dt for each in self.fresh if each.entity == self.leaving.entity}, today
        )
        state.save(self.objects)
        try:
            for dt in sorted(self._dates(state)):
                self._date(state, dt)
        except OutOfTime:
            return False
        return True

    def _dates(self, state: RetentionState) -> set[str]:
        """Return the partitions' dates to go through, none of which is younger than it must be."""
        last = (self._edge() - DAY).isoformat()
        found = {dt for dt, due in state.due.items() if due <= self.today.isoformat() and dt <= last}
        since = (date.fromisoformat(state.through) + DAY).isoformat() if state.through else None
        if since is None or since <= last:
            found |= set(map(_date_of, layout.curated_files(self.objects, self.leaving.entity, since, last)))
        return found - {layout.NOWHERE}

    def _edge(self) -> date:
        """Return the first date of which nothing is old enough."""
        return self.today - timedelta(days=self.leaving.days)

    def _date(self, state: RetentionState, dt: str) -> None:
        files = layout.curated_files(self.objects, self.leaving.entity, dt, dt)
        ages = self._ages(state)
        for stored in files:
            if state.at[0] <= stored.key:
                self._file(state, stored, ages)
        later = first_after(self.objects, self.leaving.entity, files, ages)
        again = later and (later.date() + timedelta(days=self.leaving.days + 1)).isoformat()
        state.gone_through(dt, again or "")
        state.save(self.objects)

    def _ages(self, state: RetentionState) -> Ages:
        since = None
        if self.leaving.had_ttl:
            since = _begin(date.fromisoformat(state.began) - timedelta(days=TTL_DAYS))
        return Ages(self.leaving.age, since, _begin(self._edge()))

    def _file(self, state: RetentionState, stored: StoredObject, ages: Ages) -> None:
        done = state.done_in(stored.key, stored.etag)
        for number, rows in enumerate(old_rows(self.objects, self.leaving.entity, stored, ages)):
            if number < done:
                continue
            if not self.has_time():
                state.at = stored.key, stored.etag, number
                state.save(self.objects)
                raise OutOfTime
            self.told += self.leaving.leave(rows)


def _date_of(stored: StoredObject) -> str:
    place = layout.curated_place(stored.key)
    return place.dt if place else layout.NOWHERE


def _begin(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
