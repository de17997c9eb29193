"""Starts an engine for one process's tests or benchmarks: the emulator, without functions, on a free port."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from infra.intrinsics import Scope, resolve
from infra.template_text import parse
from local.cloud.processes import emulator, free_port
from local.paths import ROOT
from rules.lake.entities import ENTITIES

TABLES = (
    *("UserStreaks", "BPEvents", "DailyActivity", "RewardsLedger", "IdempotencyKeys", "Boards", "Friends"),
    *("Limits", "RuleBooks", "Rewards", "Erasures"),
    *("Event", "Memory", "Feature", "GroupEvents"),
    *("Questions", "Responses", "Subscriptions", "UserStats"),
    *("WebhookEndpoints", "Notifications"),
)
WANTED = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
START_SECONDS_MAX = 60
SECRET = "fingerprints"
TOPIC = "arn:aws:sns:us-east-1:000000000000:lead-events"
Definition = dict[str, Any]


@cache
def app_template() -> dict[str, Any]:
    return parse((ROOT / "template.yaml").read_text())


def table_definition(logical_id: str, name: str, **parameters: str) -> Definition:
    """Return CreateTable's arguments for a table of template.yaml. parameters: other than their defaults."""
    declared = app_template()
    values = {each: said.get("Default") for each, said in declared["Parameters"].items()} | parameters
    properties = declared["Resources"][logical_id]["Properties"]
    definition: Definition = resolve(
        {key: properties[key] for key in WANTED if key in properties},
        Scope(values, declared["Mappings"], declared["Conditions"]),
    )
    if "StreamSpecification" in properties:
        definition["StreamSpecification"] = {"StreamEnabled": True, **properties["StreamSpecification"]}
    return {"TableName": name, **definition}


# What does not depend on where the engine listens.
CONSTANTS = {
    "USER_STREAKS_TABLE": "UserStreaks",
    "BP_EVENTS_TABLE": "BPEvents",
    "DAILY_ACTIVITY_TABLE": "DailyActivity",
    "REWARDS_LEDGER_TABLE": "RewardsLedger",
    "REWARDS_TABLE": "Rewards",
    "IDEMPOTENCY_KEYS_TABLE": "IdempotencyKeys",
    "BOARDS_TABLE": "Boards",
    "FRIENDS_TABLE": "Friends",
    "EVENT_TABLE": "Event",
    "MEMORY_TABLE": "Memory",
    "FEATURE_TABLE": "Feature",
    "GROUP_EVENTS_TABLE": "GroupEvents",
    "FEATURE_SHARDS": "2",
    "CURRENCY": "USD",
    "PHONE_REGIONS": "",
    "EXCHANGE_RATES": "",
    "CAMPAIGN_GRACE_DAYS": "7",
    "QUESTIONS_TABLE": "Questions",
    "RESPONSES_TABLE": "Responses",
    "SUBSCRIPTIONS_TABLE": "Subscriptions",
    "USER_STATS_TABLE": "UserStats",
    "STATS_SHARDS": "2",
    "FINGERPRINT_SECRET_ARN": SECRET,
    "PLATFORM_APPLICATION_ARN": "",
    **dict.fromkeys(("OIDC_AUTHORITY", "OIDC_CLIENT_ID", "OIDC_ORIGINS"), ""),
    "IDENTITY_URL": "",
    "ERASURES_TABLE": "Erasures",
    "ERASURE_SECRET_ARN": SECRET,
    "RECEIPT_SECRET_ARN": SECRET,
    "SETTLE_SECONDS": "0",
    "LAKE_SETTLE_SECONDS": "0",
    "HOOK_SECRET_PREFIX": "streakline/hooks/",
    "WEBHOOK_ENDPOINTS_TABLE": "WebhookEndpoints",
    "NOTIFICATIONS_TABLE": "Notifications",
    "ENDPOINT_SECRET_PREFIX": "streakline/endpoints/",
    "EVENT_BUS_NAME": "",
    "DELIVER_FUNCTION": "deliver",
    "ERASURE_FUNCTION": "erasure",
    "PRIVATE_ENDPOINTS": "true",
    "OUTGOING_WEBHOOKS": "true",
    "LEAD_EVENTS_TOPIC_ARN": TOPIC,
    "PAYLOAD_BUCKET": "payloads",
    "RULE_BOOKS_TABLE": "RuleBooks",
    "LIMITS_TABLE": "Limits",
    "RATE_LIMIT_PER_MINUTE": "1000000",
    "COMMANDS_PER_MINUTE": "1000000",
    "READS_PER_MINUTE": "1000000",
    "EXPORTS_PER_DAY": "1000000",
    "OPEN_QUESTIONS_MAX": "1000",
    "SUBSCRIPTIONS_MAX": "1000",
    "LEADERBOARD_SHARDS": "2",
    "LAKE_BUCKET": "lake",
    "ROOTS_BUCKET": "roots",
    "GLUE_DATABASE": "streakline",
    "RAW_RETENTION_DAYS": "0",
    "PAST_FUNCTION": "past",
    "WHAT_IF_FUNCTION": "what-if",
    **dict.fromkeys(("EVENT_HOT_DAYS", "PAYLOAD_RETENTION_DAYS", "ANSWER_TEXT_RETENTION_DAYS"), "0"),
    "WAREHOUSE_URL": "",
    "COPY_ROLE_ARN": "",
    "WAREHOUSE_WORKGROUP_ARN": "",
    "WAREHOUSE_DAILY_RPU_HOURS": "4",
    "CURATE_JOB_NAME": "",
    "SPARK_FROM_GB": "0",
    **{f"{name.upper()}_DELIVERY_STREAM": name for name in ENTITIES},
    "POWERTOOLS_LOG_LEVEL": "CRITICAL",
    "POWERTOOLS_SERVICE_NAME": "test",
}


