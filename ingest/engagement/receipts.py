"""Time receipts (docs/rules.md, rule 16). A device that names itself gets one with every answer.

A receipt that a batch brings along opens a *stretch* (rules/engagement/offline.py): the time offline that it
covers. OfflineProver says what the receipt proves of the batch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from adapters import clock, settings
from adapters.engagement.stretch_store import StretchStore
from adapters.logs import Logger, error_summary
from adapters.platform.aws import Unavailable, client
from adapters.platform.keyed_hash import KeyedHash
from adapters.privacy.tombstones import ErasureCheck
from ingest.engagement.event_body import occurred_at_of
from ingest.web.caller import ApiError, Caller, caller_of
from rules.days import parse_moment, stamp
from rules.engagement.events import DeviceClock, InputRefused, is_late
from rules.engagement.offline import (
    NO_PROOF,
    OfflineProof,
    Receipt,
    Stretch,
    is_device,
    known_stretch,
    new_receipt,
    new_stretch,
    read_receipt,
    receipt_refusal,
)
from rules.privacy.tombstones import user_subject

DEVICE_HEADER, RECEIPT_HEADER = "streakline-device", "Streakline-Time-Receipt"

logger = Logger(service="receipts")


@cache
def receipt_keys(secret_arn: str) -> KeyedHash:
    """Return the keys that receipts are signed with; a process reads them once for all its parts."""
    return KeyedHash(lambda: client("secretsmanager"), secret_arn)


def device_of(event: Mapping[str, Any]) -> str:
    """Return the device that a request names; "" if it names none, or not as a device may be named."""
    device = str((event.get("headers") or {}).get(DEVICE_HEADER) or "")
    return device if is_device(device) else ""


def with_receipt(
    answer: dict[str, Any], event: Mapping[str, Any], settings_class: type[Any]
) -> dict[str, Any]:
    """Return an answer, with a receipt for the caller's device.

    settings_class: the function's settings, which have `receipt_secret_arn`. Servers get no receipt: they
    need none. Neither does an answer wait for keys that cannot be read.
    """
    device = device_of(event)
    if not device:
        return answer
    try:
        caller = caller_of(event)
        if caller.is_server:
            return answer
        keys = receipt_keys(settings.read_settings(settings_class).receipt_secret_arn)
        receipt = new_receipt(keys.ring.keys[0], caller.user_id, device, clock.now())
    except ApiError:
        return answer
    except (*Unavailable, ValueError) as error:
        logger.warning("no receipt was given", extra={"error": error_summary(error)})
        return answer
    return {**answer, "headers": {**answer.get("headers", {}), RECEIPT_HEADER: receipt}}


@dataclass(frozen=True, slots=True)
class BatchOrigin:
    """Who sends a batch, from which device ("": it names none), when, and by what clock."""

    caller: Caller
    device: str
    now: datetime
    clock: DeviceClock


class OfflineProver:
    """Checks receipts, and keeps which stretches they were used for."""

    def __init__(self, keys: KeyedHash, stretches: StretchStore, erased: ErasureCheck) -> None:
        self._keys, self._stretches, self._erased = keys, stretches, erased

    def proof(self, receipt_text: str | None, bodies: Sequence[Any], origin: BatchOrigin) -> OfflineProof:
        """Return what a batch proves. Raises what the stores raise, and 503 if the keys cannot be read."""
        caller = origin.caller
        if receipt_text is None or caller.is_server or not _has_late(bodies, origin):
            return NO_PROOF
        try:
            receipt = read_receipt(receipt_text, self._every_key(), caller.user_id, origin.device)
            if self._erased.forbids(user_subject(caller.user_id), stamp(receipt.issued_at)):
                raise receipt_refusal("was given before the user was erased")
            stretch, used = self._stretches.find_or_begin(
                caller.user_id,
                lambda earlier: self._choose_stretch(receipt, earlier, origin, bodies),
                origin.now,
            )
        except InputRefused as refused:
            logger.warning("refused", extra={"user_id": caller.user_id, "reason": refused.reason})
            return OfflineProof(refused=refused)
        return OfflineProof(stretch, used)

    def _every_key(self) -> tuple[str, ...]:
        """Return the keys that a receipt may be signed with. Raises 503 if they cannot be read."""
        try:
            ring = self._keys.ring
        except ValueError as error:
            logger.exception("the keys of receipts cannot be read")
            raise ApiError(503, "unavailable", "try again", headers={"Retry-After": "60"}) from error
        return (*ring.keys, ring.next) if ring.next else ring.keys

    def _choose_stretch(
        self, receipt: Receipt, earlier: Sequence[Stretch], origin: BatchOrigin, bodies: Sequence[Any]
    ) -> tuple[Stretch, bool]:
        """Return the receipt's stretch, and whether it is new. earlier: the user's stretches."""
        user_id = origin.caller.user_id

        def is_unanswered(stretch: Stretch) -> bool:
            """Whether the batch repeats events of a stretch, because the device did not get the answer."""
            sent = {body.get("idempotency_key") for body in bodies if isinstance(body, dict)}
            return not sent.isdisjoint(self._stretches.keys_of(user_id, stretch))

        if known := known_stretch(receipt, earlier, origin.now, is_unanswered):
            return known, False
        contacts = self._stretches.contacts(user_id, receipt.issued_at, origin.now)
        return new_stretch(receipt, earlier, contacts, origin.now), True


def _has_late(bodies: Iterable[Any], origin: BatchOrigin) -> bool:
    for body in bodies:
        try:
            occurred = parse_moment(occurred_at_of(body, origin.clock)).utc
        except (InputRefused, KeyError, TypeError):
            continue  # it is refused later, by name
        if is_late(occurred, origin.now):
            return True
    return False
