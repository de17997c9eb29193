"""The call that wakes the function that delivers."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from adapters.logs import Logger
from adapters.outgoing.notification_items import EndpointShare
from adapters.platform.aws import Unavailable

logger = Logger(service="waking")


class DeliveryInvoker:
    """Wakes the function that delivers. If a call fails, the next sweep delivers."""

    def __init__(self, functions: Callable[[], Any], name: str) -> None:
        """functions: returns the client of Lambda. name: the function's."""
        self._functions, self._name = functions, name

    def wake(self, shares: Iterable[EndpointShare]) -> None:
        """Let the lanes of these shares of endpoints be delivered now, without waiting for that."""
        for endpoint_id, share in sorted(set(shares)):
            payload = json.dumps({"endpoint_id": endpoint_id, "share": share})
            try:
                self._functions().invoke(FunctionName=self._name, InvocationType="Event", Payload=payload)
            except Unavailable:
                logger.warning("not woken", extra={"endpoint_id": endpoint_id}, exc_info=True)