@dataclass(frozen=True)
class Engine:
    """A running engine with the tables of TABLES. Tables are named by their logical ids."""

    endpoint: str
    queue_url: str

    def client(self, service: str) -> Any:
        """Return the client of the engine that all share. To make one takes as long as ten calls."""
        return _shared_client(self.endpoint, service)

    def own_client(self, service: str) -> Any:
        """Return a client for whoever registers hooks, which nobody else is to meet."""
        return _client(self.endpoint, service)

    def environment(self, redis_url: str = "") -> dict[str, str]:
        """Return the environment variables that functions read their settings from."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "SHIPMENT_QUEUE_URL": self.queue_url,
            "QUEUE_URLS": json.dumps({"Failures": self.queue_url}),
            "LEAD_QUEUE_URL": self.queue_url,
            "FEATURE_QUEUE_URL": self.queue_url,
            "REDIS_URL": redis_url,
            "FAILURE_QUEUE_URL": self.queue_url,
            "ANNOUNCEMENT_QUEUE_URL": self.queue_url,
            **CONSTANTS,
        }


def _client(endpoint: str, service: str) -> Any:
    config = Config(
        retries={"total_max_attempts": 2},
        max_pool_connections=70,
        user_agent="streakline",  # botocore's own is put together anew for every request
        account_id_endpoint_mode="disabled",  # else it looks through each request for names of tables
    )
    return boto3.client(  # type: ignore[call-overload]
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=config,
    )


_shared_client = cache(_client)


@contextlib.contextmanager
def running() -> Iterator[Engine]:
    """Start an engine with its tables for a `with` block; afterwards it is gone."""
    with served() as endpoint:
        yield prepared(endpoint)


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Start an engine that has nothing yet, for a `with` block; gives its endpoint."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        process = _start(port, Path(folder))
        try:
            _wait(process, port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def _start(port: int, folder: Path) -> subprocess.Popen[bytes]:
    env = {
        **os.environ,
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "LOG_LEVEL": "ERROR",
        "TMPDIR": str(folder),
        "STATE_DIR": str(folder),
    }
    quiet = subprocess.DEVNULL
    return subprocess.Popen(emulator(), env=env, stdout=quiet, stderr=quiet)


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while not _healthy(port):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the engine died, or did not start in time")
        time.sleep(0.1)


def _healthy(port: int) -> bool:
    with (
        contextlib.suppress(OSError),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=1) as answer,
    ):
        return bool(answer.status == 200)
    return False


def prepared(endpoint: str) -> Engine:
    """Make tables, buckets, delivery streams, topic, secret and failure queue in an engine."""
    bare = Engine(endpoint, "")
    dynamodb = bare.client("dynamodb")
    for name in TABLES:
        dynamodb.create_table(**table_definition(name, name))
    for bucket in ("payloads", "lake"):
        bare.client("s3").create_bucket(Bucket=bucket)
    for name in ENTITIES:
        _deliver(bare.client("firehose"), name)
    bare.client("sns").create_topic(Name=TOPIC.rpartition(":")[2])
    bare.client("secretsmanager").create_secret(Name=SECRET, SecretString="a key for tests")
    return Engine(endpoint, bare.client("sqs").create_queue(QueueName="failures")["QueueUrl"])


def _deliver(firehose: Any, entity: str) -> None:
    """Make an entity's delivery stream with the template's partitioning."""
    partition = "dt=!{partitionKeyFromQuery:dt}/hour=!{partitionKeyFromQuery:hour}/"
    query = {"ParameterName": "MetadataExtractionQuery", "ParameterValue": "{dt: .dt, hour: .hour}"}
    engine = {"ParameterName": "JsonParsingEngine", "ParameterValue": "JQ-1.6"}
    firehose.create_delivery_stream(
        DeliveryStreamName=entity,
        ExtendedS3DestinationConfiguration={
            "RoleARN": "arn:aws:iam::000000000000:role/delivery",
            "BucketARN": "arn:aws:s3:::lake",
            "Prefix": f"raw/{entity}/arrived=!{{timestamp:yyyy-MM-dd}}/{partition}",
            "ErrorOutputPrefix": f"errors/{entity}/",
            "DynamicPartitioningConfiguration": {"Enabled": True},
            "ProcessingConfiguration": {
                "Enabled": True,
                "Processors": [{"Type": "MetadataExtraction", "Parameters": [query, engine]}],
            },
        },
    )
