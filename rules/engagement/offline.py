"""Which late events count, because their device is known to have been offline (rule 16): by time receipts,
the service's word that a device was in touch with it at an instant.

A receipt is `1.ISSUED.OWNER.SIGNATURE`. ISSUED: milliseconds since 1970 by the service's clock. OWNER: a
keyed hash of user and device, so that a receipt in a log names nobody. SIGNATURE: over both. Who has the key
checks it. Nothing is stored when a receipt is given out.
"""

import hmac
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rules.book.book import OfflineRules
from rules.days import EPOCH, stamp, unstamp
from rules.engagement.events import FUTURE_MAX, LATE_MAX, InputRefused

FORMAT = "1"
OWNER_DIGITS, SIGNATURE_DIGITS = 16, 32
LENGTH_MAX = 128
RECEIPT_PATTERN = re.compile(
    rf"1\.([0-9]{{1,15}})\.([0-9a-f]{{{OWNER_DIGITS}}})\.([0-9a-f]{{{SIGNATURE_DIGITS}}})"
)
# A device names itself by a random text of its own choice.
DEVICE = r"^[A-Za-z0-9_-]{8,64}$"
MILLISECOND = timedelta(milliseconds=1)
# A device that has just been in touch has 72 hours to send what it holds, as everybody has (rule 3).
OPEN_FOR = LATE_MAX
# Older receipts are refused, so what was used need not be known for longer than a year.
RECEIPT_AGE_MAX = timedelta(days=60)
YEAR = timedelta(days=365)
# This many stretches of a year are kept. Nobody comes back from the sea more often.
STRETCHES_MAX = 60
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt that was checked."""

    issued_at: datetime
    owner: str  # the hash of user and device


def receipt_refusal(reason: str) -> InputRefused:
    """Return the refusal of an event, because its batch's receipt proves nothing."""
    return InputRefused("receipt_refused", "receipt", reason)


def is_device(text: str) -> bool:
    """Whether a text may name a device."""
    return re.fullmatch(DEVICE, text, re.ASCII) is not None


def new_receipt(key: str, user_id: str, device: str, now: datetime) -> str:
    """Return a receipt for a user's device."""
    content = f"{FORMAT}.{(now - EPOCH) // MILLISECOND}.{_owner(key, user_id, device)}"
    return f"{content}.{_signature(key, content)}"


def read_receipt(text: str, keys: Iterable[str], user_id: str, device: str) -> Receipt:
    """Return what a receipt says, if one of the keys has signed it for this user and device.

    Raises InputRefused: it is forged, or foreign.
    """
    found = RECEIPT_PATTERN.fullmatch(text)
    key = found and next((key for key in keys if _is_signed(key, text)), None)
    if found is None or key is None:
        raise receipt_refusal("is forged: the service did not sign it, or has retired the key")
    if not hmac.compare_digest(_owner(key, user_id, device), found[2]):
        raise receipt_refusal("is foreign: it was given to another user or device")
    try:
        return Receipt(EPOCH + int(found[1]) * MILLISECOND, found[2])
    except OverflowError:
        raise receipt_refusal("is forged: its instant does not exist") from None


def _is_signed(key: str, text: str) -> bool:
    content, _, signature = text.rpartition(".")
    return hmac.compare_digest(_signature(key, content), signature)


def _owner(key: str, user_id: str, device: str) -> str:
    return _hmac_digits(key, f"receipt-owner\x1f{user_id}\x1f{device}", OWNER_DIGITS)


def _signature(key: str, content: str) -> str:
    return _hmac_digits(key, f"receipt\x1f{content}", SIGNATURE_DIGITS)


