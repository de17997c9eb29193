"""A hook: the door of one organization for one source's webhooks, and the secrets that open it.

Two secrets are valid at once, so that a sender can change from one to the other without a gap. The older one
has an end.
"""

import hmac
import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from rules.days import stamp, unstamp

OVERLAP = timedelta(hours=24)
HONEYPOT = "_gotcha"
FORMS_PER_MINUTE = 10


@dataclass(frozen=True, slots=True)
class HookSecret:
    """What a sender signs with, or the public key of what it signs with. until: a stamp; None: no end."""

    value: str
    until: str | None = None


@dataclass(frozen=True, slots=True)
class Hook:
    """secrets: the newest first.

    Of forms: origins: web pages that may send them, such as `https://acme.example`. thanks: where a browser
    goes afterwards. honeypot: a field that people do not see, so only a robot fills it in. per_minute: how
    many forms one address may send.
    """

    organization_id: str
    source: str
    secrets: tuple[HookSecret, ...]
    origins: tuple[str, ...] = ()
    thanks: str | None = None
    honeypot: str = HONEYPOT
    per_minute: int = FORMS_PER_MINUTE

    def valid(self, now: datetime) -> tuple[str, ...]:
        """Return the secrets that are valid, the newest first."""
        return tuple(each.value for each in self.secrets if each.until is None or unstamp(each.until) > now)


def rotated(hook: Hook, value: str, now: datetime, overlap: timedelta = OVERLAP) -> Hook:
    """Return the hook with a new secret. The newest one so far stays valid for a while; others end now."""
    kept = [each for each in hook.secrets if each.value in hook.valid(now)][:1]
    ending = tuple(HookSecret(each.value, stamp(now + overlap)) for each in kept if overlap > timedelta())
    return replace(hook, secrets=(HookSecret(value), *ending))


def challenge_token(secret: str) -> str:
    """Return the token by which a vendor asks whether an address is ours.

    It travels in the query, where logs can see it, so it must not be the secret itself.
    """
    return hmac.digest(secret.encode(), b"hub.verify_token", "sha256").hex()[:32]


def to_text(hook: Hook) -> str:
    """Return a hook as its secret in Secrets Manager holds it: JSON."""
    held = {name: getattr(hook, name) for name in Hook.__slots__}
    secrets = [{"value": each.value, "until": each.until} for each in hook.secrets]
    return json.dumps(held | {"secrets": secrets}, separators=(",", ":"))


def from_text(text: str) -> Hook:
    """Read what to_text wrote; raises ValueError for anything else, without quoting it: it is secret."""
    try:
        held: dict[str, Any] = json.loads(text)
        secrets = tuple(HookSecret(each["value"], each["until"]) for each in held["secrets"])
        return Hook(**{**held, "secrets": secrets, "origins": tuple(held["origins"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError("a hook's secret is not what `streakline hook` wrote") from None
