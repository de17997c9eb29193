"""streakline features rebuild, on the engine, with the deployed processor in this process."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from adapters.platform.aws import client
from adapters.platform.items import encode_item
from local import cli
from local.leads import features as lead_features
from local.leads.features import rebuild_features
from local.stack import Stack
from processors.leads import features
from rules.days import DAY, stamp
from tests.integration.test_sample_events import CONTEXT
from tests.support.engine import Engine
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Leads

# The command looks at the whole table: what other tests do to it meanwhile would be counted.


@pytest.fixture
def stack(engine: Engine, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Stack:
    """The stack as the command line sees it, with a feature queue and an empty Feature table of its own."""
    sqs, name = engine.client("sqs"), f"rebuild-{abs(hash(request.node.name))}"
    urls = {each: sqs.create_queue(QueueName=f"{name}-{each}")["QueueUrl"] for each in ("work", "failures")}
    settings = {
        **engine.environment(),
        "FEATURE_QUEUE_URL": urls["work"],
        "FAILURE_QUEUE_URL": urls["failures"],
    }
    for setting, value in settings.items():
        monkeypatch.setenv(setting, value)
    for each in (client, features._parts):
        each.cache_clear()
    monkeypatch.setattr("adapters.clock.now", lambda: START + DAY)
    outputs = {"FeatureRefreshUrl": urls["work"], "FeatureFailuresUrl": urls["failures"]}
    made = Stack("", engine.endpoint, "us-east-1", outputs, {"Feature": "Feature"}, "")
    dynamodb = made.client("dynamodb")
    for stored in dynamodb.scan(TableName="Feature", ProjectionExpression="lead_organization_id")["Items"]:
        dynamodb.delete_item(TableName="Feature", Key=stored)
    return made


@contextmanager
def consuming(stack: Stack) -> Iterator[list[Any]]:
    """The deployed function at work; yields what it has been given."""
    sqs, url, taken, done = (
        stack.client("sqs"),
        stack.outputs["FeatureRefreshUrl"],
        list[Any](),
        threading.Event(),
    )

    def work() -> None:
        while not done.is_set():
            messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
            records = [{"messageId": each["MessageId"], "body": each["Body"]} for each in messages]
            failed = features.handler({"Records": records}, CONTEXT)["batchItemFailures"] if records else []
            assert not failed
            for each in messages:
                taken.append(json.loads(each["Body"]))
                sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
            done.wait(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield taken
    finally:
        done.set()
        thread.join()


@pytest.fixture
def leads(stack: Stack, request: pytest.FixtureRequest) -> Leads:
    """Leads a to f, with events of all types; their features are as they should be."""
    made = Leads(stack.client("dynamodb"), request.node.name, now=START + DAY)
    events = [each for n, leaf in enumerate("abcdef") for each in made.some(4, n, leaf, first=10 * n)]
    made.store(events)
    for each in events:
        made.both(each)
    return made


def damage(leads: Leads, which: str, change: str, **values: Any) -> None:
    key = encode_item({"lead_organization_id": leads.leaf(which)})
    extra = {"ExpressionAttributeValues": encode_item({f":{name}": each for name, each in values.items()})}
    leads.client.update_item(
        TableName="Feature", Key=key, UpdateExpression=change, **(extra if values else {})
    )


def test_all_leads_become_what_their_events_say(stack: Stack, leads: Leads) -> None:
    leads.both(leads.change(1, "ef"))
    damage(leads, "a", "SET features.monetary_total = :v", v=99999)
    damage(leads, "b", "SET inputs.purchases = :v, inputs.activity = :v", v="7,7,1,1;;;;")
    damage(leads, "c", "REMOVE inputs")
    damage(leads, "d", "REMOVE inputs.declared, features.recency_days")
    with consuming(stack) as taken:
        assert rebuild_features(stack, dry_run=True) == {"leads": 5, "messages": 0, "failures": 0}
        assert taken == []
        told = rebuild_features(stack)
        assert (told["leads"], told["failures"]) == (5, 0)
        assert sorted(each for body in taken for each in body["rebuild"]["leads"]) == [
            leads.leaf(each) for each in "abcde"
        ]
        for which in "abcd":
            leads.check(which)
        leads.check("e", "f")
        before = [leads.root(each) for each in "abcdef"]
        assert rebuild_features(stack)["leads"] == 5
    assert [leads.root(each) for each in "abcdef"] == before, "a second run writes nothing"


UNREADABLE: dict[str, dict[str, Any]] = {
    "a version that is none": {"version": {"S": "x"}},
    "a version that no writer can raise": {"version": {"N": "1" + "0" * 37}},
    "features that are no map": {"features": {"BOOL": True}},
    "no state, in a type of its own": {"inputs": {"NULL": True}},
    "a state of another type": {"inputs": {"M": {"sentiment": {"BOOL": True}}}},
    "an instant that is none": {"computed_at": {"N": "1.5"}},
    "an input that is none": {"as_of": {"M": {"zz": {"S": "2026-01-01T00:00:00.000000Z"}}}},
    "an amount that is none": {"features": {"M": {"monetary_total": {"S": "x"}}}},
    "a number of changes that is none": {"regrouped": {"BOOL": True}},
}


def test_an_item_that_cannot_be_read_is_made_anew_and_stops_no_other(leads: Leads) -> None:
    leads.both(leads.change(1, "ef"))
    asked = {"rebuild": {"leads": [leads.leaf(each) for each in "abe"]}}
    for kind, damaged in UNREADABLE.items():
        for which in "ae":
            key = encode_item({"lead_organization_id": leads.leaf(which)})
            whole = leads.client.get_item(TableName="Feature", Key=key)["Item"] | damaged
            leads.client.put_item(TableName="Feature", Item=whole)
        damage(leads, "b", "SET features.monetary_total = :v", v=99999)
        leads.feature_processor.handle(asked, leads.now)
        leads.check_features("a")
        leads.check_features("b")
        leads.check_features("e", "f")
        before = [leads.root(each) for each in "abef"]
        leads.feature_processor.handle(asked, leads.now)
        assert [leads.root(each) for each in "abef"] == before, kind


def test_an_item_that_is_gone_comes_back_with_the_events_of_its_leaves(leads: Leads) -> None:
    leads.both(leads.change(1, "ef"))
    leads.client.delete_item(TableName="Feature", Key=encode_item({"lead_organization_id": leads.leaf("e")}))
    asked = {"rebuild": {"leads": [leads.leaf("e"), leads.leaf("nobody")]}}
    for _ in range(2):
        leads.feature_processor.handle(asked, leads.now)
        leads.check_features("e", "f")
    assert leads.features.get(leads.leaf("nobody")) is None


def test_a_lead_that_was_computed_as_of_a_time_to_come_is_mended(stack: Stack, leads: Leads) -> None:
    before = leads.root("a")
    moved = "SET computed_at = :v, as_of.purchases = :v, features.recency_days = :n REMOVE active_on, active_shard"
    stack.client("dynamodb").update_item(
        TableName="Feature",
        Key=encode_item({"lead_organization_id": leads.leaf("a")}),
        UpdateExpression=moved,
        ExpressionAttributeValues=encode_item({":v": "2062-01-01T00:00:00.000000Z", ":n": 13149}),
    )
    with consuming(stack):
        rebuild_features(stack, [leads.leaf("a")])
    leads.check("a")
    after = leads.root("a")
    assert after
    assert before
    assert (after.features, after.active_on) == (before.features, before.active_on)
    assert after.computed_at == stamp(START + DAY)


def test_while_events_arrive_nothing_is_lost(stack: Stack, leads: Leads) -> None:
    """Each rebuild is overtaken by an event of its lead, and each event by a rebuild."""
    more = leads.some(10, 13, "abcdef", first=100)
    leads.store(more)
    with consuming(stack):
        for each in more:
            leads.both(each)
            if each.external_event_id.endswith(("0", "5")):
                rebuild_features(stack)
    for which in "abcdef":
        leads.check(which)


def test_a_rebuild_that_is_overtaken_starts_again(
    stack: Stack, leads: Leads, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = leads.event(500, "purchase_completed", START, amount_minor=3)
    damage(leads, "a", "SET features.sentiment_avg_30d = :v", v=7)  # which an order does not touch
    read = leads.events.of_leaves

    def overtaken(leaves: Any) -> Any:
        found = list(read(leaves))
        monkeypatch.undo()
        leads.store([order])
        leads.both(order)
        return iter(found)

    monkeypatch.setattr(leads.events, "of_leaves", overtaken)
    leads.feature_processor.handle({"rebuild": {"leads": [leads.leaf("a")]}}, leads.now)
    leads.check("a")


def test_a_queue_that_nobody_empties_is_told(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lead_features, "STALLED_SECONDS_MAX", 0)
    with pytest.raises(RuntimeError, match=r"messages still wait in FeatureRefresh \(1\)"):
        rebuild_features(stack, ["nobody"])


def test_the_command(
    stack: Stack, leads: Leads, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("local.command.find_stack", lambda *_: stack)

    def run(*arguments: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["streakline", "features", "rebuild", "--json", *arguments])
        cli.main()
        return json.loads(capsys.readouterr().out)

    assert run("--dry-run") == {"leads": 6, "messages": 0, "failures": 0}
    damage(leads, "b", "SET features.monetary_total = :v", v=99999)
    with consuming(stack):
        assert run("--lead", leads.leaf("b"))["leads"] == 1
    leads.check("b")
