"""What a function's answer to a batch says about it: success, failed records, or a malformed report."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.cloud.streams import InvocationReply, reply_of
from tests.support.deliveries import BISECTING, Run, record, records

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
