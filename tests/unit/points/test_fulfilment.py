"""Each new redemption of a reward becomes a message, and nothing else does (rule 13)."""

import json
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from adapters.engagement.rewards import redemption_from, redemption_item
from processors.fulfilment import send_shipments
from rules.book.rewards import Fulfilment, Redemption

AT = "2027-03-01T12:00:00.000001Z"
MUG = Redemption("ann", AT, "mug", "acme", 50, 2, from_stock=True)


class Queue:
    """refuses: the messages that it does not take, by their place in a call."""

    def __init__(self, *refuses: str, is_away: bool = False) -> None:
        self.calls: list[list[Any]] = []
        self._refuses, self._is_away = refuses, is_away

    def send_message_batch(self, QueueUrl: str, Entries: list[Any]) -> dict[str, Any]:  # noqa: N803
        assert QueueUrl == "url"
        if self._is_away:
            raise EndpointConnectionError(endpoint_url="sqs")
        self.calls.append([json.loads(each["MessageBody"]) for each in Entries])
        return {"Failed": [{"Id": each} for each in self._refuses]}


def record(number: int, image: Any, name: str = "INSERT") -> dict[str, Any]:
    return {"eventName": name, "dynamodb": {"SequenceNumber": str(number), "NewImage": image}}


def redeemed(number: int) -> dict[str, Any]:
    return record(number, redemption_item(Redemption(f"u{number}", AT, "mug", "acme", 50, 2)))


@pytest.mark.parametrize("state", Fulfilment)
def test_an_item_is_read_as_it_was_written(state: Fulfilment) -> None:
    whole = Redemption("ann", AT, "mug", "acme", 50, 2, True, True, state, AT, "Blue mug")
    assert redemption_from(redemption_item(whole)) == whole
    assert redemption_from(redemption_item(MUG)) == MUG


def test_a_message_has_the_title_that_the_reward_had() -> None:
    queue, titled = Queue(), Redemption("ann", AT, "mug", "acme", 50, 2, title="Blue mug")
    send_shipments(lambda: queue, "url", [record(1, redemption_item(titled))])
    assert queue.calls[0][0]["title"] == "Blue mug"


def test_a_message_names_all_that_a_worker_needs() -> None:
    queue = Queue()
    assert send_shipments(lambda: queue, "url", [record(1, redemption_item(MUG))]).counts["sent"] == 1
    assert queue.calls == [
        [
            {
                "redemption": "20270301T120000000001Z",
                "user": "ann",
                "reward": "mug",
                "brand": "acme",
                "price_points": 50,
                "at": AT,
            }
        ]
    ]


def test_counters_and_changes_are_passed_over_and_what_cannot_be_read_is_poison() -> None:
    counter = {"holder": {"S": "mug/1"}, "place": {"S": "01"}, "taken": {"N": "1"}}
    broken = {name: each for name, each in redemption_item(MUG).items() if name != "brand"}
    records = [record(1, counter), record(2, redemption_item(MUG), "MODIFY"), record(3, broken)]
    outcome = send_shipments(lambda: pytest.fail("nothing is to be sent"), "url", records)
    assert (outcome.counts["sent"], outcome.again) == (0, [])
    assert [(each["dynamodb"]["SequenceNumber"], why) for each, why in outcome.poison] == [
        ("3", "KeyError: 'brand'")
    ]


def test_what_the_queue_does_not_take_comes_again() -> None:
    queue = Queue("1")
    outcome = send_shipments(lambda: queue, "url", [redeemed(number) for number in range(12)])
    assert [len(each) for each in queue.calls] == [10, 2]
    assert (outcome.counts["sent"], outcome.again) == (10, ["1", "11"])
    away = send_shipments(lambda: Queue(is_away=True), "url", [redeemed(number) for number in range(2)])
    assert (away.counts["sent"], away.again) == (0, ["0", "1"])
