"""Fills a region that returns with all that the new writer has: the last step of local/region_return.py.

Each item of the new writer's tables is taken over as a change, by the code that follows changes (rule 23).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from adapters.platform.items import Item
from adapters.platform.tables import BEFORE_ALL, chunks, get_all, query_all
from adapters.regions import Follower, claims_of, events_of
from local.region_unseen import CLAIMS, EVENTS, PROFILES, Side, is_deletion_mark, shared_fields
from rules.regions.changes import KEYS, LEDGER, ItemChange, place_needed
from rules.user_ids import kept_partition

CHUNK_ITEMS = 200
ATTEMPTS_MAX = 5
DAYS = "DailyActivity"


@dataclass(frozen=True, slots=True)
class RegionFill:
    """Fills the old region; `run` is the whole of it."""

    old: Side  # the region that returns, and follows already
    new: Side  # the one that writes
    follower: Follower  # takes changes over in the old region
    epoch: int  # of the register since the old region follows
    now: datetime
    say: Callable[[str], None]  # prints a line for the operator

    def run(self) -> None:
        """Let the old region take over all that the new one has. Raises RuntimeError if something remains.

        First goes what the new region has deleted since the old one was cut: until every process knew the
        epoch, deletions were not sent, or not taken over. An entry that the new region has not stored yet
        goes too, and comes back with the carrier that names it.

        The order is that in which a writer writes: an event's claim first; an entry before the days, the
        profile and the command's claim that name it.
        """
        for table in sorted(KEYS.keys() & self.old.tables.keys()):
            self._take_over_all(table, self.new.lacking(table, self.old.items(table)), are_deleted=True)
        others = sorted(KEYS.keys() & self.new.tables.keys() - {CLAIMS, EVENTS, LEDGER, DAYS, PROFILES})
        self._take_over_all(CLAIMS, self._claims(of_commands=False))
        for table in (EVENTS, LEDGER, DAYS, PROFILES):
            self._take_over_all(table, self.new.items(table))
        self._take_over_all(CLAIMS, self._claims(of_commands=True))
        for table in others:
            self._take_over_all(table, self.new.items(table))

    def _claims(self, *, of_commands: bool) -> Iterator[Item]:
        """Yield the new writer's claims of commands, which name an entry, or else those of events."""
        for claim in self.new.items(CLAIMS):
            if not is_deletion_mark(CLAIMS, claim) and bool(place_needed(CLAIMS, claim)) is of_commands:
                yield claim

    def _take_over_all(self, table: str, items: Iterable[Item], *, are_deleted: bool = False) -> None:
        count = 0
        for chunk in chunks(items, CHUNK_ITEMS):
            changes = [self._change(table, item) for item in chunk]
            self._take_over([replace(each, image=None) for each in changes] if are_deleted else changes)
            count += len(chunk)
        self.say(f"{table}: {count} items{' deleted' * are_deleted}")

    def _take_over(self, changes: list[ItemChange]) -> None:
        """Let the old region take over changes. Before one that waits for others, it takes over these.

        A change waits if the new writer has written what it needs after that table was filled.
        """
        for _ in range(ATTEMPTS_MAX):
            outcome = self.follower.follow(changes, self.now)
            if outcome.wrong:
                raise RuntimeError("; ".join(f"{change.owner}: {why}" for change, why in outcome.wrong))
            changes = outcome.waiting
            if not changes:
                return
            self.follower.follow(list(self._prerequisites(changes)), self.now)
        raise RuntimeError(f"{len(changes)} items of {changes[0].table} wait for others: run it again")

    def _prerequisites(self, waiting: list[ItemChange]) -> Iterator[ItemChange]:
        """Yield what the waiting changes need, in the order of dependence, and waiting events and entries."""
        # A profile, a day and a command's claim need entries that the old region lacks.
        entries = [change for change in waiting if change.table == LEDGER]
        for owner in sorted({change.owner for change in waiting if change.table not in (LEDGER, EVENTS)}):
            newest = self.old.ledger.newest(owner)
            newer = self.new.ledger.stored_after(owner, newest.created_at if newest else BEFORE_ALL)
            entries += [self._change(LEDGER, item) for item in newer]
        # A profile says that its days are written.
        for owner in sorted({change.owner for change in waiting if change.table == PROFILES}):
            yield from (self._change(DAYS, day) for day in self._days(owner))
        # An entry needs its event, and an event its claim.
        event_keys = {key for entry in entries for key in events_of(entry, self.now)}
        events = [change for change in waiting if change.table == EVENTS]
        events += self._changes_of_keys(EVENTS, event_keys)
        claim_keys = {key for event in events for key in claims_of(event, self.now)}
        yield from (*self._changes_of_keys(CLAIMS, claim_keys), *events, *entries)

    def _changes_of_keys(self, table: str, keys: Iterable[tuple[str, str]]) -> list[ItemChange]:
        wanted = [dict(zip(KEYS[table], key, strict=True)) for key in sorted(keys)]
        items = get_all(self.new.dynamodb, self.new.tables[table], wanted)
        return [self._change(table, item) for item in items]

    def _days(self, user_id: str) -> Iterator[Item]:
        """Yield a user's days, and the items that are no days."""
        for partition in (user_id, kept_partition(user_id)):
            yield from query_all(
                self.new.dynamodb,
                TableName=self.new.tables[DAYS],
                KeyConditionExpression="user_id = :user",
                ExpressionAttributeValues={":user": {"S": partition}},
                ConsistentRead=True,
            )

    def _change(self, table: str, stored: Item) -> ItemChange:
        """Return an item as the first change of the epoch: every change that is sent live is newer."""
        key = {name: stored[name] for name in KEYS[table]}
        return ItemChange(table, self.epoch, 0, key, shared_fields(stored), is_new=True)
