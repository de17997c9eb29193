"""The announcements queue: each message asks for one page of those who are to hear of a question."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rules.questions.notifications import LISTENER_SHARDS

# SQS hides a message for 15 minutes at most.
DELAY_SECONDS_MAX = 900
# For each partition that is not at its end, the subscription_id and last_notified_at that were read last.
# None: nothing has been read.
After = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class AnnouncementPage:
    """One page. attempt: how often it has been tried without telling everybody."""

    question_id: str
    shard: int
    after: After | None = None
    attempt: int = 0

    @staticmethod
    def read(message: Mapping[str, Any]) -> "AnnouncementPage":
        """Read a message; raises KeyError, TypeError or ValueError for any other."""
        after = message["after"]
        places = after and {part: (own, at) for part, (own, at) in after.items()}
        return AnnouncementPage(
            str(message["question_id"]), int(message["shard"]), places, int(message["attempt"])
        )

    def written(self) -> dict[str, Any]:
        """Return the message that asks for this page."""
        after = {part: list(place) for part, place in self.after.items()} if self.after is not None else None
        return {
            "question_id": self.question_id,
            "shard": self.shard,
            "after": after,
            "attempt": self.attempt,
        }

    def next(self, after: After) -> "AnnouncementPage":
        """Return the page that follows."""
        return AnnouncementPage(self.question_id, self.shard, after)

    def again(self) -> "AnnouncementPage":
        """Return the same page, to be tried once more."""
        return replace(self, attempt=self.attempt + 1)


@dataclass(frozen=True, slots=True)
class AnnouncementQueue:
    """sqs: returns the client."""

    sqs: Callable[[], Any]
    url: str

    def begin(self, question_id: str) -> None:
        """Ask for the first page of each shard. Safe to repeat."""
        for shard in range(LISTENER_SHARDS):
            self.send(AnnouncementPage(question_id, shard))

    def send(self, page: AnnouncementPage, delay_seconds: int = 0) -> None:
        """Ask for a page, after a delay."""
        self.sqs().send_message(
            QueueUrl=self.url,
            MessageBody=json.dumps(page.written()),
            DelaySeconds=min(DELAY_SECONDS_MAX, delay_seconds),
        )
