"""The commands as they act on AWS: a stack found by its name, credentials from the environment, no laptop's files.

The emulator is reached as AWS is, by the default endpoint (AWS_ENDPOINT_URL). Only the API's address differs.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from ingest.web.caller import ADMIN
from local import replay as order_webhooks
from local import stack as stack_module
from local import verify
from local.api import Api
from local.cloud import patience
from local.cloud.tokens import token
from local.demo_input import synthetic_crowd
from local.event_sources import Purchase
from local.leads.features import rebuild_features
from local.operate import stack_status
from local.operate.verdict import as_json, problems
from local.replay import replay
from local.sign_in import PoolUsers, subject
from local.smoke import cleanup, steps
from local.stack import EMULATOR_KEY, EMULATOR_SECRET, Stack, find

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")


@pytest.fixture
def live(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    environment = {
        "AWS_ENDPOINT_URL": stack.endpoint_url,
        "AWS_ACCESS_KEY_ID": EMULATOR_KEY,
        "AWS_SECRET_ACCESS_KEY": EMULATOR_SECRET,
        "AWS_REGION": stack.region,
        "AWS_DEFAULT_REGION": stack.region,
        "STREAKLINE_TOKEN": token(stack, "operator", ADMIN),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(patience, "AWS_QUIET_SECONDS", 1)
    monkeypatch.setattr(patience, "AWS_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(cleanup, "AWS_QUIET_SECONDS", 1)
    monkeypatch.setattr(steps, "AWS_PAUSE_SECONDS", 0.2)
    stack_module._cached_client.cache_clear()
    yield replace(find(stack.name), api_url=stack.api_url)
    stack_module._cached_client.cache_clear()


def test_it_is_found_with_all_that_the_laptop_knows(stack: Stack, live: Stack) -> None:
    assert (live.outputs, live.tables, live.region) == (stack.outputs, stack.tables, stack.region)
    assert not live.is_laptop


def test_status_tells_what_runs_and_waits(live: Stack) -> None:
    seen = stack_status.look_at_stack(live)
    assert seen.unseen == {}
    assert all(each.runs for each in seen.parts), seen.parts
    told = as_json(seen)
    assert told["state"].endswith("_COMPLETE")
    assert told["queues"].keys() == set(patience.WORK)
    assert {"EngagementFailures", "PublisherFailures"} <= told["failures"].keys()
    assert told["consumers"]["Leads"]["mappings"] == ["Enabled"]
    assert told["alarms"] == {"known": 0, "not_ok": {}}
    assert not [each for each in problems(seen) if "message" not in each.what], (
        "but for failures of other tests"
    )


def test_a_function_that_is_stopped_and_a_queue_that_nobody_reads_are_named(live: Stack) -> None:
    function, client = live.outputs["MemoryFunctionName"], live.client("lambda")
    (mapping,) = client.list_event_source_mappings(FunctionName=function)["EventSourceMappings"]
    client.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=0)
    client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    try:
        found = [each.what for each in problems(stack_status.look_at_stack(live))]
    finally:
        client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)
        client.delete_function_concurrency(FunctionName=function)
    assert "MemoryFunction is stopped: its reserved concurrency is 0" in found
    assert "Memory is not fed: an event source mapping is Disabled" in found


def test_a_replay_waits_for_its_effects_and_verify_finds_them_right(live: Stack, user: str) -> None:
    now = datetime.now(UTC)
    events = [{**each, "user_id": f"{user}-{each['user_id']}"} for each in synthetic_crowd(5, 60, 3, now)]
    outcome = replay(live, events, via="both")
    assert not outcome.refused
    as_of = (now + timedelta(days=1)).date()
    assert verify.compare(Api(live), verify.expect(events, as_of), as_of) == []


def test_orders_are_replayed_and_features_rebuilt(live: Stack, organization: str) -> None:
    purchase = Purchase("c", 1, datetime.now(UTC) - timedelta(days=1), 1, Decimal("7.00"))
    order_webhooks.queue_webhooks(live, [order_webhooks.order_webhook(purchase, organization)])
    patience.drain_leads(live, stalled_max=60)
    deadline = time.monotonic() + 60  # a message on its way from the topic to the queue is in neither
    while not rebuild_features(live, dry_run=True)["leads"]:
        assert time.monotonic() < deadline
        time.sleep(0.5)


def _of(user: str, answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in answer["left"] if user in str(each["record"])]


def test_a_pool_s_user_is_made_signed_in_and_removed(live: Stack, user: str) -> None:
    cognito = live.client("cognito-idp")
    pool = cognito.create_user_pool(PoolName=user, Policies={"PasswordPolicy": {"MinimumLength": 12}})
    pool_id = pool["UserPool"]["Id"]
    flows = ["ALLOW_ADMIN_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"]
    app = cognito.create_user_pool_client(UserPoolId=pool_id, ClientName="app", ExplicitAuthFlows=flows)
    for group in ("streakline/admin", "streakline/agents"):
        cognito.create_group(UserPoolId=pool_id, GroupName=group)
    users = PoolUsers(cognito, pool_id, app["UserPoolClient"]["ClientId"])
    first = subject(users.token("ann", "streakline/admin"))
    assert subject(users.token("ann", "streakline/agents")) == first != ""
    listed = cognito.admin_list_groups_for_user(UserPoolId=pool_id, Username="ann")["Groups"]
    assert [each["GroupName"] for each in listed] == ["streakline/agents"]
    users.remove("ann")
    assert cognito.list_users(UserPoolId=pool_id)["Users"] == []
    cognito.delete_user_pool(UserPoolId=pool_id)
