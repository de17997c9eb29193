"""What a process reads before its first event, after years of publishing."""

import json
from datetime import timedelta
from typing import Any

from adapters.book_store import BookStore, Publication, _items
from rules.days import EPOCH
from tests.integration.test_rules_api import book

VERSIONS = 60
READ_BYTES_MAX = 200_000


def test_a_cold_start_does_not_read_all_that_was_ever_published(dynamodb: Any) -> None:
    """The table's partitions take 3,000 read units a second for all processes together."""
    types = {f"TYPE_{number}": {"points": 1, "description": "what it is for " * 20} for number in range(200)}
    document, read, keys = book(**types), 0, []
    for number in range(1, VERSIONS + 1):
        at = EPOCH + timedelta(days=number)
        for each in _items(number, Publication(document, at, at, "ann", "")):
            keys.append({name: each[name] for name in ("book", "version")})
            dynamodb.put_item(TableName="RuleBooks", Item=each)

    def count(parsed: Any, **_: Any) -> None:
        nonlocal read
        read += len(json.dumps(parsed.get("Items", parsed.get("Item", ()))))

    dynamodb.meta.events.register("after-call.dynamodb", count)
    try:
        books = BookStore(dynamodb, "RuleBooks").books()
        assert books.newest.book.points("TYPE_1", EPOCH) == 1
    finally:
        dynamodb.meta.events.unregister("after-call.dynamodb", count)
        for key in keys:
            dynamodb.delete_item(TableName="RuleBooks", Key=key)
    assert books.newest.number == VERSIONS
    assert read < READ_BYTES_MAX
