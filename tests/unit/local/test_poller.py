"""The poller delivers as Lambda's event source mappings do."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.cloud.delivery import (
    EventSourceMapping,
    InvocationReply,
    Record,
    arrival_of,
    deliver,
    mapping_of,
    reply_of,
    sequence_of,
)
from local.cloud.event_filters import matches
from local.cloud.stream_records import kinesis_record, table_record

PLAIN = EventSourceMapping("function", "arn:aws:dynamodb:us-east-1:0:table/T/stream/1")
PARTIAL = replace(PLAIN, partial=True)
BISECTING = replace(PLAIN, bisect=True, retries_max=2)


def record(number: int, arrived: float = 0.0) -> Record:
    return {"dynamodb": {"SequenceNumber": str(number), "ApproximateCreationDateTime": arrived}}


def records(count: int) -> list[Record]:
    return [record(number) for number in range(count)]


def numbers(batch: Sequence[Record]) -> list[int]:
    return [int(sequence_of(each)) for each in batch]


@dataclass
class Run:
    """What a delivery did: invocations, pauses, and what was discarded and why."""

    invoked: list[list[int]] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    discarded: list[tuple[list[int], str, int]] = field(default_factory=list)
    paused: list[float] = field(default_factory=list)
    clock: float = 0.0

    def deliver(
        self,
        batch: Sequence[Record],
        mapping: EventSourceMapping,
        function: Callable[[list[int]], InvocationReply],
        step: float = 0,
    ) -> "Run":
        def invoke(each: Sequence[Record]) -> InvocationReply:
            self.clock += step
            asked = numbers(each)
            self.invoked.append(asked)
            assert len(self.invoked) < 10_000, "it never ends"
            reply = function(asked)
            if reply.failed is not None:
                lowest = min([asked.index(int(n)) for n in reply.failed], default=len(asked))
                self.done += asked[:lowest]
            return reply

        def discard(each: Sequence[Record], why: str, tries: int) -> None:
            self.discarded.append((numbers(each), why, tries))

        deliver(batch, mapping, invoke, discard, self.paused.append, lambda: self.clock)
        return self


def fine(asked: list[int]) -> InvocationReply:
    return InvocationReply([])


def raising_on(*poison: int) -> Callable[[list[int]], InvocationReply]:
    return lambda asked: InvocationReply(None, "boom") if set(poison) & set(asked) else InvocationReply([])


def reporting(*poison: int) -> Callable[[list[int]], InvocationReply]:
    return lambda asked: InvocationReply([str(number) for number in asked if number in poison])


def test_a_batch_that_succeeds_is_delivered_once_in_order() -> None:
    run = Run().deliver(records(5), PLAIN, fine)
    assert (run.invoked, run.discarded, run.paused) == ([[0, 1, 2, 3, 4]], [], [])


def test_an_empty_batch_is_not_delivered() -> None:
    assert Run().deliver([], PLAIN, fine).invoked == []


def test_after_a_partial_failure_the_rest_comes_again_from_the_lowest_failed_record() -> None:
    answers = iter([InvocationReply(["3", "1"]), InvocationReply([])])
    run = Run().deliver(records(5), PARTIAL, lambda _: next(answers))
    assert run.invoked == [[0, 1, 2, 3, 4], [1, 2, 3, 4]]


def test_progress_needs_no_pause_and_the_lack_of_it_does() -> None:
    answers = iter([InvocationReply(["1"]), InvocationReply(["1"]), InvocationReply([])])
    run = Run().deliver(records(2), PARTIAL, lambda _: next(answers))
    assert run.invoked == [[0, 1], [1], [1]]
    assert len(run.paused) == 1
    assert run.paused[0] > 0


def test_a_record_that_is_always_reported_is_discarded_with_what_is_behind_it() -> None:
    run = Run().deliver(records(4), replace(PARTIAL, retries_max=2), reporting(2))
    assert run.invoked == [[0, 1, 2, 3], [2, 3], [2, 3]]
    assert run.discarded == [([2, 3], "RetryAttemptsExhausted", 3)]


def test_bisecting_isolates_one_poison_record_in_a_hundred() -> None:
    run = Run().deliver(records(100), replace(BISECTING, retries_max=10), raising_on(57))
    assert run.done == [number for number in range(100) if number != 57]
    assert run.discarded == [([57], "RetryAttemptsExhausted", 11)]
    assert run.invoked.count([57]) == 11


@settings(deadline=None, max_examples=40)
@given(st.sets(st.integers(0, 99), max_size=6), st.integers(0, 3))
def test_bisecting_discards_the_poison_and_nothing_else_in_order(poison: set[int], retries: int) -> None:
    run = Run().deliver(records(100), replace(BISECTING, retries_max=retries), raising_on(*poison))
    assert run.done == [number for number in range(100) if number not in poison]
    assert [number for discarded, _, _ in run.discarded for number in discarded] == sorted(poison)
    assert all(len(discarded) == 1 and tries == retries + 1 for discarded, _, tries in run.discarded)


def test_a_split_is_no_retry_and_needs_no_pause() -> None:
    run = Run().deliver(records(4), replace(BISECTING, retries_max=0), raising_on(0))
    assert run.invoked == [[0, 1, 2, 3], [0, 1], [0], [1], [2, 3]]
    assert run.discarded == [([0], "RetryAttemptsExhausted", 1)]
    assert run.paused == []


def test_the_halves_are_delivered_in_order() -> None:
    run = Run().deliver(
        records(7),
        BISECTING,
        lambda asked: InvocationReply(None, "x") if len(asked) > 1 else InvocationReply([]),
    )
    assert run.done == list(range(7))


def test_what_comes_again_comes_before_what_is_behind_it() -> None:
    tried: list[list[int]] = []

    def function(asked: list[int]) -> InvocationReply:
        tried.append(asked)
        is_first_try_of_0 = asked == [0] and tried.count([0]) == 1
        return InvocationReply(None, "x") if len(asked) > 1 or is_first_try_of_0 else InvocationReply([])

    run = Run().deliver(records(4), BISECTING, function)
    assert run.done == [0, 1, 2, 3]
    assert run.discarded == []


def test_a_mapping_that_does_not_bisect_tries_the_whole_batch_again() -> None:
    run = Run().deliver(records(3), replace(PLAIN, retries_max=2), raising_on(1))
    assert run.invoked == [[0, 1, 2]] * 3
    assert run.discarded == [([0, 1, 2], "RetryAttemptsExhausted", 3)]


def test_without_a_retry_limit_it_goes_on_until_it_works() -> None:
    answers = iter([*[InvocationReply(None, "down")] * 200, InvocationReply([])])
    run = Run().deliver(records(2), PLAIN, lambda _: next(answers))
    assert len(run.invoked) == 201
    assert run.discarded == []
    assert run.paused == sorted(run.paused)
    assert max(run.paused) <= 5.0


def test_records_that_are_too_old_are_discarded_undelivered() -> None:
    batch = [record(0, arrived=10), record(1, arrived=40), record(2, arrived=90)]
    run = Run(clock=100).deliver(batch, replace(PLAIN, age_seconds_max=60), fine)
    assert run.invoked == [[1, 2]]
    assert run.discarded == [([0], "RecordAgeExceeded", 0)]


def test_the_age_limit_ends_retries_that_no_limit_ends() -> None:
    run = Run().deliver(records(2), replace(PLAIN, age_seconds_max=60), raising_on(1), step=25)
    assert run.invoked == [[0, 1]] * 3
    assert run.discarded == [([0, 1], "RecordAgeExceeded", 3)]


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 30),
    st.sets(st.integers(0, 29)),
    st.sets(st.integers(0, 29)),
    st.booleans(),
    st.integers(0, 4),
)
def test_every_record_is_done_or_discarded_exactly_once(
    count: int, raises: set[int], reports: set[int], bisect: bool, retries: int
) -> None:
    def function(asked: list[int]) -> InvocationReply:
        if raises & set(asked):
            return InvocationReply(None, "boom")
        return InvocationReply([str(number) for number in asked if number in reports])

    run = Run().deliver(records(count), replace(PARTIAL, bisect=bisect, retries_max=retries), function)
    discarded = [number for each, _, _ in run.discarded for number in each]
    assert sorted([*run.done, *discarded]) == list(range(count))
    assert run.done == sorted(run.done)


BATCH = records(3)


@pytest.mark.parametrize(
    "payload",
    [None, "", {}, {"batchItemFailures": []}, {"batchItemFailures": None}, {"statusCode": 200}],
)
def test_an_answer_without_failures_is_a_success(payload: Any) -> None:
    assert reply_of(payload, "", BATCH, partial=True) == InvocationReply([])


def test_failures_are_named_by_sequence_number() -> None:
    payload = {"batchItemFailures": [{"itemIdentifier": "2"}, {"itemIdentifier": "0"}]}
    assert reply_of(payload, "", BATCH, partial=True) == InvocationReply(["2", "0"])


def test_a_mapping_without_partial_reports_ignores_them() -> None:
    assert reply_of(
        {"batchItemFailures": [{"itemIdentifier": "2"}]}, "", BATCH, partial=False
    ) == InvocationReply([])


def test_an_error_fails_the_batch_whatever_the_payload_says() -> None:
    reply = reply_of({"batchItemFailures": []}, "Unhandled: boom", BATCH, partial=True)
    assert (reply.failed, reply.error) == (None, "Unhandled: boom")


MALFORMED: list[Any] = [
    "text",
    7,
    [1],
    {"batchItemFailures": "0"},
    {"batchItemFailures": 5},
    {"batchItemFailures": ["0"]},
    {"batchItemFailures": {"itemIdentifier": "0"}},
    {"batchItemFailures": [{}]},
    {"batchItemFailures": [{"itemidentifier": "0"}]},
    {"batchItemFailures": [{"itemIdentifier": ""}]},
    {"batchItemFailures": [{"itemIdentifier": None}]},
    {"batchItemFailures": [{"itemIdentifier": "9"}]},
    {"batchItemFailures": [{"itemIdentifier": "0"}, {"itemIdentifier": "9"}]},
    {"batchItemFailures": [{"itemIdentifier": 0}]},
    {"batchItemFailures": [{"itemIdentifier": ["0"]}]},
]


@pytest.mark.parametrize("payload", MALFORMED, ids=str)
def test_a_malformed_report_fails_the_whole_batch(payload: Any) -> None:
    reply = reply_of(payload, "", BATCH, partial=True)
    assert reply.failed is None
    assert "batchItemFailures" in reply.error


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
identifiers = st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["", "0", "1", "2", "3"])


@settings(deadline=None)
@given(
    json_values
    | st.fixed_dictionaries({"batchItemFailures": json_values})
    | st.fixed_dictionaries(
        {"batchItemFailures": st.lists(st.fixed_dictionaries({"itemIdentifier": identifiers}), max_size=3)}
    )
)
def test_whatever_a_function_answers_is_read(payload: Any) -> None:
    reply = reply_of(payload, "", BATCH, partial=True)
    assert reply.failed is None or set(reply.failed) <= {"0", "1", "2"}


def test_a_malformed_report_makes_the_batch_split() -> None:
    def function(asked: list[int]) -> InvocationReply:
        payload = {"batchItemFailures": [{"itemIdentifier": "nobody"}]} if 2 in asked else None
        return reply_of(payload, "", [record(number) for number in asked], partial=True)

    run = Run().deliver(records(4), replace(BISECTING, partial=True, retries_max=1), function)
    assert run.done == [0, 1, 3]
    assert run.discarded == [([2], "RetryAttemptsExhausted", 2)]


def test_settings_are_read_as_the_service_describes_them() -> None:
    described = {
        "FunctionArn": "f",
        "EventSourceArn": "arn:aws:kinesis:us-east-1:0:stream/s",
        "BatchSize": 10,
        "MaximumBatchingWindowInSeconds": 2,
        "BisectBatchOnFunctionError": "true",
        "MaximumRetryAttempts": 0,
        "MaximumRecordAgeInSeconds": 60,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "FilterCriteria": {"Filters": [{"Pattern": "{}"}]},
        "DestinationConfig": {"OnFailure": {"Destination": "arn:q"}},
    }
    mapping = mapping_of(described)
    assert mapping == EventSourceMapping(
        "f", "arn:aws:kinesis:us-east-1:0:stream/s", 10, 2.0, True, 0, 60, True, "arn:q", ("{}",)
    )
    assert mapping.is_kinesis


def test_what_is_not_described_has_the_service_s_defaults() -> None:
    described = {"FunctionArn": "f", "EventSourceArn": PLAIN.source, "DestinationConfig": None}
    assert mapping_of(described) == EventSourceMapping("f", PLAIN.source)
    assert not mapping_of(described).is_kinesis


def test_a_record_of_a_table_has_the_shape_that_a_function_gets() -> None:
    raw = {
        "eventID": "1",
        "eventName": "INSERT",
        "dynamodb": {
            "SequenceNumber": "5",
            "ApproximateCreationDateTime": datetime(2026, 1, 1, tzinfo=UTC),
            "NewImage": {"user_id": {"S": "u"}},
        },
    }
    shaped = table_record(raw, PLAIN.source)
    assert (sequence_of(shaped), arrival_of(shaped)) == ("5", 1767225600.0)
    assert (shaped["awsRegion"], shaped["eventSource"]) == ("us-east-1", "aws:dynamodb")
    assert shaped["dynamodb"]["NewImage"] == {"user_id": {"S": "u"}}


def test_a_record_of_a_stream_has_the_shape_that_a_function_gets() -> None:
    raw = {
        "PartitionKey": "p",
        "SequenceNumber": "49",
        "Data": b"\xff{}",
        "ApproximateArrivalTimestamp": datetime(2026, 1, 1, tzinfo=UTC),
    }
    shaped = kinesis_record(raw, "arn:aws:kinesis:eu-west-1:0:stream/s")
    assert (sequence_of(shaped), arrival_of(shaped)) == ("49", 1767225600.0)
    assert base64.b64decode(shaped["kinesis"]["data"]) == b"\xff{}"
    assert shaped["awsRegion"] == "eu-west-1"


INSERT = {"eventName": "INSERT", "dynamodb": {"NewImage": {"event_type": {"S": "CHECK_IN"}}}}


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ({}, True),
        ({"eventName": ["INSERT"]}, True),
        ({"eventName": ["MODIFY", "INSERT"]}, True),
        ({"eventName": ["REMOVE"]}, False),
        ({"eventName": []}, False),
        ({"nothing": ["INSERT"]}, False),
        ({"nothing": [None]}, False),
        ({"eventName": ["INSERT"], "nothing": ["x"]}, False),
        ({"dynamodb": {"NewImage": {"event_type": {"S": ["CHECK_IN"]}}}}, True),
        ({"dynamodb": {"NewImage": {"event_type": {"S": ["OTHER"]}}}}, False),
        ({"dynamodb": {"NewImage": {"event_type": {"S": [{"prefix": "CHECK"}]}}}}, True),
        ({"dynamodb": {"NewImage": {"event_type": {"S": [{"prefix": "LESSON"}]}}}}, False),
        ({"dynamodb": {"NewImage": {"event_type": [{"exists": True}]}}}, True),
        ({"dynamodb": {"NewImage": {"ttl": [{"exists": True}]}}}, False),
        ({"dynamodb": {"NewImage": {"ttl": [{"exists": False}]}}}, True),
        ({"dynamodb": {"NewImage": {"event_type": [{"exists": False}]}}}, False),
        ({"dynamodb": {"NewImage": {"event_type": [{"prefix": "S"}]}}}, False),
        ({"eventName": {"deeper": ["x"]}}, False),
        ({"eventName": [None]}, False),
    ],
)
def test_a_filter_fits_when_every_field_has_one_of_its_alternatives(
    pattern: dict[str, Any], fits: bool
) -> None:
    assert matches(pattern, INSERT) is fits


def test_a_filter_that_the_poller_does_not_know_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="numeric"):
        matches({"eventName": [{"numeric": ["=", 1]}]}, INSERT)
