"""`streakline key`: another key for the hashes of people, or for time receipts (rules/key_ring.py).

It prints no key.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import click

from local.command import command, option
from local.stack import Stack
from rules.days import stamp, unstamp
from rules.engagement.offline import RECEIPT_AGE_MAX
from rules.key_ring import PROMOTED_AFTER, KeyRing, announce_key, from_text, promote_key, retire_key, to_text
from rules.questions.questions import OPEN_MAX

KEY_BYTES = 48
# So long after a promotion, questions may be open that were answered under the older keys.
NEEDED_FOR = OPEN_MAX + PROMOTED_AFTER


@dataclass(frozen=True, slots=True)
class Keys:
    """Some keys: the output with their secret, what they are for, and for how long older ones are needed."""

    output: str
    purpose: str
    needed_for: timedelta


PEOPLE = Keys("FingerprintSecretId", "questions", NEEDED_FOR)
# So long a receipt that an older key signed may come back.
RECEIPTS = Keys("ReceiptSecretId", "receipts", RECEIPT_AGE_MAX + PROMOTED_AFTER)

Step = Callable[[KeyRing, datetime, Keys], KeyRing]


def take(step: Step, stack: Stack, of: Keys) -> dict[str, object]:
    """Take one step; returns the keys' state. Raises StepRefused, which says from when on it can be taken."""
    client, name = stack.client("secretsmanager"), stack.output(of.output, of.purpose)
    found = client.get_secret_value(SecretId=name)
    # Operators' clocks differ. All steps go by the clock of Secrets Manager.
    now = parsedate_to_datetime(found["ResponseMetadata"]["HTTPHeaders"]["date"])
    before = from_text(found["SecretString"])
    after = step(before, now, of)
    if after != before:
        client.put_secret_value(SecretId=name, SecretString=to_text(after))
    return _ring_view(after, of)


def _command(name: str, text: str, step: Step) -> click.Command:
    @option("--receipts", is_flag=True, help="the keys of time receipts, in place of fingerprints'")
    def made(stack: Stack, receipts: bool) -> Any:
        return take(step, stack, RECEIPTS if receipts else PEOPLE)

    made.__doc__ = text
    return command(f"key {name}", f"key {name} --receipts")(made)


show_keys = _command("show", "Say how far a replacement is.", lambda ring, _, __: ring)
announce = _command(
    "announce",
    "Make the next key, and let every function learn it.",
    lambda ring, now, _: announce_key(ring, secrets.token_urlsafe(KEY_BYTES), now),
)
promote = _command("promote", "Use the key that was announced.", lambda ring, now, _: promote_key(ring, now))
retire = _command(
    "retire", "Forget the older keys.", lambda ring, now, of: retire_key(ring, of.needed_for, now)
)


def _ring_view(ring: KeyRing, of: Keys) -> dict[str, object]:
    is_several = len(ring.keys) > 1
    return {
        "keys": len(ring.keys),
        "is_announced": ring.next is not None,
        "promote_from": _after(ring.announced_at, PROMOTED_AFTER) if ring.next else None,
        "retire_from": _after(ring.promoted_at, of.needed_for) if is_several else None,
    }


def _after(since: str, wait: timedelta) -> str:
    return stamp(unstamp(since) + wait)
