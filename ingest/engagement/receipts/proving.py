"""Finds out what the receipt of a batch proves. Only a batch with late events asks anything (rule 16)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.engagement.stretch_store import StretchStore
from adapters.logs import Logger
from adapters.platform.keyed_hash import KeyedHash
from adapters.privacy.tombstones import Erased
from ingest.engagement.incoming_events import occurred_at_of
from ingest.web.caller import ApiError, Caller
from rules.days import parse_moment, stamp
from rules.engagement.events import DeviceClock, InputRefused, is_late
from rules.engagement.offline import (
    NO_PROOF,
    Proof,
    Receipt,
    Stretch,
    known_stretch,
    new_stretch,
    read_receipt,
    receipt_refusal,
)
from rules.privacy.tombstones import user_subject

logger = Logger(service="receipts")


@dataclass(frozen=True, slots=True)
class Sending:
    """Who sends a batch, from which device ("": it names none), when, and by what clock."""

    caller: Caller
    device: str
    now: datetime
    clock: DeviceClock


class Prover:
    """Checks receipts, and keeps which stretches they were used for."""

    def __init__(self, keys: KeyedHash, stretches: StretchStore, erased: Erased) -> None:
        self._keys, self._stretches, self._erased = keys, stretches, erased

    def proof(self, receipt: str | None, bodies: Sequence[Any], sending: Sending) -> Proof:
        """Return what a batch proves. Raises what the stores raise, and 503: without them nobody can tell."""
        caller = sending.caller
        if receipt is None or caller.is_server or not _has_late(bodies, sending):
            return NO_PROOF
        try:
            found = read_receipt(receipt, self._every_key(), caller.user_id, sending.device)
            self._check_erased(caller.user_id, found)
            stretch, used = self._stretches.of(
                caller.user_id, lambda known: self._stretch(found, known, sending, bodies), sending.now
            )
        except InputRefused as refused:
            logger.warning("refused", extra={"user_id": caller.user_id, "reason": refused.reason})
            return Proof(refused=refused)
        return Proof(stretch, used)

    def _every_key(self) -> tuple[str, ...]:
        try:
            ring = self._keys.ring
        except ValueError as error:
            logger.exception("the keys of receipts cannot be read")
            raise ApiError(503, "unavailable", "try again", headers={"Retry-After": "60"}) from error
        return (*ring.keys, ring.next) if ring.next else ring.keys

    def _stretch(
        self, receipt: Receipt, used: Sequence[Stretch], sending: Sending, bodies: Sequence[Any]
    ) -> tuple[Stretch, bool]:
        """Return the receipt's stretch, and whether it is new."""
        user_id = sending.caller.user_id

        def is_unanswered(over: Stretch) -> bool:
            sent = {body.get("idempotency_key") for body in bodies if isinstance(body, dict)}
            return not sent.isdisjoint(self._stretches.keys_of(user_id, over))

        if known := known_stretch(receipt, used, sending.now, is_unanswered):
            return known, False
        contacts = self._stretches.contacts(user_id, receipt.issued_at, sending.now)
        return new_stretch(receipt, used, contacts, sending.now), True

    def _check_erased(self, user_id: str, receipt: Receipt) -> None:
        """Raise InputRefused for a receipt that was given before its user was erased."""
        if self._erased.forbids(user_subject(user_id), stamp(receipt.issued_at)):
            raise receipt_refusal("was given before the user was erased")


def _has_late(bodies: Iterable[Any], sending: Sending) -> bool:
    for body in bodies:
        try:
            occurred = parse_moment(occurred_at_of(body, sending.clock)).utc
        except (InputRefused, KeyError, TypeError):
            continue  # it is refused later, by name
        if is_late(occurred, sending.now):
            return True
    return False
