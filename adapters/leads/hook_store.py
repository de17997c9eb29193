"""Hooks in Secrets Manager (HookStore), and how many forms an address has sent in a minute (FormCounts).

Each hook is one secret of the name `{prefix}{organization}/{source}`.
"""

import hmac
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from adapters.platform.items import encode_item
from adapters.platform.limits import network_of
from rules.leads.hooks import Hook, hook_from_text, hook_text

COUNT_SECONDS = 300  # how long a minute's count is kept


class NoHook(LookupError):
    """There is no hook of this organization and source."""


class HookExists(ValueError):
    """There is a hook of this organization and source already."""


class HookStore:
    """The hooks of one stack. prefix: how all their names begin, such as `streakline/hooks/`."""

    def __init__(self, secrets: Any, prefix: str) -> None:
        self._secrets, self._prefix = secrets, prefix

    def get(self, organization_id: str, source: str) -> Hook:
        """Read a hook; raises NoHook, and what Secrets Manager raises."""
        errors = self._secrets.exceptions
        try:
            answer = self._secrets.get_secret_value(SecretId=self._name(organization_id, source))
        except (errors.ResourceNotFoundException, errors.InvalidRequestException):
            # InvalidRequest: somebody has marked it for deletion, outside of `streakline`.
            raise NoHook(f"{organization_id}/{source}") from None
        return hook_from_text(answer["SecretString"])

    def create(self, hook: Hook) -> None:
        """Store a new hook; raises HookExists."""
        name = self._name(hook.organization_id, hook.source)
        try:
            self._secrets.create_secret(
                Name=name, SecretString=hook_text(hook), Description="A webhook of Streakline"
            )
        except self._secrets.exceptions.ResourceExistsException:
            raise HookExists(f"{hook.organization_id}/{hook.source}") from None

    def replace(self, hook: Hook) -> None:
        """Store a hook in place of the one that there is; raises NoHook."""
        try:
            self._secrets.put_secret_value(
                SecretId=self._name(hook.organization_id, hook.source), SecretString=hook_text(hook)
            )
        except self._secrets.exceptions.ResourceNotFoundException:
            raise NoHook(f"{hook.organization_id}/{hook.source}") from None

    def remove(self, organization_id: str, source: str) -> None:
        """Delete a hook for good, so that its name is free again; raises NoHook."""
        self.get(organization_id, source)
        self._secrets.delete_secret(
            SecretId=self._name(organization_id, source), ForceDeleteWithoutRecovery=True
        )

    def names(self) -> list[tuple[str, str]]:
        """Return organization and source of every hook of the stack, sorted.

        On AWS the list may be some minutes behind a new hook.
        """
        pages = self._secrets.get_paginator("list_secrets").paginate(
            Filters=[{"Key": "name", "Values": [self._prefix]}]
        )
        names = []
        for secret in (secret for page in pages for secret in page["SecretList"]):
            if secret["Name"].startswith(self._prefix):
                path = secret["Name"].removeprefix(self._prefix).replace("=3A", ":")
                organization, _, source = path.rpartition("/")
                names.append((organization, source))
        return sorted(names)

    def all(self) -> Iterator[Hook]:
        """Yield every hook of the stack, by name."""
        return (self.get(*name) for name in self.names())

    def _name(self, organization_id: str, source: str) -> str:
        """Return a hook's name. Secrets Manager allows no `:` in it, and organizations have no `=`."""
        return f"{self._prefix}{organization_id.replace(':', '=3A')}/{source}"


class FormCounts:
    """Counts how many forms an address has sent in a minute, for all processes together.

    The counts are in the table IdempotencyKeys. A hook's `#` keeps them apart from users, whose ids have
    none. An address is kept as a keyed digest, for a few minutes. One form costs one write unit.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def count(self, hook: Hook, address: str, now: datetime) -> int:
        """Count one form more; returns how many the address has sent in this minute."""
        second = int(now.timestamp())
        key = {
            "user_id": f"hook#{hook.organization_id}/{hook.source}#{_digest(hook, address)}",
            "idempotency_key": f"minute#{second // 60}",
        }
        answer = self._dynamodb.update_item(
            TableName=self._table,
            Key=encode_item(key),
            UpdateExpression="ADD #count :one SET #ttl = :ttl",
            ExpressionAttributeNames={"#count": "count", "#ttl": "ttl"},
            ExpressionAttributeValues=encode_item({":one": 1, ":ttl": second + COUNT_SECONDS}),
            ReturnValues="UPDATED_NEW",
        )
        return int(answer["Attributes"]["count"]["N"])


def _digest(hook: Hook, address: str) -> str:
    key = hook.secrets[0].value.encode()
    return hmac.digest(key, network_of(address).encode(), "sha256").hex()[:32]
