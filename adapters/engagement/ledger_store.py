"""The RewardsLedger table: append-only, one active head, optimistic locking (docs/rules.md, rule 6)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from secrets import token_bytes
from typing import Any

from adapters.engagement.account_items import entry_from, entry_item, entry_key
from adapters.platform.aws import THROTTLES, pauses
from adapters.platform.items import Item, encode_item
from adapters.platform.tables import (
    BEFORE_ALL,
    Action,
    get_one,
    put_action,
    put_all,
    query_all,
    update_action,
    write_if,
)
from rules.days import EPOCH, key_of_stamp, stamp, unstamp
from rules.engagement.carriers import split_carriers, unfold_carrier, with_carried
from rules.engagement.events import FUTURE_MAX, RETENTION, instant_of
from rules.engagement.ledger import (
    EARNING,
    OPENED_AT,
    SALT_BYTES,
    AppliedEvents,
    AppliedSince,
    Entry,
    Head,
    Setting,
    applied_events,
)

ATTEMPTS_MAX = 8
WAITED_MAX = timedelta(days=30)  # an event waits at most so long in the stream and in the failure queue
# Entries in a page, read from the newest back. Those of a batch that is delivered twice are usually in the
# first.
PAGE_SIZE = 100
SPAN = "account_id = :account AND created_at BETWEEN :since AND :until"
CONTENDED = THROTTLES | {"ConditionalCheckFailed"}  # codes of a transaction that another one was faster than


class TooManyEntries(Exception):
    """There are more than `most` entries to read."""

    def __init__(self, most: int) -> None:
        super().__init__(f"there are over {most} entries to read")
        self.most = most


class HeadMoved(Exception):
    """Another writer is first, or a condition of a further action failed: read again, decide again."""

    def __init__(self, failed: Sequence[int]) -> None:
        super().__init__(f"conditions failed at {list(failed)}")
        self.failed = tuple(failed)  # indices of the further actions (`also`) whose condition failed


class LedgerStore:
    """Entries of all accounts."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def after(
        self, account_id: str, created_at: str, is_strong: bool = True, most: int | None = None
    ) -> tuple[list[Entry], list[Entry]]:
        """Return the entries newer than a place, oldest first, and those of them not stored yet.

        is_strong: strongly consistent; if not, some moments old, at half the price. A carried entry is among
        them as soon as its carrier is stored. Raises TooManyEntries if more than `most` are stored.
        """
        stored = self.stored_after(account_id, created_at, is_strong)
        entries, missing = with_carried(map(entry_from, stored if most is None else _at_most(stored, most)))
        return (
            [entry for entry in entries if entry.created_at > created_at],
            [entry for entry in missing if entry.created_at > created_at],
        )

    def stored_after(self, account_id: str, created_at: str, is_strong: bool = True) -> Iterator[Item]:
        """Yield the items newer than a place, oldest first, as they are stored."""
        values = {":account": account_id, ":place": key_of_stamp(created_at)}
        return self._query("account_id = :account AND created_at > :place", values, ConsistentRead=is_strong)

    def _query(self, condition: str, values: dict[str, str], **options: Any) -> Iterator[Item]:
        return query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=encode_item(values),
            **options,
        )

    def protection(self, account_id: str, until: str) -> list[Entry]:
        """Return the entries up to a place that concern freezes, pauses or rest days, oldest first.

        Strongly consistent. The whole ledger up to the place is read, and billed: a user of ten years with
        twenty events a week has some four megabytes. These entries are never carried (split_carriers).
        """
        span = {":since": BEFORE_ALL, ":until": key_of_stamp(until)}
        values = {
            ":account": account_id,
            **span,
            ":pause": Setting.PAUSE.value,
            ":rest": Setting.REST_DAYS.value,
        }
        names = {"#freeze": "freeze", "#setting": "setting"}
        only = "attribute_exists(#freeze) OR #setting IN (:pause, :rest)"
        found = self._query(
            SPAN, values, FilterExpression=only, ExpressionAttributeNames=names, ConsistentRead=True
        )
        return [entry_from(item) for item in found]

    def applied_long_ago(self, account_id: str, arrivals: Mapping[str, str]) -> AppliedEvents:
        """Return date and points of those events that were applied before their idempotency keys expired.

        Such an event has arrived a second time under a key that was claimed anew. arrivals: event id -> when
        it arrived now. When its key was claimed first, it had occurred, or was to occur within five minutes.
        So entries are read only for events that occurred longer ago than a key lives.
        """
        newest = unstamp(max(arrivals.values(), default=OPENED_AT))
        latest = key_of_stamp(stamp(max(newest - RETENTION, EPOCH) + FUTURE_MAX))
        old_ids = [event_id for event_id in arrivals if event_id < latest]  # an id begins with its instant
        if not old_ids:
            return {}
        since = key_of_stamp(stamp(instant_of(min(old_ids)) - FUTURE_MAX))
        until = key_of_stamp(stamp(newest - RETENTION + WAITED_MAX))
        items = self._query(SPAN, {":account": account_id, ":since": since, ":until": until})
        entries, _missing = with_carried(map(entry_from, items))
        applied = applied_events(entries)
        return {event_id: applied[event_id] for event_id in old_ids if event_id in applied}

    def applied_since(self, account_id: str, arrivals: Mapping[str, str], until: str) -> AppliedSince:
        """Return what entries up to the place `until` have made of those events that have one.

        arrivals: event id -> created_at. Entries are read from the newest back. An entry is later than its
        event's arrival. So reading ends at the oldest arrival of the events that are not found yet.
        """
        applied: AppliedEvents = {}
        later: dict[str, int] = {}  # points that events have earned after the newest of these, by place
        unseen = dict(arrivals)  # events that no entry has been found for yet
        oldest = min(unseen.values(), default=until)
        span = {":since": key_of_stamp(oldest), ":until": key_of_stamp(until)}
        newest_first = {"ConsistentRead": True, "ScanIndexForward": False, "Limit": PAGE_SIZE}
        items = self._query(SPAN, {":account": account_id, **span}, **newest_first)
        for entry in map(entry_from, items if unseen else ()):
            # A carried entry may come twice: with its carrier, and stored.
            for each in (entry, *reversed(unfold_carrier(entry))):
                found = applied_events([each])
                if found.keys() & unseen.keys():
                    applied |= found
                    unseen = {key: at for key, at in unseen.items() if key not in found}
                elif not applied and each.draft.kind in EARNING:
                    later[each.created_at] = each.draft.points
            if not unseen or entry.created_at < min(unseen.values()):
                break
        return AppliedSince(applied, sum(later.values()))

    def newest(self, account_id: str) -> Entry | None:
        """Return the active head, or None for an account without entries.

        Reads the newest two entries, strongly consistent. During a write the newest one may not be active
        yet, while the one before still is. If neither is, it reads again, at last raising HeadMoved.
        """
        entries: list[Entry] = []
        for _ in pauses(ATTEMPTS_MAX):
            answer = self._dynamodb.query(
                TableName=self._table,
                KeyConditionExpression="account_id = :account",
                ExpressionAttributeValues={":account": {"S": account_id}},
                ConsistentRead=True,
                ScanIndexForward=False,
                Limit=2,
            )
            entries = [entry_from(item) for item in answer["Items"]]
            active = [entry for entry in entries if entry.active]
            if active or not entries:
                return active[0] if active else None
        raise HeadMoved(())

    def get(self, account_id: str, created_at: str) -> Entry | None:
        """Return one entry, or None; strongly consistent."""
        item = get_one(self._dynamodb, self._table, entry_key(account_id, created_at))
        return entry_from(item) if item else None

    def page(self, account_id: str, since: str, until: str, limit: int) -> list[Entry]:
        """Return up to `limit` entries with since <= created_at < until, newest first, some moments old."""
        span = {":since": key_of_stamp(since), ":until": key_of_stamp(until)}
        answer = self._dynamodb.query(
            TableName=self._table,
            KeyConditionExpression=SPAN,
            ExpressionAttributeValues=encode_item({":account": account_id, **span}),
            ScanIndexForward=False,
            Limit=limit + 1,
        )
        entries, _ = with_carried(map(entry_from, answer["Items"]))
        return [entry for entry in entries[::-1] if since <= entry.created_at < until][:limit]

    def between(self, account_id: str, since: str, until: str, most: int) -> list[Entry]:
        """Return the entries with since <= created_at < until, oldest first, some moments old.

        Raises TooManyEntries if more than `most` are stored.
        """
        span = {":since": key_of_stamp(since), ":until": key_of_stamp(until)}
        stored = self._query(SPAN, {":account": account_id, **span})
        entries, _ = with_carried(map(entry_from, _at_most(stored, most)))
        return [entry for entry in entries if since <= entry.created_at < until]

    def check_few(self, head: Head | None, account_id: str, place: str, most: int) -> None:
        """Raise TooManyEntries if more than `most` entries follow a place, by their numbers.

        head: an entry of the account that is among the newest. It costs one read, of a long ledger alone.
        """
        if head is None or head.seq <= most:
            return
        before = self.page(account_id, OPENED_AT, place, 1) if place > OPENED_AT else []
        if head.seq - (before[0].seq if before else 0) > most:
            raise TooManyEntries(most)

    def append(
        self,
        head: Head | None,
        entries: Sequence[Entry],
        also: Sequence[dict[str, Any]] = (),
    ) -> None:
        """Write new entries: one transaction puts the carriers and deactivates the old head.

        It also marks the earlier entries that new ones reverse; an entry can be reversed once. also: further
        actions for the transaction, after the ledger's own. The carried entries are put after the
        transaction. If the process dies before that, readers rebuild them, and `after` returns them as
        missing. The entry that opens an account gets the salt of its proofs (rule 19). Raises HeadMoved, with
        the indices in `also` whose condition failed, if nothing was written.
        """
        if head is None:
            opening, *others = entries
            entries = [replace(opening, salt=opening.salt or token_bytes(SALT_BYTES)), *others]
        carriers, carried = split_carriers(entries)
        actions = [*self._marks(head, carriers), *map(self._put, carriers)]
        self._transact(actions, also)
        if carried:
            self.store(carried)

    def store(self, entries: Sequence[Entry]) -> None:
        """Put carried entries. They never change, so putting one again changes nothing."""
        put_all(self._dynamodb, self._table, [entry_item(entry) for entry in entries])

    def follow(self, head: Head | None, carrier: Entry, carried: Sequence[Entry]) -> None:
        """Put an entry of another region's ledger as the new head, and then those that it names (rule 23).

        Raises HeadMoved if nothing was written.
        """
        self._transact([*self._marks(head, [carrier]), self._put(carrier)])
        self.store_new(carried)

    def store_new(self, entries: Iterable[Entry]) -> None:
        """Put carried entries that are not stored yet. A stored one may be marked as reversed."""
        for entry in entries:
            write_if(self._dynamodb.put_item, **self._put(entry)["Put"])

    def _put(self, entry: Entry) -> Action:
        return put_action(self._table, entry_item(entry), "attribute_not_exists(account_id)")

    def _marks(self, head: Head | None, carriers: Sequence[Entry]) -> list[Action]:
        """Return the updates of the old head and of the entries that carriers reverse.

        An item may appear once in a transaction, so if an entry is both it gets one update. An entry that is
        carried reverses nothing.
        """
        account_id, active_place = carriers[-1].account_id, head.created_at if head else ""
        reversed_by = {each.draft.reverses: each.created_at for each in carriers if each.draft.reverses}
        updates = []
        for place in dict.fromkeys([*([active_place] if head else []), *reversed_by]):
            expressions, conditions, values = list[str](), ["attribute_exists(account_id)"], dict[str, Any]()
            if place == active_place:
                expressions.append("REMOVE active, applied_through")
                conditions, values = ["active = :yes"], {":yes": True}
            if place in reversed_by:
                expressions.append("SET reversed_by = :by")
                conditions.append("attribute_not_exists(reversed_by)")
                values[":by"] = reversed_by[place]
            key, condition = entry_key(account_id, place), " AND ".join(conditions)
            updates.append(
                update_action(self._table, key, " ".join(expressions), encode_item(values), condition)
            )
        return updates

    def _transact(self, actions: Sequence[dict[str, Any]], also: Sequence[dict[str, Any]] = ()) -> None:
        """Write the ledger's actions and further ones in one transaction; raises HeadMoved.

        Unlike tables.transact it raises DynamoDB's error if anything else than a lost race or a throttle is
        among the reasons, also beside these: no new decision helps then.
        """
        try:
            self._dynamodb.transact_write_items(TransactItems=[*actions, *also])
        except self._dynamodb.exceptions.TransactionCanceledException as error:
            codes = [reason.get("Code", "None") for reason in error.response.get("CancellationReasons", [])]
            if not set(codes) <= {*CONTENDED, "None"}:
                raise
            further = enumerate(codes[len(actions) :])
            raise HeadMoved([index for index, code in further if code == "ConditionalCheckFailed"]) from None


def _at_most(items: Iterable[Item], most: int) -> Iterator[Item]:
    for number, item in enumerate(items):
        if number == most:
            raise TooManyEntries(most)
        yield item
