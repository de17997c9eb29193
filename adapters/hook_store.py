"""Hooks in Secrets Manager. Each hook is one secret of the name `{prefix}{organization}/{source}`."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from rules.hooks import Hook, hook_from_text, hook_text


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
        """Delete a hook and its replicas for good, so that its name is free again; raises NoHook."""
        self.get(organization_id, source)
        name = self._name(organization_id, source)
        delete = partial(self._secrets.delete_secret, SecretId=name, ForceDeleteWithoutRecovery=True)
        try:
            delete()
        except self._secrets.exceptions.InvalidParameterException:  # it has replicas, which must go first
            replicas = self._secrets.describe_secret(SecretId=name).get("ReplicationStatus", ())
            regions = [each["Region"] for each in replicas]
            self._secrets.remove_regions_from_replication(SecretId=name, RemoveReplicaRegions=regions)
            delete()

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
