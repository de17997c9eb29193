"""The planner's arithmetic: nobody costs what stands idle, more users never cost less, services add up."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.deployed import template
from local.paths import ROOT
from local.plan import bill
from local.plan.bill import CostPlan, by_service, make_plan, operations, stored_gb
from local.plan.demand import a_day, lake_rows
from local.plan.environments import (
    DAYS_A_MONTH,
    Deployment,
    UnknownEnvironment,
    deployment,
    fires_a_day,
    overrides,
)
from local.plan.idle import acu_hours, idle
from local.plan.limits import OWN, SHARED, crossing
from local.plan.measured_units import MeasuredUnits, load_units, minus, total
from local.plan.month import Night, a_night
from local.plan.price_list import BadPriceList, Price, PriceList, fact, prices_of
from local.plan.report import as_json, departures, picture, table
from local.plan.traffic import BadTraffic, Traffic
from rules.engagement.reconciliation import NIGHTS
from tests.support.declared import indexes_of

PRICES = ROOT / "local" / "plan" / "prices"
TRAFFIC = Traffic(daily_actives=5000, lead_events=500, leads=1000, questions=50, phones=20)
units = cache(load_units)
prices = cache(lambda: prices_of("us-east-1"))


@cache
def deployed(name: str = "small") -> Deployment:
    return deployment(name)


def planned(traffic: Traffic, environment: str = "small") -> CostPlan:
    return make_plan(traffic, deployed(environment), units(), prices())


# ---- what a plan is


@pytest.mark.parametrize("environment", ["small", "standard", "large"])
def test_nobody_costs_what_stands_idle(environment: str) -> None:
    """The boards are counted all the same, which is a few cents a month."""
    plan = planned(Traffic(), environment)
    assert plan.ours.dollars == pytest.approx(plan.ours.idle_dollars, abs=0.1)
    running = {name for name, dollars in plan.ours.running.items() if dollars > 1e-9}
    assert running <= {"dynamodb.read", "dynamodb.write", "lambda.gb_seconds"}
    assert plan.per_million_events(plan.ours) is None


def test_a_small_deployment_that_nobody_uses_costs_less_than_eight_dollars() -> None:
    assert planned(Traffic()).ours.idle_dollars < 8


def test_nights_that_bring_something_are_paid_in_the_warehouse_and_idle_ones_once_in_28() -> None:
    idle = planned(Traffic()).ours.amounts["redshift.rpu_hours"]
    assert 0 < idle < 0.05 * planned(TRAFFIC).ours.amounts["redshift.rpu_hours"]
    whole = [planned(replace(TRAFFIC, daily_actives=number)).ours for number in (10.0, 1e6)]
    assert whole[0].amounts["redshift.rpu_hours"] == whole[1].amounts["redshift.rpu_hours"]
    assert whole[0].amounts["redshift.rpu_hours"] == pytest.approx(idle * NIGHTS)


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
    less_dollars, more_dollars = planned(traffic).ours.dollars, planned(more).ours.dollars
    assert more_dollars >= less_dollars * (1 - 1e-3)


@given(traffics)
def test_services_add_up_and_nothing_is_below_zero(traffic: Traffic) -> None:
    plan = planned(traffic)
    for design in (plan.ours, plan.naive):
        parts = [*by_service(design.idle).values(), *by_service(design.running).values()]
        assert sum(parts) == pytest.approx(design.dollars)
        assert all(amount >= 0 for amount in design.amounts.values()), design.amounts


@given(st.floats(1, 60), st.floats(1, 60))
def test_larger_batches_never_cost_more_units(one: float, other: float) -> None:
    small, large = sorted((one, other))
    writes = [
        planned(Traffic(daily_actives=1000, events_per_user=60, events_per_batch=size)).ours.amounts[
            "dynamodb.write"
        ]
        for size in (small, large)
    ]
    assert writes[1] <= writes[0] * 1.02  # between two measured sizes a line stands for a step


def test_the_naive_design_costs_nine_to_ten_units_an_event_and_ours_less_the_larger_the_batch() -> None:
    traffic = Traffic(daily_actives=1000, events_per_user=20, redemptions_per_user=0)

    def per_event(batch: float, *, naive: bool) -> float:
        plan = planned(replace(traffic, events_per_batch=batch))
        amounts = (plan.naive if naive else plan.ours).amounts
        return amounts["dynamodb.write"] / plan.events

    assert 9 <= per_event(20, naive=True) <= 10
    assert per_event(1, naive=False) > per_event(5, naive=False) > per_event(20, naive=False)
    assert per_event(20, naive=False) < 0.4 * per_event(20, naive=True)


def test_a_clawback_costs_what_was_measured() -> None:
    traffic = Traffic(daily_actives=1000, events_per_user=5)
    plain, some = (
        planned(each).ours.amounts["dynamodb.write"] for each in (traffic, replace(traffic, clawbacks=0.1))
    )
    assert some - plain == pytest.approx(DAYS_A_MONTH * 500 * total(units().paths["clawback"], "write"))


def test_outgoing_webhooks_cost_what_was_measured_and_nothing_without_endpoints() -> None:
    traffic = Traffic(daily_actives=1000, events_per_user=5, redemptions_per_user=0)
    plain, one, three = (
        planned(replace(traffic, webhook_endpoints=number)).ours.amounts for number in (0.0, 1.0, 3.0)
    )
    paths, changes = units().paths, DAYS_A_MONTH * 1000
    delivered = total(paths["webhook.delivered.1"], "write")
    for number, amounts in ((1, one), (3, three)):
        told = total(paths[f"webhook.told.{number}"], "write")
        more = amounts["dynamodb.write"] - plain["dynamodb.write"]
        assert more == pytest.approx(changes * (told + number * delivered))
        assert amounts["secrets.secret"] - plain["secrets.secret"] == number
    assert one["lambda.requests"] - plain["lambda.requests"] == pytest.approx(
        2 * changes + DAYS_A_MONTH * 24 * 60
    )


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


@pytest.mark.parametrize("environment", ["small", "standard", "large"])
def test_each_resource_that_is_billed_has_its_prices(environment: str) -> None:
    kinds = {each["Type"] for each in deployed(environment).resources.values()}
    assert kinds <= BILLED.keys(), f"say what it is billed by: {sorted(kinds - BILLED.keys())}"
    needed = {name for kind in kinds for name in BILLED[kind].split()}
    assert needed <= prices().prices.keys(), f"no price: {sorted(needed - prices().prices.keys())}"


def test_what_calls_and_objects_cost_is_in_the_plan() -> None:
    amounts = planned(TRAFFIC).ours.amounts
    asked = ("rdsdata.requests", "secrets.calls", "kms.requests", "scheduler.invocations")
    for name in (*asked, "s3.archived", "traffic.out_gb"):
        assert amounts[name] > 0, name
    assert "s3.archived" not in planned(replace(TRAFFIC, retention_days=90)).ours.amounts
    assert "rdsdata.requests" not in planned(TRAFFIC, "standard").ours.amounts


# ---- what was measured


@pytest.mark.parametrize(("kind", "size"), [("next", 5), ("next", 20), ("first", 5), ("first", 20)])
def test_a_post_is_its_events_and_what_its_kind_adds(kind: str, size: int) -> None:
    from local.plan.demand import post
    from local.plan.measured_units import tables_of

    built, measured = post(units(), kind, size), units().paths[f"events.{kind}.{size}"]
    assert tables_of(built, "write") == pytest.approx(tables_of(measured, "write"))


def test_between_two_sizes_there_is_a_line() -> None:
    some = MeasuredUnits({f"a.{n}": {"F": {"x": float(10 * n)}} for n in (1, 2, 6)}, {})
    assert [some.at("a", size)["F"]["x"] for size in (0.5, 1, 1.5, 4, 6, 9)] == [10, 10, 15, 40, 60, 90]
    assert minus(some.paths["a.2"], some.paths["a.1"]) == {"F": {"x": 10.0}}


def test_every_index_is_known_to_the_limits() -> None:
    """An index whose partitions many users share has a limit; a new one must say which kind it is."""
    found = {
        f"{name}/{index['IndexName']}"
        for name, each in template()["Resources"].items()
        if each["Type"] == "AWS::DynamoDB::Table"
        for index in indexes_of(each["Properties"])
    }
    assert found == {*SHARED, *OWN}
    parameters = {shards for shards in SHARED.values() if isinstance(shards, str)}
    assert parameters <= set(template()["Mappings"]["Sizes"])


# ---- limits


def test_the_first_limit_is_reached_where_it_says() -> None:
    first = planned(TRAFFIC).ours.limits[0]
    assert first.daily_actives
    factor = first.daily_actives / TRAFFIC.daily_actives
    there = replace(
        TRAFFIC,
        daily_actives=first.daily_actives,
        lead_events=TRAFFIC.lead_events * factor,
        leads=TRAFFIC.leads * factor,
        questions=TRAFFIC.questions * factor,
    )
    again = next(each for each in planned(there).ours.limits if each.limit.name == first.limit.name)
    assert again.limit.share == pytest.approx(1, rel=0.01)


@given(st.floats(1, 1e9), st.floats(0.5, 2))
def test_a_crossing_is_where_the_share_is_one(at: float, power: float) -> None:
    assert crossing(lambda users: (users / at) ** power) == pytest.approx(at, rel=0.01)
    assert crossing(lambda _: 0.0) is None


# ---- idle


def test_idle_follows_the_resources() -> None:
    standard, small = (idle(deployed(each), units()) for each in ("standard", "small"))
    large = idle(deployed("large"), units())
    assert small["aurora.acu_hours"] < 2
    assert standard["aurora.acu_hours"] == 0.5 * fact("month.hours")
    assert "proxy.acu_hours" not in {**small, **standard}
    assert large["proxy.acu_hours"] >= fact("proxy.acu_min") * fact("month.hours")
    assert small["secrets.secret"] == standard["secrets.secret"] + 1  # the consumer's, for the Data API
    alarms = sum(1 for _ in deployed("small").of_type("AWS::CloudWatch::Alarm"))
    assert small["alarms.standard"] >= alarms


@given(st.floats(0, 200))
def test_a_cluster_that_may_pause_is_never_awake_for_more_than_all_the_time(wakes: float) -> None:
    hours = acu_hours({"MinCapacity": 0, "SecondsUntilAutoPause": 600}, wakes)
    assert 0 <= hours <= 0.5 * fact("month.hours")
    assert acu_hours({"MinCapacity": 0.5}, wakes) == 0.5 * fact("month.hours")


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        ("rate(5 minutes)", 288),
        ("rate(1 hour)", 24),
        ("cron(30 2 * * ? *)", 1),
        ("cron(0/15 8-9,20 * * ? *)", 12),
    ],
)
def test_a_schedule_fires_as_often_as_it_says(expression: str, times: int) -> None:
    assert fires_a_day(expression) == times


def test_a_schedule_that_is_not_of_every_day_is_refused() -> None:
    with pytest.raises(ValueError, match="every day"):
        fires_a_day("cron(0 0 1 * ? *)")


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
    with pytest.raises(UnknownEnvironment, match="default, large, small, standard"):
        deployment("tiny")
    assert overrides()["small"] == overrides()["default"]


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
    plan = make_plan(TRAFFIC, deployed(), units(), prices_of("us-east-1", path))
    assert plan.ours.dollars == pytest.approx(2 * planned(TRAFFIC).ours.dollars)
    assert plan.prices.region == "home"


def test_an_amount_without_a_price_is_named() -> None:
    with pytest.raises(BadPriceList, match=r"lacks lambda\.requests"):
        PriceList("r", "d", "s", {}).dollars({"lambda.requests": 1})
    assert Price(2.0, 10.0, "u", "s", free=5.0).of(15.0) == 2.0
    assert Price(2.0, 10.0, "u", "s", free=5.0).of(3.0) == 0.0


# ---- what is shown


def test_table_and_json_tell_the_same() -> None:
    plan = planned(TRAFFIC)
    text, told = table(plan, units()), as_json(plan, units())
    assert f"{plan.ours.idle_dollars:,.2f}" in text
    assert plan.ours.limits[0].limit.name in text
    assert json.loads(json.dumps(told))["ours"]["dollars"] == pytest.approx(plan.ours.dollars)


def test_the_picture_needs_no_other_file_and_reads_in_the_dark() -> None:
    page = picture(TRAFFIC, deployed(), units(), prices())
    assert "<svg" in page
    assert "prefers-color-scheme: dark" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "")


# ---- what is old


def test_events_that_are_proven_cost_a_read_and_a_write_each_and_are_kept_as_long_as_asked() -> None:
    traffic = Traffic(daily_actives=1000, events_per_user=10, retention_days=1000)
    plain = planned(traffic)
    parameters = {**deployed().parameters, "EventHotDays": "180"}
    hot = make_plan(traffic, replace(deployed(), parameters=parameters), units(), prices())
    amounts = [each.ours.amounts for each in (plain, hot)]
    for kind in ("dynamodb.write", "dynamodb.read"):
        assert amounts[1][kind] - amounts[0][kind] == pytest.approx(10_000 * DAYS_A_MONTH)
    gb = [stored_gb(each.traffic, units(), each.ours)["BPEvents"] for each in (plain, hot)]
    assert gb[1] == pytest.approx(2 * gb[0])
    told = departures(hot)["EventHotDays"]
    assert told["dollars"] == pytest.approx(10_000 * DAYS_A_MONTH * 0.75e-6)
    assert "EventHotDays               180         10,000" in table(hot, units())
    young = make_plan(
        replace(traffic, retention_days=180), replace(deployed(), parameters=parameters), units(), prices()
    )
    assert young.ours.amounts["dynamodb.write"] == pytest.approx(amounts[0]["dynamodb.write"])


# ---- what operators do


def test_what_operators_do_is_told_in_units_and_dollars() -> None:
    found = operations(planned(Traffic(daily_actives=1000, events_per_user=4, retention_days=10)), units())
    paths = units().paths

    def writes(path: str) -> float:
        return sum(n for counts in paths[path].values() for name, n in counts.items() if name[:6] == "write.")

    per_event = (writes("erase.20") - writes("erase.1")) / 19
    assert per_event == 3, "an event, its claim, its entry"
    assert found["forgetting_a_thousand"]["write_units"] == 1000 * (writes("erase.1") + 39 * per_event)
    assert found["forgiving_100000"]["write_units"] == 100_000 * writes("forgive") == 300_000
    assert found["restoring_a_million_events"]["write_units"] == 3_500_000
    assert all(each["dollars"] > 0 for each in found.values())


def test_a_night_reads_one_of_28_slices_of_leads_and_a_date_of_curated_files() -> None:
    def night(leads: float, days: float) -> Night:
        traffic = Traffic(leads=leads, lead_events=500, retention_days=days)
        return a_night(traffic, deployed(), units(), a_day(replace(traffic, leads=0), units()))

    none, some, later = night(0, 14), night(28_000, 14), night(0, 560)
    item = units().paths["lead.read.features"]["LeadsApiFunction"]["read.Feature"]
    assert some.scan_units - none.scan_units == pytest.approx(1000 * item)
    files = len(lake_rows(a_day(Traffic(lead_events=500), units()))) / 2  # in 14 days, in every other night
    assert later.s3_gets - none.s3_gets == pytest.approx(files)
    assert later.s3_puts - none.s3_puts == pytest.approx(files), "dates are listed"


def test_a_second_region_costs_what_it_follows_and_one_region_pays_nothing_of_it() -> None:
    idle, some, more = (
        bill.second_region_json(planned(Traffic(daily_actives=each))) for each in (0, 1000, 10_000)
    )
    months: list[Any] = [each["a_month"] for each in (idle, some, more)]
    assert months[0]["dynamodb.changes"] == 0
    assert months[0]["dollars"] == pytest.approx(2 * 730 * 0.04), "two streams by the hour"
    assert months[2]["dynamodb.write"] == pytest.approx(10 * months[1]["dynamodb.write"])
    assert months[0]["dollars"] < months[1]["dollars"] < months[2]["dollars"]
    back: list[Any] = [each["returning"] for each in (some, more)]
    assert 0 < back[0]["dollars"] < back[1]["dollars"]
    # The default template has nothing of it: its changes have no stream.
    assert "dynamodb.changes" not in planned(Traffic(daily_actives=1000)).ours.amounts
