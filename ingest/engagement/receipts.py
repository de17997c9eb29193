"""Time receipts (docs/rules.md, rule 16): gives them out, and says what one proves that comes back.

`with_receipt` adds a receipt to each answer to a device that names itself. A batch of late events brings its
device's receipt back, and OfflineProver finds or begins its *stretch*: the time offline that it covers.
rules/engagement/offline.py decides about receipts and stretches, and later about each event.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from adapters import clock
from adapters.engagement.stretch_store import StretchStore
from adapters.logs import Logger, error_summary
from adapters.platform.aws import Unavailable
from adapters.platform.keyed_hash import KeyedHash
from adapters.privacy.tombstones import ErasureCheck
from ingest.engagement.event_body import occurred_at_of
from ingest.web.caller import ApiError, Caller, caller_of
from rules.days import stamp
from rules.engagement.events import InputRefused, is_late
from rules.engagement.offline import (
    OfflineProof,
    Receipt,
    Stretch,
    is_device,
    new_receipt,
    new_stretch,
    open_stretch,
    read_receipt,
    receipt_refusal,
)
from rules.privacy.tombstones import user_subject

DEVICE_HEADER, RECEIPT_HEADER = "streakline-device", "Streakline-Time-Receipt"

logger = Logger(service="receipts")


def device_of(event: Mapping[str, Any]) -> str:
    """Return the device that a request names; "" if it names none, or not as a device may be named."""
    device = str((event.get("headers") or {}).get(DEVICE_HEADER) or "")
    return device if is_device(device) else ""


def with_receipt(
    answer: dict[str, Any], event: Mapping[str, Any], receipt_keys: Callable[[], KeyedHash]
) -> dict[str, Any]:
    """Return an answer, with a receipt for the caller's device.

    receipt_keys: returns the keys that receipts are signed with. Servers get no receipt: they need none.
    Neither does an answer wait for keys that cannot be read.
    """
    device = device_of(event)
    if not device:
        return answer
    try:
        caller = caller_of(event)
        if caller.is_server:
            return answer
        receipt = new_receipt(receipt_keys().ring.keys[0], caller.user_id, device, clock.now())
    except ApiError:
        return answer
    except (*Unavailable, ValueError) as error:
        logger.warning("no receipt was given", extra={"error": error_summary(error)})
        return answer
    return {**answer, "headers": {**answer.get("headers", {}), RECEIPT_HEADER: receipt}}


@dataclass(frozen=True, slots=True)
class BatchWithReceipt:
    """A batch of events as it arrived, with a receipt of its device."""

    bodies: Sequence[Any]
    receipt: str
    caller: Caller
    device: str  # "": it names none
    arrived_at: datetime
    skew: timedelta  # of the device's clock


@dataclass(frozen=True, slots=True)
class OfflineProver:
    """Says what receipts prove, and stores the stretches that they begin."""

    keys: KeyedHash
    stretches: StretchStore
    erased: ErasureCheck

    def proof(self, batch: BatchWithReceipt) -> OfflineProof | None:
        """Return what a batch's receipt proves; None: none of its events needs one.

        Raises what the stores raise, and 503 if the keys cannot be read.
        """
        user_id = batch.caller.user_id
        if batch.caller.is_server or not _has_late_event(batch):
            return None
        try:
            receipt = read_receipt(batch.receipt, self._valid_keys(), user_id, batch.device)
            if self.erased.forbids(user_subject(user_id), stamp(receipt.issued_at)):
                raise receipt_refusal("was given before the user was erased")
            choose = partial(self._stretch_of, batch, receipt)
            stretch, used = self.stretches.find_or_begin(user_id, choose, batch.arrived_at)
        except InputRefused as refused:
            logger.warning("refused", extra={"user_id": user_id, "reason": refused.reason})
            return OfflineProof(refused)
        return OfflineProof(stretch, used)

    def _valid_keys(self) -> tuple[str, ...]:
        """Return the keys that a receipt may be signed with. Raises 503 if they cannot be read."""
        try:
            ring = self.keys.ring
        except ValueError as error:
            logger.exception("the keys of receipts cannot be read")
            raise ApiError(503, "unavailable", "try again", headers={"Retry-After": "60"}) from error
        return (*ring.keys, ring.next) if ring.next else ring.keys

    def _stretch_of(self, batch: BatchWithReceipt, receipt: Receipt, used: Sequence[Stretch]) -> Stretch:
        """Return the stretch of a batch's receipt: one of those that the user has used, or a new one."""
        user_id, now = batch.caller.user_id, batch.arrived_at

        def is_answer_lost(stretch: Stretch) -> bool:
            """Whether the batch repeats events of a stretch, as a device does that got no answer."""
            sent = {body.get("idempotency_key") for body in batch.bodies if isinstance(body, dict)}
            return not sent.isdisjoint(self.stretches.keys_of(user_id, stretch))

        if still_open := open_stretch(receipt, used, now, is_answer_lost):
            return still_open
        return new_stretch(receipt, used, self.stretches.contacts(user_id, receipt.issued_at, now), now)


def _has_late_event(batch: BatchWithReceipt) -> bool:
    for body in batch.bodies:
        try:
            _, occurred = occurred_at_of(body, batch.skew)
        except (InputRefused, KeyError, TypeError):
            continue  # it is refused later, by name
        if is_late(occurred.utc, batch.arrived_at):
            return True
    return False
