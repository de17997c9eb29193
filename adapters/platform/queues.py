"""Serves an SQS batch: each message is done, comes again, or is kept in a failure queue."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from aws_lambda_powertools import Logger

from adapters.platform.failures import FailureQueue, partial_failures


class Poison(ValueError):
    """No attempt will ever get past this message; the text says why."""


def serve(  # noqa: PLR0913, PLR0917 (what comes, and what it is served with)
    event: Mapping[str, Any],
    handle: Callable[[Any], object],
    failures: FailureQueue,
    consumer: str,
    now: datetime,
    logger: Logger,
) -> dict[str, Any]:
    """Hand each message's JSON body to `handle`; returns the batch's partial failures.

    Poison is kept in the failure queue with its reason, and is done. After any other exception, also one from
    keeping poison, the message comes again. After too many attempts (template.yaml) SQS itself moves it to
    the failure queue. On a redrive what fails is reported with the reason, and stays there.
    """
    again: dict[str, str] = {}
    is_redrive = bool(event.get("streakline_redrive"))
    for record in event["Records"]:
        try:
            reason = _handle(record["body"], handle)
            if reason is not None and is_redrive:
                again[record["messageId"]] = reason
            elif reason is not None:
                failures.keep(consumer, [(record["body"], reason)], now)
        except Exception as error:
            logger.exception("to come again", extra={"message_id": record["messageId"]})
            again[record["messageId"]] = f"{type(error).__name__}: {error}" if is_redrive else ""
    logger.info("batch", extra={"messages": len(event["Records"]), "again": len(again)})
    return partial_failures(again)


def _handle(body: str, handle: Callable[[Any], object]) -> str | None:
    """Handle a message; returns why it is poison, if it is."""
    try:
        message = json.loads(body)
    except RecursionError:
        return "the message is nested too deeply"
    except ValueError as error:
        return f"the message is not JSON: {error}"
    try:
        handle(message)
    except Poison as reason:
        return str(reason)
    return None
