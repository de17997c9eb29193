"""Which late events count because their device was offline (docs/rules.md, rule 16). Time receipts prove it.

A receipt is the service's signed statement that a device was in touch with it at an instant:
`1.ISSUED.OWNER.SIGNATURE`. ISSUED: milliseconds since 1970 by the service's clock. OWNER: a keyed hash of
user and device, so that a receipt in a log names nobody. SIGNATURE: over both, with the same key. Giving a
receipt out stores nothing.

A receipt that comes back with late events begins a *stretch*: the time offline that it covers. Example: a
receipt of June 1 comes back on June 10. Its stretch is from June 1 to June 10, and until June 13 the device
may send events of that time. In this order: receipts, stretches, and what a stretch proves of an event.
"""

import hmac
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rules.book.book import OfflineRules
from rules.days import DAY, EPOCH, stamp, unstamp
from rules.engagement.events import FUTURE_MAX, LATE_MAX, InputRefused

RECEIPT_PATTERN = re.compile(r"(1\.([0-9]{1,15})\.([0-9a-f]{16}))\.([0-9a-f]{32})")
# A device names itself by a random text of its own choice.
DEVICE = r"^[A-Za-z0-9_-]{8,64}$"
MILLISECOND = timedelta(milliseconds=1)
# A device that has just been in touch has 72 hours to send the events that it holds (rule 3).
OPEN_FOR = LATE_MAX
# Older receipts are refused. So a used receipt need not be remembered for longer than a year.
RECEIPT_AGE_MAX = timedelta(days=60)
YEAR = timedelta(days=365)
# So many stretches of a year are stored. Nobody comes back from the sea more often.
STRETCHES_MAX = 60


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt whose signature and owner are right."""

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
    content = f"1.{(now - EPOCH) // MILLISECOND}.{_owner(key, user_id, device)}"
    return f"{content}.{_signature(key, content)}"


def read_receipt(text: str, keys: Iterable[str], user_id: str, device: str) -> Receipt:
    """Return a receipt that one of the keys has signed for this user and device.

    Raises InputRefused for a forged receipt, and for one of another user or device.
    """
    if match := RECEIPT_PATTERN.fullmatch(text):
        content, issued, owner, signature = match.groups()
        for key in keys:
            if hmac.compare_digest(_signature(key, content), signature):
                if not hmac.compare_digest(_owner(key, user_id, device), owner):
                    raise receipt_refusal("is foreign: it was given to another user or device")
                return Receipt(EPOCH + int(issued) * MILLISECOND, owner)
    raise receipt_refusal("is forged: the service did not sign it, or has retired the key")


def _owner(key: str, user_id: str, device: str) -> str:
    text = f"receipt-owner\x1f{user_id}\x1f{device}"
    return hmac.digest(key.encode(), text.encode(), "sha256").hex()[:16]


def _signature(key: str, content: str) -> str:
    return hmac.digest(key.encode(), f"receipt\x1f{content}".encode(), "sha256").hex()[:32]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time during which a device of a user was offline."""

    owner: str  # the hash of user and device
    receipt_at: datetime  # when the receipt was issued that began it
    since: datetime  # the same, or later: when the user last was in touch by any device
    until: datetime  # when the receipt was used first
    open_until: datetime  # until when the device may send events of this time

    @property
    def text(self) -> str:
        """The stretch as it is stored."""
        instants = (self.receipt_at, self.since, self.until, self.open_until)
        return " ".join((self.owner, *map(stamp, instants)))

    @classmethod
    def of(cls, text: str) -> "Stretch":
        """Read a stored stretch."""
        owner, *instants = text.split()
        return cls(owner, *map(unstamp, instants))


def recent_stretches(used: Iterable[Stretch], now: datetime) -> list[Stretch]:
    """Return the stretches that ended within a year."""
    return [stretch for stretch in used if stretch.until > now - YEAR]


