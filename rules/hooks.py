"""Hooks and their secrets.

A hook is the door of one organization for one source of webhooks. An endpoint of outgoing webhooks has its
secrets as a hook has them, because they are rotated in the same way.
"""

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from rules.days import stamp, unstamp

OVERLAP = timedelta(hours=24)  # how long the former secret stays valid beside a new one
HONEYPOT = "_gotcha"
FORMS_PER_MINUTE = 10


@dataclass(frozen=True, slots=True)
class HookSecret:
    """What a sender signs with, or the public key of what it signs with."""

    value: str
    until: str | None = None  # a stamp, after which it is no longer valid; None: no end


@dataclass(frozen=True, slots=True)
class Hook:
    """The door of one organization for one source's webhooks, or for forms of its web pages."""

    organization_id: str
    source: str
    secrets: tuple[HookSecret, ...]  # the newest first
    # The web pages that may send forms, such as `https://acme.example`
    origins: tuple[str, ...] = ()
    thanks: str | None = None  # where a browser goes afterwards
    honeypot: str = HONEYPOT  # a field that people do not see, so only a robot fills it in
    per_minute: int = FORMS_PER_MINUTE  # how many forms one address may send

    def valid(self, now: datetime) -> tuple[str, ...]:
        """Return the values of the secrets that are valid, the newest first."""
        return tuple(
            secret.value for secret in self.secrets if secret.until is None or unstamp(secret.until) > now
        )


def rotate_hook(hook: Hook, value: str, now: datetime, overlap: timedelta = OVERLAP) -> Hook:
    """Return the hook with a new secret. The newest one so far stays valid for a while; others end now."""
    former = hook.valid(now)[:1] if overlap > timedelta() else ()
    ending = tuple(HookSecret(former_value, stamp(now + overlap)) for former_value in former)
    return replace(hook, secrets=(HookSecret(value), *ending))


def hook_text(hook: Hook) -> str:
    """Return a hook as its secret in Secrets Manager holds it: JSON."""
    return json.dumps(asdict(hook), separators=(",", ":"))


def hook_from_text(text: str) -> Hook:
    """Read what hook_text wrote; raises ValueError for anything else, without quoting it: it is secret."""
    try:
        fields: dict[str, Any] = json.loads(text)
        secrets = tuple(HookSecret(secret["value"], secret["until"]) for secret in fields["secrets"])
        return Hook(**{**fields, "secrets": secrets, "origins": tuple(fields["origins"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError("a hook's secret is not what `streakline hook` wrote") from None
