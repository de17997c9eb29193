"""Gives a time receipt with every answer to a device that names itself (rule 16). It costs no read."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from adapters import clock
from adapters.logs import Logger, loggable
from adapters.platform.aws import Unavailable, client
from adapters.platform.keyed_hash import KeyedHash
from ingest.web.caller import ApiError, caller_of
from rules.engagement.offline import is_device, new_receipt

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
    answered: dict[str, Any], event: Mapping[str, Any], keys: Callable[[], KeyedHash]
) -> dict[str, Any]:
    """Return an answer, with a receipt for the caller's device.

    Servers get none: they need none. Neither does an answer wait for keys that cannot be read.
    """
    device = device_of(event)
    if not device:
        return answered
    try:
        caller = caller_of(event)
        if caller.is_server:
            return answered
        receipt = new_receipt(keys().ring.keys[0], caller.user_id, device, clock.now())
    except ApiError:
        return answered
    except (*Unavailable, ValueError) as error:
        logger.warning("no receipt was given", extra={"error": loggable(error)})
        return answered
    return {**answered, "headers": {**answered.get("headers", {}), RECEIPT_HEADER: receipt}}