def open_stretch(
    receipt: Receipt,
    used: Sequence[Stretch],
    now: datetime,
    is_answer_lost: Callable[[Stretch], bool] = lambda _: False,
) -> Stretch | None:
    """Return the stretch of a receipt's device that is still open; None if the receipt begins a new one.

    used: the user's stretches. is_answer_lost: whether the device did not get the answer to the batch that
    ended a stretch. Then it has no newer receipt, and may use this one again. Raises InputRefused for a
    receipt that was used, is out of order or too old, and for one too many.
    """
    if receipt.issued_at < now - RECEIPT_AGE_MAX:
        raise receipt_refusal(f"has expired: it is more than {RECEIPT_AGE_MAX.days} days old")
    of_device = [stretch for stretch in used if stretch.owner == receipt.owner]
    newest = max(of_device, key=lambda stretch: (stretch.receipt_at, stretch.until), default=None)
    if newest:
        if receipt.issued_at < newest.receipt_at:
            at = stamp(newest.receipt_at)
            raise receipt_refusal(f"is out of order: a receipt of {at} of this device has been used")
        if now <= newest.open_until:
            return newest
        if receipt.issued_at == newest.receipt_at and not is_answer_lost(newest):
            raise receipt_refusal(f"was used before, at {stamp(newest.until)}: that stretch is over")
    if len(recent_stretches(used, now)) >= STRETCHES_MAX:
        raise receipt_refusal(f"is one too many: {STRETCHES_MAX} were used within a year")
    return None


def new_stretch(
    receipt: Receipt, used: Sequence[Stretch], contacts: Iterable[datetime], now: datetime
) -> Stretch:
    """Return the stretch that a receipt begins.

    contacts: when the user sent something after the receipt, by any device. From each contact on, the user
    had 72 hours to send all earlier events. So the stretch begins at the newest contact that is older than 72
    hours, and the first later contact limits until when it is open.
    """
    # If this very receipt was used before, its answer with the next receipt was lost. So it stands for that
    # one, and the stretch begins where the earlier one ended.
    ends_of_receipt = (
        stretch.until
        for stretch in used
        if (stretch.owner, stretch.receipt_at) == (receipt.owner, receipt.issued_at)
    )
    all_contacts = [*contacts, *(stretch.until for stretch in used)]
    old_contacts = (contact for contact in all_contacts if contact <= now - OPEN_FOR)
    since = max([receipt.issued_at, *ends_of_receipt, *old_contacts])
    first_later = min([now, *(contact for contact in all_contacts if contact > since)])
    return Stretch(receipt.owner, receipt.issued_at, since, now, first_later + OPEN_FOR)


@dataclass(frozen=True, slots=True)
class OfflineProof:
    """What the receipt of a batch proves of its late events."""

    stretch: Stretch | InputRefused  # of the receipt; or why the receipt proves nothing
    used: tuple[Stretch, ...] = ()  # all stretches of the user

    def check(self, occurred: datetime, offline: OfflineRules) -> str:
        """Return since when the device was offline (a stamp), for an event that is more than 72 hours old.

        offline: the rules of the book in force at the event. Raises InputRefused for an event that is not
        proven.
        """
        if isinstance(self.stretch, InputRefused):
            raise self.stretch
        since, until = self.stretch.since, self.stretch.until
        if occurred < since - FUTURE_MAX:
            reason = f"is more than 72 hours ago, and before {stamp(since)}, the last contact that is known"
        elif until - occurred > offline.days_max * DAY:
            reason = f"is more than {offline.days_max} days ago, which no receipt proves"
        elif offline_in_a_year(self.stretch, self.used, occurred, offline) > offline.days_a_year * DAY:
            reason = f"makes more than {offline.days_a_year} days offline within a year"
        else:
            return stamp(since)
        raise InputRefused("backfill_forbidden", "occurred_at", reason)


def offline_in_a_year(
    stretch: Stretch, used: Iterable[Stretch], occurred: datetime, offline: OfflineRules
) -> timedelta:
    """Return how long a user was offline within a year, with this stretch's time since an event.

    Another stretch counts at most the days that a receipt proves.
    """
    others = [other for other in recent_stretches(used, stretch.until) if other != stretch]
    spans = [(max(other.since, other.until - offline.days_max * DAY), other.until) for other in others]
    total, end = timedelta(), EPOCH
    for first, last in sorted([*spans, (occurred, stretch.until)]):
        total += max(last - max(first, end), timedelta())  # time that two of them share counts once
        end = max(end, last)
    return total
