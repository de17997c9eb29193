"""Counts what a function asks of AWS: DynamoDB's units by its own arithmetic, and requests to all else.

Counts are flat, so that they can be added up and compared:

    calls.{service}            requests, each a round trip
    write.{table}[/{index}]    write request units
    read.{table}[/{index}]     read request units
    stored.{table}             bytes that the writes added, indexes included
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import botocore.session

from adapters.platform.items import Item
from adapters.platform.tables import put_all
from bench.counting.dynamodb_units import TableShape, item_bytes, read_units, write_units

TRANSACTION_FACTOR = 2
CONTEXT_KEY = "streakline_meter"
INSERT = re.compile(r'INSERT INTO "(?P<table>[^"]+)" VALUE \{(?P<names>.*)\}')
INSERT_NAME = re.compile(r"'([^']+)': \?")
WORD = re.compile(r"[#:]\w+")
Shapes = Mapping[str, TableShape]
Change = tuple[str, Item | None, Item]  # table, item before, item after


class UnmeteredTables:
    """The tables of moto, by a client that the meter does not watch. Make it while moto is in force."""

    def __init__(self) -> None:
        self._dynamodb: Any = botocore.session.get_session().create_client("dynamodb")

    def create(self, definition: Mapping[str, Any]) -> None:
        """Create a table."""
        self._dynamodb.create_table(**definition)

    def read(self, table: str, key: Item) -> Item | None:
        """Return an item, or None.

        It comes straight out of moto's memory, because the meter reads before and after each write.
        """
        from moto.core.models import DEFAULT_ACCOUNT_ID
        from moto.dynamodb.models import dynamodb_backends
        from moto.dynamodb.models.dynamo_type import DynamoType

        stored = dynamodb_backends[DEFAULT_ACCOUNT_ID]["us-east-1"].tables[table]
        found: Any = stored.items.get(DynamoType(dict(key[stored.hash_key_attr])))
        if found is not None and stored.range_key_attr:
            found = found.get(DynamoType(dict(key[stored.range_key_attr])))
        return None if not found else dict(found.to_json()["Attributes"])

    def insert(self, table: str, key: Item, item: Item) -> bool:
        """Put an item; returns False, and puts nothing, if there is one."""
        if self.read(table, key) is not None:
            return False
        self._dynamodb.put_item(TableName=table, Item=item)
        return True

    def put(self, table: str, items: Iterable[Item]) -> None:
        """Put items in place of any others."""
        put_all(self._dynamodb, table, list(items))

    def items_read(self, operation: str, params: Mapping[str, Any]) -> list[Item]:
        """Return the items that a Query or Scan reads, whole and before its filter: these are billed."""
        plain = {
            name: value
            for name, value in params.items()
            if name not in ("FilterExpression", "ProjectionExpression")
        }
        # DynamoDB refuses names and values that only the filter used.
        used = set(WORD.findall(str(plain.get("KeyConditionExpression", ""))))
        for name in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
            words = {word: value for word, value in plain.pop(name, {}).items() if word in used}
            plain |= {name: words} if words else {}
        answer = self._dynamodb.query(**plain) if operation == "Query" else self._dynamodb.scan(**plain)
        items: list[Item] = answer["Items"]
        return items


@dataclass(frozen=True, slots=True)
class WrittenItem:
    """An item that a request writes."""

    table: str
    key: Item
    is_check: bool = False  # a transaction only checks it, which is billed all the same


@dataclass
class Meter:
    """Counts the requests of the clients that it watches."""

    shapes: dict[str, TableShape]  # by the tables' names
    tables: UnmeteredTables
    counts: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    changes: list[Change] = field(default_factory=list)  # of tables with a stream
    is_paused: bool = False

    def watch(self, events: Any) -> None:
        """Count all later requests of the clients of a session, or of one client. events: its emitter."""
        events.register("before-call", self._count_call)
        # Last: boto3's resources first turn plain values into DynamoDB's.
        events.register_last("before-parameter-build.dynamodb", self._read_before)
        events.register("after-call.dynamodb", self._count_units)

    def take_counts(self) -> dict[str, float]:
        """Return the counts without zeros, and start again."""
        counts = {name: count for name, count in sorted(self.counts.items()) if count}
        self.counts.clear()
        return counts

    def take_changes(self) -> list[Change]:
        """Return the changes of tables with a stream, in order, and start again."""
        changes, self.changes = self.changes, []
        return changes

    def _count_call(self, model: Any, **_: Any) -> None:
        if not self.is_paused:
            self.counts[f"calls.{model.service_model.service_name}"] += 1

    def _read_before(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        """Remember the request, and the items that it will write as they are now."""
        if not self.is_paused:
            written = written_items(model.name, params, self.shapes)
            before = [(item, self.tables.read(item.table, item.key)) for item in written]
            context[CONTEXT_KEY] = params, before

    def _count_units(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if self.is_paused:
            return
        params, written = context[CONTEXT_KEY]
        factor = TRANSACTION_FACTOR if model.name == "TransactWriteItems" else 1
        refused = _refused_indexes(parsed, len(written))
        for index, (item, before) in enumerate(written):
            self._count_write(item, before, factor, is_refused=index in refused)
        if not written and "Error" not in parsed:
            for source, size, is_consistent in self._reads(model.name, params, parsed):
                self.counts[f"read.{source}"] += read_units(size, consistent=is_consistent)

    def _count_write(
        self, written: WrittenItem, before: Item | None, factor: int, *, is_refused: bool
    ) -> None:
        shape = self.shapes[written.table]
        is_unchanged = is_refused or written.is_check
        after = before if is_unchanged else self.tables.read(written.table, written.key)
        if before == after:  # Indexes are not written, but the table's own units are billed.
            self.counts[f"write.{shape.name}"] += factor * write_units(before)
            return
        for name, units in shape.units(before, after).items():
            self.counts[f"write.{name}"] += factor * units
        self.counts[f"stored.{shape.name}"] += shape.stored_bytes(after) - shape.stored_bytes(before)
        if shape.has_stream and after is not None:
            self.changes.append((shape.name, before, after))

    def _reads(
        self, operation: str, params: Mapping[str, Any], parsed: Mapping[str, Any]
    ) -> Iterator[tuple[str, int, bool]]:
        """Yield what is read, as `table` or `table/index`, its bytes, and whether the read is consistent."""
        is_consistent = bool(params.get("ConsistentRead"))
        if operation == "GetItem":
            table = params["TableName"]
            yield table, item_bytes(self.tables.read(table, params["Key"])), is_consistent
        elif operation == "BatchGetItem":
            for table, request in params["RequestItems"].items():
                for key in request["Keys"]:
                    size = item_bytes(self.tables.read(table, key))
                    yield table, size, bool(request.get("ConsistentRead"))
        elif operation in ("Query", "Scan"):
            # What a filter or a projection leaves out of the answer is billed, too.
            is_cut = "FilterExpression" in params or "ProjectionExpression" in params
            items = parsed["Items"]
            if is_cut and parsed["ScannedCount"]:
                items = self.tables.items_read(operation, params)
            source = "/".join(params[name] for name in ("TableName", "IndexName") if name in params)
            yield source, sum(map(item_bytes, items)), is_consistent


def inserted_item(statement: Mapping[str, Any]) -> tuple[str, Item]:
    """Return table and item of a PartiQL INSERT; raises ValueError for another statement."""
    insert = INSERT.fullmatch(statement["Statement"])
    if not insert:
        raise ValueError(f"the meter knows INSERT alone: {statement['Statement']}")
    names = INSERT_NAME.findall(insert["names"])
    return insert["table"], dict(zip(names, statement["Parameters"], strict=True))


def written_items(operation: str, params: Mapping[str, Any], shapes: Shapes) -> list[WrittenItem]:
    """Return the items that a request writes, in its order; none for a read."""
    if operation == "BatchExecuteStatement":
        rows = map(inserted_item, params["Statements"])
        return [WrittenItem(table, shapes[table].key_of(item)) for table, item in rows]
    if operation == "TransactWriteItems":
        actions = (pair for each in params["TransactItems"] for pair in each.items())
        return [_of_action(kind, action, shapes) for kind, action in actions]
    if operation == "BatchWriteItem":
        requests = ((table, each) for table, listed in params["RequestItems"].items() for each in listed)
        return [_of_request(table, request, shapes) for table, request in requests]
    if operation in ("PutItem", "UpdateItem", "DeleteItem"):
        return [_of_action(operation.removesuffix("Item"), params, shapes)]
    return []


def _of_action(kind: str, action: Mapping[str, Any], shapes: Shapes) -> WrittenItem:
    table = action["TableName"]
    key = shapes[table].key_of(action["Item"] if kind == "Put" else action["Key"])
    return WrittenItem(table, key, kind == "ConditionCheck")


def _of_request(table: str, request: Mapping[str, Any], shapes: Shapes) -> WrittenItem:
    ((_, inner),) = request.items()
    return WrittenItem(table, shapes[table].key_of(inner.get("Item") or inner["Key"]))


def _refused_indexes(parsed: Mapping[str, Any], count: int) -> frozenset[int]:
    """Return which of a request's `count` writes its answer refuses, by their indexes in the request."""
    if "Error" in parsed:
        return frozenset(range(count))
    answers = parsed.get("Responses")
    if not isinstance(answers, list):  # of BatchGetItem it is a mapping
        return frozenset()
    return frozenset(index for index, answer in enumerate(answers) if "Error" in answer)
