"""The poller retries, bisects and discards a batch as Lambda's event source mappings do."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.cloud.streams import InvocationReply, reply_of
from tests.support.deliveries import BISECTING, PLAIN, Run, record, records
from tests.support.examples import examples

PARTIAL = replace(PLAIN, partial=True)
BATCH = records(3)


def fine(asked: list[int]) -> InvocationReply:
    return InvocationReply([])


def raising_on(*poison: int) -> Callable[[list[int]], InvocationReply]:
    return lambda asked: InvocationReply(None, "boom") if set(poison) & set(asked) else InvocationReply([])


def reporting(*poison: int) -> Callable[[list[int]], InvocationReply]:
    return lambda asked: InvocationReply([str(number) for number in asked if number in poison])


def test_a_batch_that_succeeds_is_delivered_once_in_order() -> None:
    run = Run().deliver(records(5), PLAIN, fine)
    assert (run.invoked, run.discarded, run.paused) == ([[0, 1, 2, 3, 4]], [], [])


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


@settings(max_examples=examples(40))
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


@settings(max_examples=examples(60))
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


@pytest.mark.parametrize(
    "payload",
    [None, {}, {"batchItemFailures": []}, {"batchItemFailures": None}, {"statusCode": 200}],
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


@pytest.mark.parametrize(
    "payload",
    [
        "text",
        {"batchItemFailures": 5},
        {"batchItemFailures": ["0"]},
        {"batchItemFailures": [{"itemIdentifier": ""}]},
        {"batchItemFailures": [{"itemIdentifier": "0"}, {"itemIdentifier": "9"}]},
        {"batchItemFailures": [{"itemIdentifier": 0}]},
    ],
    ids=str,
)
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
