"""Applies the migrations in sql/identity when the stack is created or updated (a custom resource).

Then the application's role of the Data API gets the password that its secret holds by now: after a rotation
of that secret, deploy again.
"""

import json
from typing import Any

from adapters import settings
from adapters.logs import Logger
from adapters.platform.aws import client, pauses
from adapters.platform.custom_resources import tell
from adapters.postgresql.migrations import migrate
from adapters.postgresql.postgres import database
from adapters.postgresql.sql import Database, PostgresUnavailable
from adapters.settings.leads import MigrateSettings
from ingest.leads.identity_password import set_password

RESOURCE_ID = "identity-schema"
# A cluster that sleeps takes 15 seconds to wake up.
CONNECT_ATTEMPTS = 8

logger = Logger(service="migrate")


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> None:
    """Lambda entry: a CloudFormation request. It always sends an answer."""
    data, failed = {}, ""
    try:
        if event["RequestType"] != "Delete":
            data = {"Applied": ", ".join(run(settings.read(MigrateSettings)))}
    except Exception as error:
        logger.exception("not migrated")
        failed = f"{type(error).__name__}: {error}"
    tell(event, RESOURCE_ID, data, failed)


def run(config: MigrateSettings) -> list[str]:
    """Apply the migrations as the owner of the schema; returns the names of those that were still missing."""
    owned = database(config.identity_url, lambda: _secret(config.admin_secret_arn)["password"])
    try:
        _wake(owned)
        applied = owned.run(migrate)
        logger.info("migrated", extra={"applied": applied})
        if config.app_secret_arn:
            secret = _secret(config.app_secret_arn)
            owned.run(lambda each: set_password(each, secret))
        return applied
    finally:
        owned.close()


def _wake(owned: Database) -> None:
    for attempt in pauses(CONNECT_ATTEMPTS, base_seconds=1, longest_seconds=8):
        try:
            owned.run(lambda each: each.execute("SELECT 1"))
            return
        except PostgresUnavailable:
            if attempt == CONNECT_ATTEMPTS - 1:
                raise


def _secret(arn: str) -> dict[str, str]:
    """Return a secret of a database user: {"username", "password"}."""
    found = client("secretsmanager").get_secret_value(SecretId=arn)
    secret: dict[str, str] = json.loads(found["SecretString"])
    return secret
