"""Counts the messages in the stack's queues."""

from collections.abc import Iterable

from local.cloud.patience import Patience
from local.stack import Stack

WORK = ("LeadIngestion", "MemoryProcessing", "FeatureProcessing", "FeatureRefresh")
PAUSE_SECONDS = 0.1
# To be delivered, delivered or waiting, sent to be delivered later.
COUNTS = tuple(f"ApproximateNumberOfMessages{each}" for each in ("", "NotVisible", "Delayed"))


def depth(stack: Stack, url: str) -> int:
    """Return how many messages a queue holds, including those that a consumer is working on."""
    answer = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=list(COUNTS))
    return sum(int(answer["Attributes"][name]) for name in COUNTS)


def failures(stack: Stack) -> dict[str, int]:
    """Return how many messages wait for an operator, by failure queue."""
    urls = {name: url for name, url in stack.outputs.items() if name.endswith("FailuresUrl")}
    return {name.removesuffix("Url"): depth(stack, url) for name, url in urls.items()}


def waiting(stack: Stack) -> dict[str, int]:
    """Return how many messages wait for their consumer, by queue."""
    return {name: depth(stack, stack.outputs[f"{name}Url"]) for name in WORK}


def wait_until_empty(stack: Stack, names: Iterable[str], patience: Patience) -> None:
    """Wait until a consumer has done all that waits in these queues, one queue after the other.

    Raises RuntimeError when `patience` ends.
    """
    for name in names:
        while waiting := depth(stack, stack.outputs[f"{name}Url"]):
            patience.wait(f"messages still wait in {name}", waiting, PAUSE_SECONDS)
