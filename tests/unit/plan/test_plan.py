"""The planner's arithmetic: nobody costs what stands idle, more users never cost less, services add up."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.deployed import template
from bench.units.standing import fires_a_day, resources
from local.paths import ROOT
from local.plan.bill import (
    SHARED,
    CostPlan,
    by_service,
    first_limits,
    leaving,
    limits,
    make_plan,
    operations,
)
from local.plan.measured_units import MeasuredUnits, UnknownSize, load_units, total
from local.plan.month import DAYS_A_MONTH
from local.plan.price_list import BadPriceList, Price, PriceList, fact, prices_of
from local.plan.report import as_json, table
from local.plan.traffic import BadTraffic, Traffic
from rules.turns import NIGHTS
from tests.support.declared import indexes_of

# Indexes that are keyed by a user, a lead or a question: no partition of them gets the writes of many.
OWN = ("BPEvents/IdempotencyIndex", "Event/event-type-index", "Responses/ByFingerprint")
PRICES = ROOT / "local" / "plan" / "prices"
SIZES = ["small", "standard", "large"]
TRAFFIC = Traffic(daily_actives=5000, lead_events=500, leads=1000, questions=50, phones=20)
units = cache(load_units)
prices = cache(lambda: prices_of("us-east-1"))


def planned(traffic: Traffic, environment: str = "small", hot_days: float = 0.0) -> CostPlan:
    return make_plan(traffic, units(), units().size(environment), prices(), hot_days)


# ---- what a plan is


@pytest.mark.parametrize("environment", SIZES)
def test_nobody_costs_what_stands_idle(environment: str) -> None:
    """The boards are counted all the same, which is a few cents a month."""
    plan = planned(Traffic(), environment)
    assert plan.dollars == pytest.approx(plan.idle_dollars, abs=0.1)
    running = {name for name, dollars in plan.running_dollars.items() if dollars > 1e-9}
    assert running <= {"dynamodb.read", "dynamodb.write", "lambda.gb_seconds"}
    assert plan.per_million_events is None


def test_a_small_deployment_that_nobody_uses_costs_less_than_eight_dollars() -> None:
    assert planned(Traffic()).idle_dollars < 8


def test_nights_that_bring_something_are_paid_in_the_warehouse_and_idle_ones_once_in_28() -> None:
    idle = planned(Traffic()).amounts["redshift.rpu_hours"]
    few, many = (planned(replace(TRAFFIC, daily_actives=number)).amounts for number in (10.0, 1e6))
    assert few["redshift.rpu_hours"] == many["redshift.rpu_hours"]
    assert few["redshift.rpu_hours"] == pytest.approx(idle * NIGHTS)


traffics = st.builds(
    Traffic,
    daily_actives=st.floats(0, 1e7),
    events_per_user=st.floats(0, 60),
    events_per_batch=st.floats(1, 100),
    lead_events=st.floats(0, 1e6),
    leads=st.floats(0, 1e6),
    questions=st.floats(0, 1e5),
    phones=st.floats(0, 1000),
    retention_days=st.floats(0, 2000),
)


@given(traffics, st.floats(1, 20))
def test_more_users_never_cost_less(traffic: Traffic, factor: float) -> None:
    more = replace(traffic, daily_actives=traffic.daily_actives * factor)
    assert planned(more).dollars >= planned(traffic).dollars * (1 - 1e-3)


@given(traffics)
def test_services_add_up_and_nothing_is_below_zero(traffic: Traffic) -> None:
    plan = planned(traffic)
    parts = [*by_service(prices().dollars(plan.size.idle)).values()]
    parts += by_service(plan.running_dollars).values()
    assert sum(parts) == pytest.approx(plan.dollars)
    assert all(amount >= 0 for amount in plan.amounts.values()), plan.amounts


@given(st.floats(1, 60), st.floats(1, 60))
def test_larger_batches_never_cost_more_units(one: float, other: float) -> None:
    writes = [
        planned(Traffic(daily_actives=1000, events_per_user=60, events_per_batch=size)).amounts[
            "dynamodb.write"
        ]
        for size in sorted((one, other))
    ]
    assert writes[1] <= writes[0] * 1.001


def test_more_users_do_not_make_a_list_of_the_best_dearer() -> None:
    reads = [
        planned(Traffic(users=users, daily_actives=1000, boards_per_user=boards)).day["UsersApiFunction"]
        for users in (1e4, 1e7)
        for boards in (0, 1)
    ]
    few, many = (total({"f": reads[at + 1]}, "read") - total({"f": reads[at]}, "read") for at in (0, 2))
    assert few == pytest.approx(many)
    assert few / 1000 < 20, "units of a list or a rank"


def test_a_clawback_costs_what_was_measured() -> None:
    traffic = Traffic(daily_actives=1000, events_per_user=5)
    plain, some = (
        planned(each).amounts["dynamodb.write"] for each in (traffic, replace(traffic, clawbacks=0.1))
    )
    assert some - plain == pytest.approx(DAYS_A_MONTH * 500 * total(units().paths["clawback"], "write"))


def test_outgoing_webhooks_cost_what_was_measured_and_nothing_without_endpoints() -> None:
    traffic = Traffic(daily_actives=1000, events_per_user=5, redemptions_per_user=0)
    plain, one, three = (
        planned(replace(traffic, webhook_endpoints=number)).amounts for number in (0.0, 1.0, 3.0)
    )
    paths, changes = units().paths, DAYS_A_MONTH * 1000
    delivered = total(paths["webhook.delivered.1"], "write")
    for number, amounts in ((1, one), (3, three)):
        more = amounts["dynamodb.write"] - plain["dynamodb.write"]
        assert more == pytest.approx(
            changes * (total(paths[f"webhook.told.{number}"], "write") + number * delivered)
        )
        assert amounts["secrets.secret"] - plain["secrets.secret"] == number
    calls = 2 * changes + DAYS_A_MONTH * 24 * 60
    assert one["lambda.requests"] - plain["lambda.requests"] == pytest.approx(calls)


# What a resource is billed by; "": it costs nothing itself, or is a part of another one that does.
BILLED = {
    "AWS::ApiGatewayV2::Api": "api.requests traffic.out_gb",
    "AWS::Athena::WorkGroup": "athena.tb",
    "AWS::CloudWatch::Alarm": "alarms.standard metrics.custom",
    "AWS::CloudWatch::CompositeAlarm": "alarms.composite",
    "AWS::CloudWatch::Dashboard": "dashboards.board",
    "AWS::Cognito::UserPool": "cognito.monthly_actives",
    "AWS::DynamoDB::Table": "dynamodb.write dynamodb.read dynamodb.storage_gb dynamodb.backup_gb kms.requests",
    "AWS::DynamoDB::GlobalTable": "dynamodb.write dynamodb.read",
    "AWS::EC2::VPCEndpoint": "endpoints.hours endpoints.gb",
    "AWS::ElastiCache::ServerlessCache": "valkey.gb_hours valkey.ecpu",
    "AWS::Glue::Job": "glue.dpu_hours",
    "AWS::Kinesis::Stream": "kinesis.stream_hours kinesis.in_gb kinesis.out_gb kinesis.shard_hours",
    "AWS::KinesisFirehose::DeliveryStream": "firehose.in_gb firehose.partitioned_gb firehose.jq_hours",
    "AWS::Lambda::Function": "lambda.requests lambda.gb_seconds xray.traces",
    "AWS::Logs::LogGroup": "logs.in_gb logs.kept_gb",
    "AWS::RDS::DBCluster": "aurora.acu_hours aurora.io aurora.storage_gb rdsdata.requests",
    "AWS::RDS::DBProxy": "proxy.acu_hours",
    "AWS::RedshiftServerless::Workgroup": "redshift.rpu_hours redshift.storage_gb",
    "AWS::S3::Bucket": "s3.storage_gb s3.archive_gb s3.archived s3.retrieved_gb s3.put s3.get",
    "AWS::SNS::Topic": "sns.requests",
    "AWS::SQS::Queue": "sqs.requests",
    "AWS::Scheduler::Schedule": "scheduler.invocations",
    "AWS::SecretsManager::Secret": "secrets.secret secrets.calls",
    "AWS::StepFunctions::StateMachine": "states.transitions",
    **dict.fromkeys(
        (
            *("AWS::ApiGatewayV2::Authorizer", "AWS::ApiGatewayV2::Integration", "AWS::ApiGatewayV2::Route"),
            *(
                "AWS::ApiGatewayV2::Stage",
                "AWS::CloudFormation::CustomResource",
                "AWS::CloudFormation::Stack",
            ),
            *("AWS::CodeDeploy::Application", "AWS::CodeDeploy::DeploymentGroup", "AWS::Budgets::Budget"),
            *("AWS::Cognito::UserPoolClient", "AWS::Cognito::UserPoolDomain", "AWS::Cognito::UserPoolGroup"),
            *("AWS::EC2::RouteTable", "AWS::EC2::SecurityGroup", "AWS::EC2::Subnet", "AWS::EC2::VPC"),
            *("AWS::EC2::SubnetRouteTableAssociation", "AWS::Glue::Database", "AWS::IAM::Role"),
            *("AWS::Lambda::Alias", "AWS::Lambda::EventSourceMapping", "AWS::Lambda::LayerVersion"),
            *("AWS::Lambda::Permission", "AWS::Lambda::Version", "AWS::Logs::LogStream"),
            *("AWS::Logs::MetricFilter", "AWS::RDS::DBClusterParameterGroup", "AWS::RDS::DBInstance"),
            *("AWS::RDS::DBProxyTargetGroup", "AWS::RDS::DBSubnetGroup", "AWS::S3::BucketPolicy"),
            *("AWS::RedshiftServerless::Namespace", "AWS::SNS::Subscription", "AWS::SNS::TopicPolicy"),
            "AWS::SQS::QueuePolicy",
        ),
        "",
    ),
}


@pytest.mark.parametrize("environment", SIZES)
def test_each_resource_that_is_billed_has_its_prices(environment: str) -> None:
    kinds = {each["Type"] for each in resources(environment).values()}
    assert kinds <= BILLED.keys(), f"say what it is billed by: {sorted(kinds - BILLED.keys())}"
    needed = {name for kind in kinds for name in BILLED[kind].split()}
    assert needed <= prices().prices.keys(), f"no price: {sorted(needed - prices().prices.keys())}"


def test_what_calls_and_objects_cost_is_in_the_plan() -> None:
    amounts = planned(TRAFFIC).amounts
    for name in (
        "rdsdata.requests",
        "kms.requests",
        "scheduler.invocations",
        "s3.archived",
        "traffic.out_gb",
    ):
        assert amounts[name] > 0, name
    assert "s3.archived" not in planned(replace(TRAFFIC, retention_days=90)).amounts
    assert "rdsdata.requests" not in planned(TRAFFIC, "standard").amounts


# ---- what was measured


def test_between_two_sizes_there_is_a_line() -> None:
    some = MeasuredUnits({f"a.{n}": {"F": {"x": float(10 * n)}} for n in (1, 2, 6)}, {})
    assert [some.at("a", size)["F"]["x"] for size in (0.5, 1, 1.5, 4, 6, 9)] == [10, 10, 15, 40, 60, 90]
    less = MeasuredUnits({f"a.{n}": {"F": {"x": float(10 - n)}} for n in (1, 5)}, {})
    assert [less.at("a", size)["F"]["x"] for size in (3, 5, 100)] == [7, 5, 5], "nothing falls below zero"


def test_every_index_is_known_to_the_limits() -> None:
    """An index whose partitions many users share has a limit; a new one must say which kind it is."""
    found = {
        f"{name}/{index['IndexName']}"
        for name, each in template()["Resources"].items()
        if each["Type"] == "AWS::DynamoDB::Table"
        for index in indexes_of(each["Properties"])
    }
    assert found == {*SHARED, *OWN}
    rows = {shards for shards in SHARED.values() if isinstance(shards, str)}
    assert all(rows <= units().size(each).settings.keys() for each in SIZES)


# ---- limits


@pytest.mark.parametrize("environment", SIZES)
def test_each_limit_is_reached_where_it_says(environment: str) -> None:
    plan = planned(TRAFFIC, environment)
    found = first_limits(plan)
    assert [users for _, users in found] == sorted(users for _, users in found)
    for each, users in found:
        there = limits(TRAFFIC.of_users(users), units(), plan.size)
        assert next(one.share for one in there if one.name == each.name) == pytest.approx(1, rel=0.01)
    before = limits(TRAFFIC.of_users(found[0][1] * 0.98), units(), plan.size)
    assert before[0].share < 1, "none is reached before the first one"


# ---- idle


def test_idle_follows_the_size() -> None:
    small, standard, large = (units().size(each).idle for each in SIZES)
    assert small["aurora.acu_hours"] < 2
    assert standard["aurora.acu_hours"] == 0.5 * fact("month.hours")
    assert "proxy.acu_hours" not in {**small, **standard}
    assert large["proxy.acu_hours"] >= fact("proxy.acu_min") * fact("month.hours")
    assert small["secrets.secret"] == standard["secrets.secret"] + 1  # the consumer's, for the Data API
    kinds = [each["Type"] for each in resources("small").values()]
    assert small["alarms.standard"] >= kinds.count("AWS::CloudWatch::Alarm")


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        ("rate(5 minutes)", 288),
        ("rate(1 hour)", 24),
        ("cron(30 2 * * ? *)", 1),
        ("cron(0,30 8,20 * * ? *)", 4),
    ],
)
def test_a_schedule_fires_as_often_as_it_says(expression: str, times: int) -> None:
    assert fires_a_day(expression) == times


@pytest.mark.parametrize("expression", ["cron(0 0 1 * ? *)", "cron(*/5 * * * ? *)", "at(2026-01-01)"])
def test_another_schedule_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match="does not know the schedule"):
        fires_a_day(expression)


# ---- what is asked for


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"daily_actives": -1}, "--daily-actives"),
        ({"events_per_batch": 101}, "--events-per-batch"),
        ({"peak": 0.5}, "--peak"),
        ({"new_users": 2}, "--new-users"),
        ({"clawbacks": 1.5}, "--clawbacks"),
        ({"daily_actives": 10, "users": 5}, "--users"),
    ],
)
def test_a_figure_that_makes_no_sense_is_refused_with_its_option(
    change: dict[str, float], named: str
) -> None:
    with pytest.raises(BadTraffic, match=named):
        Traffic(**change)


def test_an_unknown_region_or_environment_says_what_there_is() -> None:
    with pytest.raises(BadPriceList, match=r"--region: no prices of mars \(there are us-east-1\)"):
        prices_of("mars")
    with pytest.raises(UnknownSize, match="there is no tiny: there are large, small, standard"):
        units().size("tiny")
    assert units().size("default") == units().size("small")


def break_prices(text: str) -> str:
    return text.replace('"per": 1000000', '"per": 0', 1)


@pytest.mark.parametrize("spoil", [lambda _: "{", lambda _: "{}", break_prices])
def test_a_price_list_that_cannot_be_used_is_refused(tmp_path: Path, spoil: Callable[[str], str]) -> None:
    path = tmp_path / "mine.json"
    path.write_text(spoil((PRICES / "us-east-1.json").read_text()))
    with pytest.raises(
        BadPriceList, match="--prices" if spoil is not break_prices else "per must be above 0"
    ):
        prices_of("us-east-1", path)


def test_a_price_list_of_your_own_replaces_ours(tmp_path: Path) -> None:
    given_prices = json.loads((PRICES / "us-east-1.json").read_text())
    for each in given_prices["prices"].values():
        each["dollars"] *= 2
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**given_prices, "region": "home"}))
    plan = make_plan(TRAFFIC, units(), units().size("small"), prices_of("us-east-1", path))
    assert plan.dollars == pytest.approx(2 * planned(TRAFFIC).dollars)
    assert plan.prices.region == "home"


def test_an_amount_without_a_price_is_named() -> None:
    with pytest.raises(BadPriceList, match=r"lacks lambda\.requests"):
        PriceList("r", "d", "s", {}).dollars({"lambda.requests": 1})
    assert Price(2.0, 10.0, "u", free=5.0).of(15.0) == 2.0
    assert Price(2.0, 10.0, "u", free=5.0).of(3.0) == 0.0


# ---- what is shown


def test_table_and_json_say_the_same() -> None:
    plan = planned(TRAFFIC)
    text, data = table(plan), json.loads(json.dumps(as_json(plan)))
    assert f"{plan.idle_dollars:,.2f}" in text
    assert data["limits"][0]["name"] in text
    assert data["dollars"] == pytest.approx(plan.dollars)
    assert all(name in text for name in data["operations"])


# ---- what is paid beside a month


def test_events_that_leave_cost_a_read_and_a_write_each_and_are_kept_as_long_as_asked() -> None:
    traffic = Traffic(daily_actives=1000, events_per_user=10, retention_days=1000)
    plain, hot = planned(traffic), planned(traffic, hot_days=180)
    for kind in ("dynamodb.write", "dynamodb.read"):
        more = hot.amounts[kind] - plain.amounts[kind]
        assert more == pytest.approx(10_000 * DAYS_A_MONTH, rel=0.01)
    assert hot.gb["BPEvents"] == pytest.approx(2 * plain.gb["BPEvents"])
    assert leaving(hot)["EventHotDays"]["dollars"] == pytest.approx(10_000 * DAYS_A_MONTH * 0.75e-6)
    assert "EventHotDays                     10,000" in table(hot)
    young = replace(traffic, retention_days=180)
    assert planned(young, hot_days=180).amounts["dynamodb.write"] == plain.amounts["dynamodb.write"]


def test_what_operators_do_is_said_in_units_and_dollars() -> None:
    found = operations(planned(Traffic(daily_actives=1000, events_per_user=4, retention_days=10)))
    move_in, forget, forgive, back = (each["dynamodb.write"] for each in list(found.values())[:4])
    paths = units().paths
    per_event = (total(paths["erase.20"], "write") - total(paths["erase.1"], "write")) / 19
    assert per_event == 3, "an event, its claim, its entry"
    assert move_in == 1e6 * total(paths["position.lots.1"], "write")
    assert forget == 1000 * (total(paths["erase.1"], "write") + 39 * per_event)
    assert forgive == 100_000 * total(paths["forgive"], "write") == 300_000
    assert back == 3_500_000
    assert all(sum(prices().dollars(each).values()) > 0 for each in found.values())


def test_a_second_region_costs_what_it_follows_and_one_region_pays_nothing_of_it() -> None:
    idle, some, more = (
        list(operations(planned(Traffic(daily_actives=each))).values())[4:] for each in (0, 1000, 10_000)
    )
    assert sum(prices().dollars(idle[0]).values()) == pytest.approx(2 * 730 * 0.04), "two streams by the hour"
    assert idle[0]["dynamodb.changes"] == 0
    assert more[0]["dynamodb.write"] == pytest.approx(10 * some[0]["dynamodb.write"])
    assert some[1] == more[1] == units().size("small").idle
    assert 0 < some[2]["dynamodb.write"] < more[2]["dynamodb.write"]
    assert "dynamodb.changes" not in planned(Traffic(daily_actives=1000)).amounts
