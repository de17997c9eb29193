"""The return of a region that wrote before: nothing of it is lost, and then it follows (rule 23).

1. Find: what it has that the new writer never saw (local/region_unseen.py), all of which a report tells.
2. Apply: events go to the new writer with their claims; commands are asked for at its door, under their keys.
3. Cut: the old ledgers end where both regions agree. What the new writer does not have is deleted.
4. Join: from here on the new writer's changes are sent.
5. Fill: all that was there before is taken over, by the same code.

It may die anywhere and run again. Steps 1 and 2 change nothing the second time: an event is applied once, a
command is carried out once under its key.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from adapters.platform.items import Item
from adapters.platform.tables import chunks, get_all, query_all
from adapters.regions import Follower, claims_of, events_of
from ingest.engagement.points.commands import REDEEM
from local.region_unseen import (
    BEFORE_ALL,
    CLAIMS,
    EVENTS,
    PROFILES,
    FoundUnseen,
    Listed,
    Side,
    key_of,
    shared_fields,
)
from rules.engagement.ledger import entry_id
from rules.regions.changes import GONE, KEYS, LEDGER, ItemChange, place_needed
from rules.regions.standby import UnseenEntry, UnseenFate

FILLED_AT_ONCE = 200
ATTEMPTS_MAX = 5
DAYS = "DailyActivity"
# As the writer writes (rules.regions.changes). Claims come twice: those of events, then those of commands.
FILL_ORDER = (CLAIMS, EVENTS, LEDGER, DAYS, PROFILES, CLAIMS)


class WriterDoor(Protocol):
    """The new writer's API, as an admin."""

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and answer."""


@dataclass(slots=True)
class ReturnOutcome:
    """What became of what was unseen."""

    applied: Counter[str] = field(default_factory=Counter)  # entries, by kind and fate
    carried: Counter[str] = field(default_factory=Counter)  # items, by table
    names: list[Listed] = field(default_factory=list)  # all that somebody must decide about


@dataclass(frozen=True, slots=True)
class Returning:
    """Steps 2, 3 and 5 of a return."""

    old: Side  # the region that returns, and is quiet
    new: Side  # the one that writes
    door: WriterDoor  # of the new one

    def apply(self, found: FoundUnseen) -> ReturnOutcome:
        """Give the new writer what it never saw; returns what became of each thing."""
        carried = self._carry(found)
        outcome = ReturnOutcome(carried=carried, names=list(found.listed))
        events = {(key_of(EVENTS, each)) for each in self._carried_or_there(found)}
        for account_id, (_, beyond) in found.accounts.items():
            for each in beyond:
                self._apply(account_id, each, events, outcome)
        return outcome

    def _carry(self, found: FoundUnseen) -> Counter[str]:
        """Put items that the new writer lacks, claims before their events; returns how many, by table.

        It writes all the time. So a key may stand for something else there by now, and whoever has put its
        claim decides: a second event of the key would count twice.
        """
        carried = Counter[str]()
        for name, items in found.carried.items():
            free = [each for each in items if name != EVENTS or key_of(CLAIMS, each) not in found.taken]
            carried[name] += self.new.table(name).put_missing(free)
            if name == CLAIMS:
                for mine, other in self.new.same(CLAIMS, items):
                    if other is not None:
                        found.compare_claims(mine, other)
        return carried

    def _carried_or_there(self, found: FoundUnseen) -> Iterator[Item]:
        """Yield the events of unseen entries that the new writer has by now."""
        wanted: list[Item] = [
            {"user_id": {"S": account_id}, "event_id": {"S": str(each.entry.draft.event_id)}}
            for account_id, (_, beyond) in found.accounts.items()
            for each in beyond
            if each.fate is UnseenFate.EVENT
        ]
        return (other for _, other in self.new.same(EVENTS, wanted) if other)

    def _apply(
        self, account_id: str, each: UnseenEntry, events: set[tuple[str, ...]], outcome: ReturnOutcome
    ) -> None:
        draft, reason = each.entry.draft, each.reason
        if each.fate is UnseenFate.EVENT:
            is_there = (account_id, str(draft.event_id)) in events
            reason = "" if is_there else "its event is in neither region, or its key stands for another one"
        elif each.fate is UnseenFate.REDEEM:
            reason = self._ask(account_id, "redemptions", self._redemption(each))
        elif each.fate is UnseenFate.REVERSE:
            reason = self._ask(account_id, f"redemptions/{entry_id(str(draft.reverses))}/reversal", {})
        kind = f"{draft.kind.value} {each.fate.value}"
        if reason:
            name = (
                f"{account_id} {each.entry.created_at} {draft.kind} {draft.points:+d} {draft.reward_id or ''}"
            )
            outcome.names.append(Listed(LEDGER, name.strip(), reason))
        else:
            outcome.applied[kind] += 1

    def _redemption(self, each: UnseenEntry) -> dict[str, Any]:
        """Return a redemption's body, under the key that it had: so a client that asks again gets this
        one.
        """
        draft = each.entry.draft
        key = each.key.removeprefix(REDEEM) if each.key else f"region-{entry_id(each.entry.created_at)}"
        body: dict[str, Any] = {"reward_id": draft.reward_id, "idempotency_key": key}
        return body if draft.rules_version else {**body, "points": -draft.points}

    def _ask(self, account_id: str, path: str, body: dict[str, Any]) -> str:
        """Ask the new writer's door; returns why it refused, or "". Raises RuntimeError if it is away."""
        for _ in range(ATTEMPTS_MAX):
            status, answer = self.door.call("POST", f"/v1/users/{account_id}/{path}", body)
            if status < 300:
                return ""
            if status < 500 and status != 429:
                refusal = answer.get("error", {})
                return f"{refusal.get('code')}: {refusal.get('message')}"
        raise RuntimeError(f"the new writer's door answers {status}: run it again")

    def cut(self, found: FoundUnseen) -> int:
        """Make the old region hold nothing that the new one has not; returns how many items that changed."""
        changed = 0
        for account_id in found.accounts:
            changed += self._cut_ledger(account_id)
        for name in KEYS.keys() & self.old.tables.keys() - {LEDGER}:
            table = self.old.table(name)
            for mine, other in self.new.same(name, self.old.items(name)):
                if other is None and not _is_mark(name, mine):
                    table.delete(mine)
                    changed += 1
        return changed

    def _cut_ledger(self, account_id: str) -> int:
        """Let an old ledger end with the last entry of both, and be marked as the new one's is.

        The old head goes last: while it is there, the account is found again if this dies halfway.
        """
        ours = {key_of(LEDGER, each): shared_fields(each) for each in self.new.account(account_id)}
        theirs = {key_of(LEDGER, each): each for each in self.old.account(account_id)}
        kept = {key: {**ours[key]} for key in theirs if key in ours}
        last = max(kept)[1] if kept else ""
        for each in kept.values():
            each.pop("active", None)
            if each.get("reversed_by", {}).get("S", "") > last:  # by an entry that is yet to be followed
                del each["reversed_by"]
        if kept:
            kept[max(kept)]["active"] = {"BOOL": True}
        table, changed = self.old.table(LEDGER), 0
        for key, each in kept.items():
            if shared_fields(theirs[key]) != each:
                table.put(each)
                changed += 1
        for key in sorted(theirs.keys() - ours.keys()):
            table.delete(theirs[key])
            changed += 1
        return changed

    def fill(
        self, follower: Follower, epoch: int, now: datetime, say: Callable[[str], None] = lambda _: None
    ) -> None:
        """Let the old region take over all that the new one has. Raises RuntimeError if something remains."""
        others = sorted(KEYS.keys() & self.new.tables.keys() - set(FILL_ORDER))
        for step, name in enumerate((*FILL_ORDER, *others)):
            count = 0
            for some in chunks(self._of_step(step, name), FILLED_AT_ONCE):
                self._fill(follower, [_change(name, epoch, each) for each in some], now)
                count += len(some)
            say(f"{name}: {count} items")

    def _of_step(self, step: int, name: str) -> Iterator[Item]:
        if name != CLAIMS:
            return self.new.items(name)
        claims = (each for each in self.new.items(name) if not _is_mark(name, each))
        return (each for each in claims if bool(place_needed(name, each)) == bool(step))

    def _fill(self, follower: Follower, changes: list[ItemChange], now: datetime) -> None:
        """Take over changes; what needs something newer brings that along."""
        for _ in range(ATTEMPTS_MAX):
            outcome = follower.follow(changes, now)
            if outcome.wrong:
                raise RuntimeError("; ".join(f"{each.owner}: {why}" for each, why in outcome.wrong))
            if not (changes := outcome.waiting):
                return
            follower.follow(list(self._before(changes, now)), now)
        raise RuntimeError(f"{len(changes)} items of {changes[0].table} wait for others: run it again")

    def _before(self, waiting: list[ItemChange], now: datetime) -> Iterator[ItemChange]:
        """Yield what the new writer has of what some changes wait for: entries, days, events and claims."""
        epoch = waiting[0].epoch
        entries = [each for each in waiting if each.table == LEDGER]
        for owner in sorted({each.owner for each in waiting if each.table not in (LEDGER, EVENTS)}):
            newest = self.old.ledger.newest(owner)
            more = self.new.ledger.stored_after(owner, newest.created_at if newest else BEFORE_ALL)
            entries += [_change(LEDGER, epoch, each) for each in more]
        for owner in sorted({each.owner for each in waiting if each.table == PROFILES}):
            yield from (_change(DAYS, epoch, each) for each in self._days(owner))
        ids = {key for each in entries for key in events_of(each, now)}
        events = [each for each in waiting if each.table == EVENTS]
        events += [_change(EVENTS, epoch, each) for each in self._some(EVENTS, ids)]
        keys = {key for each in events for key in claims_of(each, now)}
        yield from (_change(CLAIMS, epoch, each) for each in self._some(CLAIMS, keys))
        yield from (*events, *entries)

    def _some(self, name: str, keys: Iterable[tuple[str, str]]) -> list[Item]:
        first, second = KEYS[name]
        wanted = [{first: one, second: two} for one, two in sorted(keys)]
        return get_all(self.new.dynamodb, self.new.tables[name], wanted)

    def _days(self, user_id: str) -> Iterator[Item]:
        return query_all(
            self.new.dynamodb,
            TableName=self.new.tables[DAYS],
            KeyConditionExpression="user_id = :user",
            ExpressionAttributeValues={":user": {"S": user_id}},
            ConsistentRead=True,
        )


def _change(name: str, epoch: int, stored: Item) -> ItemChange:
    """Return an item as the first change of an epoch: whatever is sent live is newer."""
    key = {each: stored[each] for each in KEYS[name]}
    return ItemChange(name, epoch, 0, key, shared_fields(stored), is_new=True)


def _is_mark(name: str, mine: Item) -> bool:
    return name == CLAIMS and mine["user_id"]["S"].startswith(GONE)
