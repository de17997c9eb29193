"""A DynamoDB engine of its own for a test process: the emulator, without functions, on a free port."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config

from local.processes import free_port
from local.tools import tool
from tests.template import table_definition

TABLES = ("UserStreaks", "BPEvents", "DailyActivity", "RewardsLedger", "IdempotencyKeys")


@dataclass(frozen=True)
class Engine:
    """A running engine with the engagement tables; names are the logical ids."""

    endpoint: str
    queue_url: str

    def client(self, service: str) -> Any:
        config = Config(retries={"total_max_attempts": 2}, max_pool_connections=70)
        return boto3.client(  # type: ignore[call-overload]
            service,
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=config,
        )

    def environment(self, redis_url: str = "") -> dict[str, str]:
        """The functions' settings."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "USER_STREAKS_TABLE": "UserStreaks",
            "BP_EVENTS_TABLE": "BPEvents",
            "DAILY_ACTIVITY_TABLE": "DailyActivity",
            "REWARDS_LEDGER_TABLE": "RewardsLedger",
            "IDEMPOTENCY_KEYS_TABLE": "IdempotencyKeys",
            "PAYLOAD_BUCKET": "payloads",
            "REDIS_URL": redis_url,
            "POINT_BOOSTS": "[]",
            "RATE_LIMIT_PER_MINUTE": "1000000",
            "INDEX_IDEMPOTENCY_KEYS": "false",
            "FAILURE_QUEUE_URL": self.queue_url,
            "LEADERBOARD_SHARDS": "2",
            "WRITERS": "1",
            "POWERTOOLS_LOG_LEVEL": "CRITICAL",
            "POWERTOOLS_SERVICE_NAME": "test",
        }


def _healthy(port: int) -> bool:
    with (
        contextlib.suppress(OSError),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=1) as answer,
    ):
        return bool(answer.status == 200)
    return False


@contextlib.contextmanager
def running() -> Iterator[Engine]:
    """Start an engine and its tables; it is gone afterwards."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **os.environ,
            "GATEWAY_PORT": str(port),
            "BIND_HOST": "127.0.0.1",
            "LOG_LEVEL": "ERROR",
            "TMPDIR": folder,
            "STATE_DIR": folder,
        }
        process = subprocess.Popen(
            [tool("ministack")], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            deadline = time.monotonic() + 60
            while not _healthy(port):
                assert process.poll() is None, "the engine died"
                assert time.monotonic() < deadline, "the engine did not start"
                time.sleep(0.1)
            endpoint = f"http://127.0.0.1:{port}"
            engine = Engine(endpoint, "")
            dynamodb = engine.client("dynamodb")
            for name in TABLES:
                dynamodb.create_table(**table_definition(name, name))
            engine.client("s3").create_bucket(Bucket="payloads")
            queue = engine.client("sqs").create_queue(QueueName="failures")["QueueUrl"]
            yield Engine(endpoint, queue)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
