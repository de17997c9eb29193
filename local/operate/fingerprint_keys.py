"""`streakline key`: replaces the keys of people's hashes, or those of time receipts, step by step.

A replacement is announced, promoted and at last completed by retiring the oldest key (rules/key_ring.py). No
command prints a key.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from local.command import command, option
from local.stack import Stack
from rules.days import stamp, unstamp
from rules.engagement.offline import RECEIPT_AGE_MAX
from rules.key_ring import PROMOTED_AFTER, KeyRing, announce_key, from_text, promote_key, retire_key, to_text
from rules.parts import said

KEY_BYTES = 48
# For so long after a promotion, something of a part may be open that was begun under the older keys.
NEEDED_FOR = max(said("fingerprints_needed"), default=timedelta()) + PROMOTED_AFTER


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a ring of keys is for."""

    output: str  # the stack's output that names the secret
    part: str  # which part of a stack has it, for a sentence
    needed_for: timedelta  # how long after a promotion the older keys are needed


PEOPLE = Purpose("FingerprintSecretId", "fingerprints", NEEDED_FOR)
# For so long a receipt that an older key signed may come back.
RECEIPTS = Purpose("ReceiptSecretId", "receipts", RECEIPT_AGE_MAX + PROMOTED_AFTER)

Step = Callable[[KeyRing, datetime], KeyRing]
receipts_option = option(
    "--receipts", is_flag=True, help="the keys of time receipts, in place of fingerprints'"
)


@command("key show", "key show --receipts")
@receipts_option
def show_keys(stack: Stack, receipts: bool) -> Any:
    """Say how far a replacement is."""
    return take_step(stack, _purpose(receipts), lambda ring, _: ring)


@command("key announce", "key announce --receipts")
@receipts_option
def announce(stack: Stack, receipts: bool) -> Any:
    """Make the next key, and let every function learn it."""
    key = secrets.token_urlsafe(KEY_BYTES)
    return take_step(stack, _purpose(receipts), lambda ring, now: announce_key(ring, key, now))


@command("key promote", "key promote --receipts")
@receipts_option
def promote(stack: Stack, receipts: bool) -> Any:
    """Use the key that was announced."""
    return take_step(stack, _purpose(receipts), promote_key)


@command("key retire", "key retire --receipts")
@receipts_option
def retire(stack: Stack, receipts: bool) -> Any:
    """Forget the oldest key."""
    purpose = _purpose(receipts)
    return take_step(stack, purpose, lambda ring, now: retire_key(ring, purpose.needed_for, now))


def take_step(stack: Stack, purpose: Purpose, step: Step) -> dict[str, object]:
    """Take one step, and return how far the replacement is.

    Raises StepRefused, which says from when on the step can be taken.
    """
    client, name = stack.client("secretsmanager"), stack.output(purpose.output, purpose.part)
    answer = client.get_secret_value(SecretId=name)
    # Operators' clocks differ. All steps go by the clock of Secrets Manager.
    now = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    before = from_text(answer["SecretString"])
    after = step(before, now)
    if after != before:
        client.put_secret_value(SecretId=name, SecretString=to_text(after))
    return _progress(after, purpose)


def _purpose(receipts: bool) -> Purpose:
    return RECEIPTS if receipts else PEOPLE


def _progress(ring: KeyRing, purpose: Purpose) -> dict[str, object]:
    has_older_keys = len(ring.keys) > 1
    return {
        "keys": len(ring.keys),
        "is_announced": ring.next is not None,
        "promote_from": _instant_after(ring.announced_at, PROMOTED_AFTER) if ring.next else None,
        "retire_from": _instant_after(ring.promoted_at, purpose.needed_for) if has_older_keys else None,
    }


def _instant_after(instant: str, wait: timedelta) -> str:
    return stamp(unstamp(instant) + wait)
