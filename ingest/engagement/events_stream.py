"""The Kinesis door: plain and KPL-aggregated records, from producers that IAM has let in."""

import base64
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from aws_kinesis_agg import MAGIC

from adapters import clock, settings
from adapters.logs import Logger, loggable
from adapters.platform.aws import client
from adapters.platform.failures import FailureQueue, LargeRecords, partial_failures
from adapters.settings.event_doors import EventsStreamSettings
from ingest.engagement.accept import ERASED, Acceptor, AcceptResult, AcceptStatus
from ingest.engagement.wiring import acceptor
from ingest.web.caller import Caller
from rules.json_values import read_json

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


def decode(record: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield (record, body) for each event in a Kinesis record. body: None for data that holds no event.

    A user record is one event, or several: {"events": [...]}. record: what a failure queue keeps.
    """
    for data in _user_records(record):
        kept = _kept(record, data or record["kinesis"]["data"])
        if data is None:
            yield kept, None
            continue
        try:
            body = read_json(base64.b64decode(data))
        except ValueError:
            yield kept, None
            continue
        several = body.get("events") if isinstance(body, dict) else None
        events = several if isinstance(several, list) else [body]
        if not events:
            yield kept, None
        for event in events:
            # Of a record with many events only the bad one is kept.
            yield {"event": event, "sequence_number": kept["sequence_number"]}, event


def _kept(record: Mapping[str, Any], data: str) -> dict[str, Any]:
    return {"data": data, "sequence_number": record["kinesis"]["sequenceNumber"]}


def _user_records(record: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield the data of a record's user records (base64), and None if some of them cannot be read."""
    if not base64.b64decode(record["kinesis"]["data"]).startswith(MAGIC):
        yield record["kinesis"]["data"]
        return
    from ingest.engagement.aggregate import user_records  # noqa: PLC0415 (costs a tenth of a cold start)

    texts, is_whole = user_records(record)
    if not is_whole:
        yield None
    yield from texts


def reason_of(body: Any, result: AcceptResult) -> str | None:
    """Return why an event was not taken; None for one that was, now or by an earlier attempt.

    Also None for one of somebody who was erased: no queue may keep it.
    """
    if result.status in (AcceptStatus.ACCEPTED, AcceptStatus.DUPLICATE):
        return None
    if body is None:
        return "the record is not JSON"
    error = result.error or {}
    if error.get("code") == ERASED:
        return None
    return f"{result.status.value}: {error.get('code')}: {error.get('message')}"


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a Kinesis batch.

    The answer names the first record that must come again. Lambda then sends it and all later ones again.
    """
    accept, failures = _parts()
    now, is_redrive = clock.now(), bool(event.get("streakline_redrive"))
    decoded = [pair for record in event["Records"] for pair in _decode(record)]
    # A single event that still is bad stays in its queue. Of several the bad ones are kept, each by itself.
    stays = is_redrive and len(decoded) == 1
    counts = {"accepted": 0, "kept": 0}
    for start in range(0, len(decoded), BATCH_MAX):
        batch = decoded[start : start + BATCH_MAX]
        results = accept.accept([body for _, body in batch], PRODUCER, now, default_source="kinesis")
        if any((result.error or {}).get("code") == "unavailable" for result in results):
            return _again(batch[0][0], "unavailable" if is_redrive else "")
        bad = [
            (record, reason)
            for (record, body), result in zip(batch, results, strict=True)
            if (reason := reason_of(body, result))
        ]
        if bad and stays:
            return _again(*bad[0])
        failures.keep(CONSUMER, bad, now)
        counts["accepted"] += len(batch) - len(bad)
        counts["kept"] += len(bad)
    logger.info("batch", extra=counts)
    return {"batchItemFailures": []}


def _decode(record: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Decode a record. One that only looks like an aggregated record must not stop the shard."""
    try:
        yield from list(decode(record))
    except Exception as error:  # noqa: BLE001 (protobuf raises what it likes on foreign bytes)
        logger.warning("undecodable", extra={"error": loggable(error)})
        yield (
            {"data": record["kinesis"]["data"], "sequence_number": record["kinesis"]["sequenceNumber"]},
            None,
        )


def _again(record: Mapping[str, Any], reason: str) -> dict[str, Any]:
    return partial_failures({record["sequence_number"]: reason})
