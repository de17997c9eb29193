"""Items that a restore needs are published beside their rows, and come again with them."""

from dataclasses import fields

from botocore.exceptions import EndpointConnectionError

from adapters.platform.publishing import DeliveryStream
from adapters.privacy.tombstones import NO_ERASURES
from processors import publisher
from processors.publisher import Publisher, PublisherSettings, TableItemRows
from rules.lake.entities import DAILY_ACTIVITY, ENTITIES, STREAKS
from rules.lake.table_items import KEYS, item_of
from tests.support.firehose import Firehose
from tests.unit.lake.test_publisher import change, no_pauses, rows_of

__all__ = ["no_pauses"]  # the fixture


def test_an_item_that_a_restore_needs_is_published_beside_its_row() -> None:
    rows, items = Firehose(), Firehose()
    kept = {"Days": "DailyActivity", "Keys": "IdempotencyKeys"}
    days = {"Days": [(DAILY_ACTIVITY, DeliveryStream(rows, "d"))]}
    made = Publisher(days, NO_ERASURES, TableItemRows(kept, DeliveryStream(items, "i")))
    shown = change(2, user_id="u#kept", activity_date="totals")
    shown["dynamodb"]["NewImage"]["packed"] = {"B": "AAEC"}
    league = change(6, user_id="u#kept", activity_date="league", league="{}")
    claim = change(3, table="Keys", idempotency_key="k")
    of_a_lead = change(4, table="Keys", user_id="acme/ecommerce#7", idempotency_key="lead-event")
    outcome = made.publish([change(1), shown, league, claim, of_a_lead])
    assert (outcome.counts["published"], outcome.again, outcome.poison) == (4, [], [])
    assert [each["events_count"] for data in rows.taken for each in rows_of(data)] == [1]
    found = [each for data in items.taken for each in rows_of(data)]
    assert [(each["store"], each["place"], each["user_id"]) for each in found] == [
        ("DailyActivity", '["u#kept","totals"]', "u"),
        ("DailyActivity", '["u#kept","league"]', "u"),
        ("IdempotencyKeys", '["u","k"]', "u"),
    ]
    assert item_of(found[0]["item"])["packed"] == {"B": b"\x00\x01\x02"}
    assert {each["changed_at"] for each in found} == {"2026-01-01T00:00:00.000000Z"}


def test_a_change_comes_again_if_its_item_alone_is_refused() -> None:
    rows, items = Firehose(), Firehose(error=EndpointConnectionError(endpoint_url="x"))
    streams = {"Profiles": [(STREAKS, DeliveryStream(rows, "s"))]}
    made = Publisher(
        streams, NO_ERASURES, TableItemRows({"Profiles": "UserStreaks"}, DeliveryStream(items, "i"))
    )
    profile = change(5, table="Profiles", streak_updated_at="2026-01-01T00:00:00Z")
    outcome = made.publish([profile])
    assert (outcome.counts["published"], outcome.again) == (0, ["100005"])


def test_every_entity_has_a_table_and_a_delivery_stream_of_its_name() -> None:
    config = PublisherSettings(**{field.name: field.name for field in fields(PublisherSettings)})
    made = publisher._parts.make(config, lambda _: None)
    names = {entity.name: stream._name for some in made.destinations.values() for entity, stream in some}
    assert made.item_rows
    names["table_items"] = made.item_rows.stream._name
    published = (name for name, entity in ENTITIES.items() if not entity.is_of_nights)
    assert names == {name: f"{name}_delivery_stream" for name in published}
    assert made.item_rows.stores == {f"{snake(each)}_table": each for each in KEYS if each != "Rewards"}


def snake(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")