def _hmac_digits(key: str, text: str, digits: int) -> str:
    return hmac.digest(key.encode(), text.encode(), "sha256").hex()[:digits]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some time that a device of a user was offline."""

    owner: str  # the hash of user and device
    receipt_at: datetime  # of the receipt that began it
    since: datetime  # the same, or later: when the user last was in touch by any device
    until: datetime  # when the receipt was used first
    open_until: datetime  # until when events of it may come


def stretch_text(stretch: Stretch) -> str:
    """Write a stretch for its table."""
    instants = (stretch.receipt_at, stretch.since, stretch.until, stretch.open_until)
    return " ".join((stretch.owner, *map(stamp, instants)))


def stretch_from_text(text: str) -> Stretch:
    """Read what stretch_text wrote."""
    owner, *instants = text.split()
    return Stretch(owner, *map(unstamp, instants))


def known_stretch(
    receipt: Receipt,
    used: Sequence[Stretch],
    now: datetime,
    is_unanswered: Callable[[Stretch], bool] = lambda _: False,
) -> Stretch | None:
    """Return the stretch that a receipt belongs to, None if it begins one.

    used: the user's stretches. is_unanswered: whether the device does not know what became of the batch that
    ended a stretch, since it sends the same events again. Then it has no newer receipt: the answer was lost.
    Raises InputRefused for a receipt that was used, is out of order or too old, and for one too many.
    """
    if receipt.issued_at < now - RECEIPT_AGE_MAX:
        raise receipt_refusal(f"has expired: it is more than {RECEIPT_AGE_MAX.days} days old")
    own = [each for each in used if each.owner == receipt.owner]
    newest = max(own, key=lambda each: (each.receipt_at, each.until), default=None)
    if newest and receipt.issued_at < newest.receipt_at:
        at = stamp(newest.receipt_at)
        raise receipt_refusal(f"is out of order: a receipt of {at} of this device has been used")
    if newest and now <= newest.open_until:
        return newest
    if newest and receipt.issued_at == newest.receipt_at and not is_unanswered(newest):
        at = stamp(newest.until)
        raise receipt_refusal(f"was used before, at {at}: that stretch is over")
    if len(recent_stretches(used, now)) >= STRETCHES_MAX:
        raise receipt_refusal(f"is one too many: {STRETCHES_MAX} were used within a year")
    return None


def new_stretch(
    receipt: Receipt, used: Sequence[Stretch], contacts: Iterable[datetime], now: datetime
) -> Stretch:
    """Return the stretch that a receipt begins.

    contacts: when the user sent something after the receipt, by any device. Whoever was in touch had 72 hours
    from then on to send all that was before. A receipt that was used, and whose answer was lost, stands for
    the one that this answer had.
    """
    own = (each.until for each in used if (each.owner, each.receipt_at) == (receipt.owner, receipt.issued_at))
    every = [*contacts, *(each.until for each in used)]
    since = max([receipt.issued_at, *own, *(each for each in every if each <= now - OPEN_FOR)])
    first = min([now, *(each for each in every if each > since)])
    return Stretch(receipt.owner, receipt.issued_at, since, now, first + OPEN_FOR)


def recent_stretches(used: Iterable[Stretch], now: datetime) -> list[Stretch]:
    """Return the stretches that still matter: those of a year."""
    return [each for each in used if each.until > now - YEAR]


@dataclass(frozen=True, slots=True)
class OfflineProof:
    """What a batch proves of when its events happened."""

    stretch: Stretch | None = None  # that of its receipt
    used: tuple[Stretch, ...] = ()  # all stretches of the user
    refused: InputRefused | None = None  # why the receipt proves nothing

    def check(self, occurred: datetime, offline: OfflineRules) -> str:
        """Return since when the device was offline (a stamp), for an event that is more than 72 hours old.

        offline: what the book in force at the event says. Raises InputRefused for one that is not proven.
        """
        if self.refused or self.stretch is None:
            raise self.refused or receipt_refusal("is missing")
        since, until = self.stretch.since, self.stretch.until
        if occurred < since - FUTURE_MAX:
            raise _late_refusal(
                f"is more than 72 hours ago, and before {stamp(since)}, the last contact that is known"
            )
        if until - occurred > offline.days_max * DAY:
            raise _late_refusal(f"is more than {offline.days_max} days ago, which no receipt proves")
        if offline_in_a_year(self.stretch, self.used, occurred, offline) > offline.days_a_year * DAY:
            raise _late_refusal(f"makes more than {offline.days_a_year} days offline within a year")
        return stamp(since)


def offline_in_a_year(
    stretch: Stretch, used: Iterable[Stretch], occurred: datetime, offline: OfflineRules
) -> timedelta:
    """Return for how long a user was offline in a year, this stretch's time since an event included.

    Of another stretch no more is counted than could be proven.
    """
    others = [each for each in recent_stretches(used, stretch.until) if each != stretch]
    spans = [(max(each.since, each.until - offline.days_max * DAY), each.until) for each in others]
    return _total_length([*spans, (occurred, stretch.until)])


NO_PROOF = OfflineProof()


def _late_refusal(reason: str) -> InputRefused:
    return InputRefused("backfill_forbidden", "occurred_at", reason)


def _total_length(spans: Iterable[tuple[datetime, datetime]]) -> timedelta:
    """Return how long some spans are together. What two of them share is counted once."""
    total, end = timedelta(), None
    for first, last in sorted(spans):
        begin = first if end is None else max(first, end)
        total += max(last - begin, timedelta())
        end = last if end is None else max(end, last)
    return total
