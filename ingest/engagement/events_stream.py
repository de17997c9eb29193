"""The Kinesis door: records of producers that IAM has let in."""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, islice
from typing import Any

from adapters import clock, settings
from adapters.logs import Logger, loggable
from adapters.platform.aws import client
from adapters.platform.failures import FailureQueue, LargeRecords, partial_failures
from adapters.platform.tables import chunks
from adapters.settings.event_doors import EventsStreamSettings
from ingest.engagement.accept import ERASED, Acceptor, AcceptResult, AcceptStatus
from ingest.engagement.kinesis_records import RecordPart, parts_of
from ingest.engagement.wiring import acceptor
from ingest.web.caller import Caller

logger = Logger(service="events-stream")
# IAM decides who may put records on the stream. Such a producer may send events of any user, and late ones.
PRODUCER = Caller("", is_admin=False, is_producer=True)
CONSUMER = "events-stream"
BATCH_MAX = 100


@cache
def _parts() -> tuple[Acceptor, FailureQueue]:
    config = settings.read(EventsStreamSettings)
    large = LargeRecords(lambda: client("s3"), config.payload_bucket)
    return acceptor(config), FailureQueue(lambda: client("sqs"), config.failure_queue_url, large)


def reason_of(part: RecordPart, result: AcceptResult) -> str | None:
    """Return why a part of a record was not taken; None for one that was, now or by an earlier attempt.

    Also None for an event of somebody who was erased: no queue may keep it.
    """
    if result.status in (AcceptStatus.ACCEPTED, AcceptStatus.DUPLICATE):
        return None
    error = result.error or {}
    if error.get("code") == ERASED:
        return None
    if part.fault:
        return f"{part.place or 'the record'} {part.fault}"
    fields = [f"{each['field']} {each['reason']}" for each in error.get("details", ())]
    reason = f"{result.status.value}: {error.get('code')}: {'; '.join(fields) or error.get('message')}"
    return f"{part.place}: {reason}" if part.place else reason


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a Kinesis batch.

    The answer names the first record that must come again. Lambda then sends it and all later ones again.
    """
    accept, failures = _parts()
    now, is_redrive = clock.now(), bool(event.get("streakline_redrive"))
    parts = (part for record in event["Records"] for part in _parts_of(record))
    first = list(islice(parts, 2))
    # A single event that still is bad stays in its queue. Of several the bad ones are kept, each by itself.
    stays = is_redrive and len(first) == 1
    counts = {"accepted": 0, "kept": 0}
    for batch in chunks(chain(first, parts), BATCH_MAX):
        results = accept.accept([part.body for part in batch], PRODUCER, now, default_source="kinesis")
        if any((result.error or {}).get("code") == "unavailable" for result in results):
            return _again(batch[0], "unavailable" if is_redrive else "")
        bad = [
            (part, reason)
            for part, result in zip(batch, results, strict=True)
            if (reason := reason_of(part, result))
        ]
        if bad and stays:
            return _again(*bad[0])
        failures.keep(CONSUMER, [(part.kept, reason) for part, reason in bad], now)
        counts["accepted"] += len(batch) - len(bad)
        counts["kept"] += len(bad)
    logger.info("batch", extra=counts)
    return {"batchItemFailures": []}


def _parts_of(record: Mapping[str, Any]) -> Iterator[RecordPart]:
    """Yield the parts of a record. One that only looks like an aggregated record must not stop the shard."""
    try:
        yield from parts_of(record)
    except Exception as error:  # noqa: BLE001 (protobuf raises what it likes on foreign bytes)
        logger.warning("undecodable", extra={"error": loggable(error)})
        kept = {"data": record["kinesis"]["data"], "sequence_number": record["kinesis"]["sequenceNumber"]}
        yield RecordPart(kept, fault="cannot be read")


def _again(part: RecordPart, reason: str) -> dict[str, Any]:
    return partial_failures({part.sequence_number: reason})
