"""Time receipts: the service's word that a device was in touch with it at an instant (rule 16).

A receipt is `1.ISSUED.OWNER.SIGNATURE`. ISSUED: milliseconds since 1970 by the service's clock. OWNER: a
keyed hash of user and device, so that a receipt in a log names nobody. SIGNATURE: over both. Who has the key
checks it. Nothing is stored when a receipt is given out.
"""

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from rules.days import EPOCH
from rules.engagement.events import InputRefused

FORMAT = "1"
OWNER_DIGITS, SIGNATURE_DIGITS = 16, 32
LENGTH_MAX = 128
SHAPE = re.compile(rf"1\.([0-9]{{1,15}})\.([0-9a-f]{{{OWNER_DIGITS}}})\.([0-9a-f]{{{SIGNATURE_DIGITS}}})")
# A device names itself by a random text of its own choice.
DEVICE = r"^[A-Za-z0-9_-]{8,64}$"
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt that was checked. owner: the hash of user and device."""

    issued_at: datetime
    owner: str


def refusal(reason: str) -> InputRefused:
    """Return the refusal of an event, because its batch's receipt proves nothing."""
    return InputRefused("receipt_refused", "receipt", reason)


def is_device(text: str) -> bool:
    """Whether a text may name a device."""
    return re.fullmatch(DEVICE, text, re.ASCII) is not None


def written(key: str, user_id: str, device: str, now: datetime) -> str:
    """Return a receipt for a user's device."""
    told = f"{FORMAT}.{(now - EPOCH) // MILLISECOND}.{_owner(key, user_id, device)}"
    return f"{told}.{_signature(key, told)}"


def read(text: str, keys: Iterable[str], user_id: str, device: str) -> Receipt:
    """Return what a receipt says, if one of the keys has signed it for this user and device.

    Raises InputRefused: it is forged, or foreign.
    """
    found = SHAPE.fullmatch(text)
    key = found and next((key for key in keys if _is_signed(key, text)), None)
    if found is None or key is None:
        raise refusal("is forged: the service did not sign it, or has retired the key")
    if not hmac.compare_digest(_owner(key, user_id, device), found[2]):
        raise refusal("is foreign: it was given to another user or device")
    try:
        return Receipt(EPOCH + int(found[1]) * MILLISECOND, found[2])
    except OverflowError:
        raise refusal("is forged: its instant does not exist") from None


def _is_signed(key: str, text: str) -> bool:
    told, _, signature = text.rpartition(".")
    return hmac.compare_digest(_signature(key, told), signature)


def _owner(key: str, user_id: str, device: str) -> str:
    return _hashed(key, f"receipt-owner\x1f{user_id}\x1f{device}", OWNER_DIGITS)


def _signature(key: str, told: str) -> str:
    return _hashed(key, f"receipt\x1f{told}", SIGNATURE_DIGITS)


def _hashed(key: str, text: str, digits: int) -> str:
    return hmac.digest(key.encode(), text.encode(), "sha256").hex()[:digits]
