"""`streakline rotate-key`: another key for the hashes of people (rules/key_ring.py). Prints no key."""

import json
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from local.stack import Stack
from rules.days import stamp, unstamp
from rules.key_ring import (
    PROMOTED_AFTER,
    KeyRing,
    announced,
    from_text,
    promoted,
    retired,
    to_text,
)
from rules.questions.questions import OPEN_MAX

KEY_BYTES = 48
# So long after a promotion, questions may be open that were answered under the older keys.
NEEDED_FOR = OPEN_MAX + PROMOTED_AFTER

STEPS: dict[str, Callable[[KeyRing, datetime], KeyRing]] = {
    "show": lambda ring, _: ring,
    "announce": lambda ring, now: announced(ring, secrets.token_urlsafe(KEY_BYTES), now),
    "promote": promoted,
    "retire": lambda ring, now: retired(ring, NEEDED_FOR, now),
}


def run(action: str, stack: Stack) -> None:
    """Take one step, and print the keys' state as JSON; raises StepRefused, which says from when on."""
    client, name = stack.client("secretsmanager"), stack.output("FingerprintSecretId", "questions")
    found = client.get_secret_value(SecretId=name)
    # Operators' clocks differ. All steps go by the clock of Secrets Manager.
    now = parsedate_to_datetime(found["ResponseMetadata"]["HTTPHeaders"]["date"])
    before = from_text(found["SecretString"])
    after = STEPS[action](before, now)
    if after != before:
        client.put_secret_value(SecretId=name, SecretString=to_text(after))
    print(json.dumps(_told(after)))


def _told(ring: KeyRing) -> dict[str, object]:
    is_several = len(ring.keys) > 1
    return {
        "keys": len(ring.keys),
        "is_announced": ring.next is not None,
        "promote_from": _after(ring.announced_at, PROMOTED_AFTER) if ring.next else None,
        "retire_from": _after(ring.promoted_at, NEEDED_FOR) if is_several else None,
    }


def _after(since: str, wait: timedelta) -> str:
    return stamp(unstamp(since) + wait)
