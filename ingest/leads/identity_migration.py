"""Applies the migrations in sql/identity when the stack is created or updated (a custom resource).

Then the application's role of the Data API gets the password that its secret holds by now. After a rotation
of that secret an operator calls the function (docs/runbook.md).
"""

import base64
import hashlib
import hmac
import json
import os
from dataclasses import dataclass
from typing import Any

from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.aws import pauses
from adapters.platform.custom_resources import send_response
from adapters.postgresql.migrations import apply_migrations
from adapters.postgresql.postgres import database
from adapters.postgresql.sql import Database, PostgresUnavailable

ROLE = "streakline_leads_api"
ITERATIONS = 4096  # PostgreSQL's own
RESOURCE_ID = "identity-schema"
# A cluster that sleeps takes 15 seconds to wake up.
CONNECT_ATTEMPTS = 8

logger = Logger(service="migrate")


@dataclass(frozen=True, slots=True)
class MigrateSettings:
    """Settings of this function."""

    identity_url: str  # as in LeadsSettings, with the role that owns the schema
    admin_secret_arn: str  # the secret with the owner's password, if identity_url has none
    app_secret_arn: str  # the secret by which the role streakline_leads_api signs in to the Data API


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, str]:
    """Lambda entry: a CloudFormation request, which always gets an answer; or, by an operator, {}.

    The operator's answer is {"Applied": names of migrations}, or an error.
    """
    if "ResponseURL" not in event:
        return {"Applied": ", ".join(run(*_parts()))}
    data, failed = {}, ""
    try:
        if event["RequestType"] != "Delete":
            data = {"Applied": ", ".join(run(*_parts()))}
    except Exception as error:
        logger.exception("not migrated")
        failed = f"{type(error).__name__}: {error}"
    send_response(event, RESOURCE_ID, data, failed)
    return {}


@bootstrap(MigrateSettings)
def _parts(config: MigrateSettings, client: ClientOf) -> tuple[MigrateSettings, ClientOf]:
    return config, client


def run(config: MigrateSettings, client: ClientOf) -> list[str]:
    """Apply the migrations as the owner of the schema; returns the names of those that were still missing."""
    owned = database(config.identity_url, lambda: _secret(client, config.admin_secret_arn)["password"])
    try:
        _wake(owned)
        applied = owned.run(apply_migrations)
        logger.info("migrated", extra={"applied": applied})
        secret = _secret(client, config.app_secret_arn)
        owned.run(lambda connection: set_password(connection, secret))
        return applied
    finally:
        owned.close()


def _wake(owned: Database) -> None:
    for attempt in pauses(CONNECT_ATTEMPTS, base_seconds=1, longest_seconds=8):
        try:
            owned.run(lambda connection: connection.execute("SELECT 1"))
            return
        except PostgresUnavailable:
            if attempt == CONNECT_ATTEMPTS - 1:
                raise


def _secret(client: ClientOf, arn: str) -> dict[str, str]:
    """Return a secret of a database user: {"username", "password"}."""
    answer = client("secretsmanager").get_secret_value(SecretId=arn)
    secret: dict[str, str] = json.loads(answer["SecretString"])
    return secret


def set_password(connection: Any, secret: dict[str, str]) -> None:
    """Let the role sign in by the password of a secret, {"username", "password"}.

    PostgreSQL gets a SCRAM verifier of the password, never the password itself. So neither a log of
    statements nor an error's text can show it. The verifier has no character that needs quoting, but for the
    colons: the Data API might take what follows one for a parameter's name.
    Raises ValueError if the secret is another user's, or if its password is no printable ASCII.
    """
    if secret["username"] != ROLE:
        raise ValueError(f"the secret's username must be {ROLE}, not {secret['username']}")
    quoted = scram_verifier(secret["password"], os.urandom(16)).replace(":", r"\x3A")
    connection.execute(f"ALTER ROLE {ROLE} PASSWORD E'{quoted}'")


def scram_verifier(password: str, salt: bytes) -> str:
    """Return what PostgreSQL keeps of a password (RFC 5803)."""
    if not (password and password.isascii() and password.isprintable()):
        raise ValueError("the secret's password must be printable ASCII")
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    encoded = [base64.b64encode(digest).decode() for digest in (salt, stored, server)]
    return "SCRAM-SHA-256${}:{}${}:{}".format(ITERATIONS, *encoded)
