"""Applies the migrations in sql/identity when the stack is created or updated (a custom resource)."""

import json
import urllib.request
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools import Logger

from adapters import settings
from adapters.platform.aws import client, pauses
from adapters.platform.migrations import migrate
from adapters.platform.postgres import Postgres, PostgresUnavailable
from adapters.settings.leads import MigrateSettings

RESOURCE_ID = "identity-schema"
REASON_CHARACTERS_MAX = 1000
# A cluster that sleeps takes 15 seconds to wake up.
CONNECT_ATTEMPTS = 8
ANSWER_SECONDS_MAX = 10

logger = Logger(service="migrate")


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> None:
    """Lambda entry: a CloudFormation request. It always sends an answer; without one the stack would hang."""
    answer = {
        "Status": "SUCCESS",
        "PhysicalResourceId": RESOURCE_ID,
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }
    try:
        if event["RequestType"] != "Delete":
            config = settings.read(MigrateSettings)
            answer["Data"] = {"Applied": ", ".join(run(config.identity_url, _password(config)))}
    except Exception as error:
        logger.exception("not migrated")
        reason = f"{type(error).__name__}: {error}"[:REASON_CHARACTERS_MAX]
        answer |= {"Status": "FAILED", "Reason": reason}
    _answer(event["ResponseURL"], answer)


def run(identity_url: str, password: Callable[[], str]) -> list[str]:
    """Apply the migrations as the owner of the schema; returns the names of those that were still missing."""
    postgres = Postgres(identity_url, password)
    try:
        _wake(postgres)
        connection = postgres.connection()
        connection.execute("SET statement_timeout = '60s'")
        applied = migrate(connection)
        logger.info("migrated", extra={"applied": applied})
        return applied
    finally:
        postgres.close()


def _wake(postgres: Postgres) -> None:
    for attempt in pauses(CONNECT_ATTEMPTS, base_seconds=1, longest_seconds=8):
        try:
            postgres.run(lambda each: each.execute("SELECT 1"))
            return
        except PostgresUnavailable:
            if attempt == CONNECT_ATTEMPTS - 1:
                raise


def _password(config: MigrateSettings) -> Callable[[], str]:
    def read() -> str:
        found = client("secretsmanager").get_secret_value(SecretId=config.admin_secret_arn)
        return str(json.loads(found["SecretString"])["password"])

    return read


def _answer(url: str, answer: dict[str, Any]) -> None:
    # CloudFormation has signed the URL for an empty content type.
    request = urllib.request.Request(  # noqa: S310 (CloudFormation's own)
        url, json.dumps(answer).encode(), {"Content-Type": ""}, method="PUT"
    )
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS_MAX):  # noqa: S310 (likewise)
        pass
