"""The inventory of personal data names every store that there is (rule 10): none can be forgotten."""

from collections import Counter

import pytest

from rules.lake.entities import ENTITIES
from rules.privacy.inventory import INVENTORY, Fate, Store, StoreKind
from tests.support.template import resources

KINDS = {
    StoreKind.TABLE: "AWS::DynamoDB::Table",
    StoreKind.BUCKET: "AWS::S3::Bucket",
    StoreKind.QUEUE: "AWS::SQS::Queue",
    StoreKind.STREAM: "AWS::Kinesis::Stream",
    StoreKind.TOPIC: "AWS::SNS::Topic",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_store_of_the_template_is_listed(kind: StoreKind) -> None:
    assert {each.name for each in INVENTORY if each.kind is kind} == set(resources(KINDS[kind]))


def test_every_entity_of_the_lake_is_listed() -> None:
    assert {each.name for each in INVENTORY if each.kind is StoreKind.ENTITY} == set(ENTITIES)


def test_a_store_has_one_entry() -> None:
    assert max(Counter((each.kind, each.name) for each in INVENTORY).values()) == 1


@pytest.mark.parametrize("store", [each for each in INVENTORY if each.kind is StoreKind.ENTITY])
def test_a_row_of_the_lake_is_found_by_a_column(store: Store) -> None:
    columns = {field.name for field in ENTITIES[store.name].fields}
    assert {store.user_key, store.lead_key} - {""} <= columns
    assert (store.fate is Fate.IMPERSONAL) == (not store.user_key and not store.lead_key)


@pytest.mark.parametrize("store", [each for each in INVENTORY if each.kind is StoreKind.TABLE])
def test_a_row_of_a_table_is_found_by_a_key_or_as_told(store: Store) -> None:
    properties = resources("AWS::DynamoDB::Table")[store.name]["Properties"]
    keys = {each["AttributeName"] for each in properties["KeySchema"]}
    assert (store.fate is Fate.IMPERSONAL) == (not store.user_key and not store.lead_key and not store.found)
    assert {store.user_key, store.lead_key} - {""} <= keys or store.found


def test_users_and_leads_have_stores() -> None:
    assert {each.name for each in INVENTORY if each.user_key} >= {
        "UserStreaks",
        "RewardsLedger",
        "events",
        "Warehouse",
    }
    assert {each.name for each in INVENTORY if each.lead_key} >= {
        "Event",
        "PostgreSQL",
        "lead_events",
        "Warehouse",
    }
