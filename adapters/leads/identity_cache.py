"""Remembers for an hour whose identities are, so that the everyday event does not need PostgreSQL.

| key | holds | lives |
|---|---|---|
| identity:{digest of organization and identities} | lead, leaf and root, as JSON | 1 h |

Redis is never the truth. A cached leaf stays right: verified identities keep their lead, and leaves their
events. A cached root may be stale, as the root stored with any event may be. An answer is not cached
unless its identities are verified: a device's lead changes when the device becomes shared, and what
somebody claims becomes another's who proves it. Nor is it cached while changes are to be announced,
because the next event must ask PostgreSQL for them again.
"""

import hashlib
import json
import time
from collections.abc import Iterable
from typing import Any

from adapters.leads.identity_records import Resolution
from adapters.platform.redis import Command, Redis, RedisError
from rules.leads.identity import Identity, considered_identities

KEPT_SECONDS = 3600
RETRY_AFTER_SECONDS = 5


class IdentityCache:
    """The cache of one process. url: "" if there is no Redis."""

    def __init__(self, url: str) -> None:
        self._redis = Redis(url) if url else None
        self._down_until = 0.0

    def get(self, organization_id: str, identities: Iterable[Identity]) -> Resolution | None:
        """Return what was remembered of exactly these identities; None if nothing was, or Redis fails."""
        key = _key(organization_id, identities)
        text = self._run(["GET", key]) if key else None
        try:
            return Resolution(*_three(json.loads(text))) if text else None
        except (TypeError, ValueError):
            return None  # Written by another version of this code.

    def remember(self, organization_id: str, identities: Iterable[Identity], resolution: Resolution) -> None:
        """Keep an answer for an hour, unless it is of a kind that is not cached."""
        key = _key(organization_id, identities)
        if key and not resolution.changes:
            known = [resolution.lead_id, resolution.leaf, resolution.root_id]
            self._run(["SET", key, json.dumps(known), "EX", KEPT_SECONDS])

    def _run(self, command: Command) -> Any:
        if self._redis is None or time.monotonic() < self._down_until:
            return None
        try:
            return self._redis.call(*command)
        except RedisError:
            self._down_until = time.monotonic() + RETRY_AFTER_SECONDS
            return None


def _three(held: Any) -> tuple[int, str, str]:
    lead_id, leaf, root_id = held
    return lead_id, leaf, root_id


def _key(organization_id: str, identities: Iterable[Identity]) -> str | None:
    ordered = considered_identities(identities)
    if not ordered or not (ordered[0].kind.is_strong and ordered[0].is_verified):
        return None
    parts = [organization_id, *([each.channel, each.external_id] for each in ordered)]
    return f"identity:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]}"
