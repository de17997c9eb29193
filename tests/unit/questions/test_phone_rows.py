"""Of phones their items are published, beside the rows of messages to them."""

import json
from typing import Any

from adapters.platform.items import encode_item
from adapters.platform.publishing import DeliveryStream
from adapters.privacy.tombstones import NO_ERASURES
from infra.marks import PUBLISHED_TABLES
from local.cloud.streams import matches
from processors.publisher import Publisher, TableItemRows
from rules.questions.lake_entities import NOTIFICATIONS
from tests.support.firehose import Firehose
from tests.unit.lake.test_publisher import change, rows_of


def test_of_phones_what_is_kept_is_published_and_that_they_are_gone() -> None:
    rows, items = Firehose(), Firehose()
    kept = TableItemRows({"Phones": "Subscriptions"}, DeliveryStream(items, "i"))
    made = Publisher({"Phones": [(NOTIFICATIONS, DeliveryStream(rows, "n"))]}, NO_ERASURES, kept)
    phone = {"subscription_id": "s", "owner": "u", "fcm_token": "t"}
    claim = {"subscription_id": "s#sent#reminder=2026-01-01", "claimed_at": "2026-01-01T00:00:00Z"}
    changes: list[dict[str, Any]] = [
        {**phone, "is_changed": True},
        {**phone, "last_notified_at": "2026-01-01T00:00:00Z"},
        claim,
        {**claim, "outcome": "sent"},
    ]
    records: list[Any] = [change(number, "MODIFY", "Phones") for number in range(6)]
    for record, image in zip(records, changes, strict=False):
        record["dynamodb"]["NewImage"] = encode_item(image)
    for record, gone in zip(records[4:], ("s", "s#tag=it"), strict=True):
        del record["dynamodb"]["NewImage"]
        record |= {"eventName": "REMOVE"}
        record["dynamodb"]["Keys"] = encode_item({"subscription_id": gone})
    outcome = made.publish(records)
    assert (outcome.again, outcome.poison) == ([], [])
    found = [each for data in items.taken for each in rows_of(data)]
    assert [(each["user_id"], each["place"]) for each in found] == [("u", '["s"]'), (None, '["s"]')]
    assert found[0]["version"] < found[1]["version"]
    assert [each["message"] for data in rows.taken for each in rows_of(data)] == ["reminder=2026-01-01"]
    assert [is_published(each) for each in records] == [True, False, False, True, True, True]
    expired = {**records[5], "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}}
    assert is_published(expired), "the filter lets it pass, and the publisher leaves it out, as it does above"


def is_published(record: Any) -> bool:
    """Whether the filters of the table's mapping let a record pass."""
    return any(matches(json.loads(each), record) for each in PUBLISHED_TABLES["notifications"].changes)
