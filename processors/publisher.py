"""Table streams -> Firehose. Each change of a table becomes a row of the lake, a version of the book several.

Rows of one hour go as one record, because Firehose bills each record rounded up to 5 KB. A row may be
published twice or out of order. Curation keeps the newest version of each key.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from adapters import clock, settings
from adapters.logs import Logger
from adapters.platform.aws import Unavailable, client
from adapters.platform.failures import FailureQueue
from adapters.platform.items import plain
from adapters.platform.sending.firehose import RECORD_BYTES_MAX, DeliveryStream
from adapters.privacy.erased_records import is_erased_record
from adapters.privacy.tombstones import NOBODY, Erased, tombstones_of
from adapters.settings.lake import PublisherSettings
from rules.lake.entities import (
    ANSWER_STATS,
    DAILY_ACTIVITY,
    EVENTS,
    LEAD_EVENTS,
    LEAD_FEATURES,
    LEAD_MEMORY,
    LEDGER,
    NOTIFICATIONS,
    QUESTIONS,
    RESPONSES,
    RULES,
    STREAKS,
    Entity,
    Unplaceable,
    event_version,
    rows_of,
)
from rules.lake.packed_records import END, FRAME_BYTES, RowLine, packed, row_line

logger = Logger(service="publisher")
CONSUMER = "publisher"
ROW_BYTES_MAX = RECORD_BYTES_MAX - FRAME_BYTES - len(END)
Record = Mapping[str, Any]


@dataclass(slots=True)
class PublishedBatch:
    """What became of records: each is published, to come again, or poison."""

    published: int = 0
    again: list[str] = field(default_factory=list)
    poison: list[tuple[Any, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes changes, but those of persons who were erased.

    destinations: table name -> the entity of its items, and where its rows go.
    """

    destinations: Mapping[str, tuple[Entity, DeliveryStream]]
    erased: Erased = NOBODY

    def publish(self, records: list[Record]) -> PublishedBatch:
        """Publish a batch of stream records. Usually they all come from one table's stream."""
        outcome = PublishedBatch()
        by_table: dict[str, list[tuple[Record, RowLine]]] = {}
        for record in records:
            table = table_of(record)
            if table in self.destinations and self._is_no_activity(table, record):
                continue
            if is_erased_record(record, self.erased):
                continue
            try:
                rows = self._rows(table, record)
            except (Unplaceable, KeyError, TypeError, ValueError) as error:
                outcome.poison.append((record, f"{type(error).__name__}: {error}"))
                continue
            by_table.setdefault(table, []).extend((record, row) for row in rows)
        for table, pairs in by_table.items():
            self._put(self.destinations[table][1], pairs, outcome)
        return outcome

    def _is_no_activity(self, table: str, record: Record) -> bool:
        """Whether a day has never been an active one: the lake has active dates, and those that were."""
        day = record["dynamodb"]["NewImage"]
        is_day = self.destinations[table][0] is DAILY_ACTIVITY
        return is_day and "is_passive" in day and "reversed_events" not in day

    def _rows(self, table: str, record: Record) -> list[RowLine]:
        change = record["dynamodb"]
        arrived = float(change["ApproximateCreationDateTime"])
        is_change = record["eventName"] == "MODIFY"
        rows = rows_of(
            self.destinations[table][0],
            plain(change["NewImage"]),
            datetime.fromtimestamp(arrived, UTC),
            event_version(arrived, change["SequenceNumber"]) if is_change else 0,
        )
        lines = [row_line(row) for row in rows]
        if (longest := max(len(line.text) for line in lines)) > ROW_BYTES_MAX:
            raise ValueError(f"a row of {longest} bytes: Firehose takes {ROW_BYTES_MAX}")
        return lines

    @staticmethod
    def _put(stream: DeliveryStream, pairs: list[tuple[Record, RowLine]], outcome: PublishedBatch) -> None:
        """Put rows. If Firehose refuses a record, the changes of all its rows come again, with all rows."""
        sent = packed([row for _, row in pairs], RECORD_BYTES_MAX)
        try:
            refused = stream.put([each.data for each in sent])
        except Unavailable:
            logger.exception("to come again")
            refused = list(range(len(sent)))
        # Places grow with the records, so these come in the stream's order.
        places = sorted(place for at in refused for place in sent[at].places)
        again = dict.fromkeys(pairs[place][0]["dynamodb"]["SequenceNumber"] for place in places)
        outcome.again += again
        outcome.published += len({each["dynamodb"]["SequenceNumber"] for each, _ in pairs} - again.keys())


def table_of(record: Record) -> str:
    """Return the name of the table whose stream a record came from."""
    return str(record["eventSourceARN"]).split("/")[1]


@cache
def _parts() -> tuple[Publisher, FailureQueue]:
    config, firehose = settings.read(PublisherSettings), client("firehose")
    destinations = {
        config.bp_events_table: (EVENTS, config.events_delivery_stream),
        config.daily_activity_table: (DAILY_ACTIVITY, config.daily_activity_delivery_stream),
        config.rewards_ledger_table: (LEDGER, config.ledger_delivery_stream),
        config.user_streaks_table: (STREAKS, config.streaks_delivery_stream),
        config.event_table: (LEAD_EVENTS, config.lead_events_delivery_stream),
        config.memory_table: (LEAD_MEMORY, config.lead_memory_delivery_stream),
        config.feature_table: (LEAD_FEATURES, config.lead_features_delivery_stream),
        config.questions_table: (QUESTIONS, config.questions_delivery_stream),
        config.responses_table: (RESPONSES, config.responses_delivery_stream),
        config.user_stats_table: (ANSWER_STATS, config.answer_stats_delivery_stream),
        config.subscriptions_table: (NOTIFICATIONS, config.notifications_delivery_stream),
        config.rule_books_table: (RULES, config.rules_delivery_stream),
    }
    streams = {
        table: (entity, DeliveryStream(firehose, name)) for table, (entity, name) in destinations.items()
    }
    return Publisher(streams, tombstones_of(config)), FailureQueue(
        lambda: client("sqs"), config.failure_queue_url
    )


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a batch of one table's stream. The answer lists the records that must come again."""
    publisher, failures = _parts()
    outcome = publisher.publish([each for each in event["Records"] if "NewImage" in each["dynamodb"]])
    outcome.again += failures.settle(event, CONSUMER, outcome.poison, clock.now())
    logger.info(
        "batch",
        extra={
            "published": outcome.published,
            "again": len(outcome.again),
            "poison": len(outcome.poison),
        },
    )
    return failures.answer(outcome.again)
