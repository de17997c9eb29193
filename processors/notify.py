"""Questions stream -> phones: everybody who is to hear of a question is told of it at most once.

A run may die at any point and be run again, or it may run twice at the same time. So whoever sends a message
claims it first (adapters/questions/message_claims.py). Who is to be told is judged at the moment of sending.
A person in quiet hours is not told later: they find the question in the list of open ones.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from typing import Any

from aws_lambda_powertools import Logger

from adapters import clock, settings
from adapters.platform.aws import Unavailable, client, pauses
from adapters.platform.batches import Unprocessed, chunks
from adapters.platform.failures import FailureQueue
from adapters.platform.items import item, plain
from adapters.questions.announcements import Announcements
from adapters.questions.push import SnsPush
from adapters.questions.subscription_store import SubscriptionStore
from adapters.settings.questions import NotifySettings
from processors.messages import Sender, Told, stop_at
from rules.days import unstamp
from rules.questions.messages import PushMessage, claim_expires_at, of_question
from rules.questions.notifications import Subscription, is_eligible
from rules.questions.questions import ANSWERABLE, Question, from_item, shown_status

logger = Logger(service="notify")
CONSUMER = "notify"
TRANSIENT = (*Unavailable, Unprocessed)
# Between two looks at whether the question still is open.
CHUNK = 100
ATTEMPTS_MAX = 8
Record = Mapping[str, Any]


@dataclass(slots=True)
class NotifiedBatch:
    """What became of people; which records are to come again; which are to be kept, with the reason."""

    told: Counter[Told] = field(default_factory=Counter)
    again: list[str] = field(default_factory=list)
    poison: list[tuple[Any, str]] = field(default_factory=list)


def _now() -> datetime:
    return clock.now()


@dataclass(frozen=True, slots=True)
class Notifier:
    """Announces questions. writers: messages on their way at the same time. now: the clock."""

    dynamodb: Any
    questions_table: str
    announcements: Announcements
    sender: Sender
    writers: int = 1
    now: Callable[[], datetime] = _now

    def notify(self, records: Sequence[Record], until: datetime | None = None) -> NotifiedBatch:
        """Announce each record's question; one question's trouble is not another's.

        until: when to stop, for what is left to come again.
        """
        outcome = NotifiedBatch()
        for record in records:
            try:
                told = self.announce(from_item(plain(record["dynamodb"]["NewImage"])), until)
            except TRANSIENT:
                logger.exception("to come again")
                told = Counter([Told.AGAIN])
            except Exception as error:  # whatever a record raises, its neighbours go on
                logger.exception("poison")
                outcome.poison.append((record, f"{type(error).__name__}: {error}"))
                continue
            outcome.told += told
            if told[Told.AGAIN]:
                outcome.again.append(record["dynamodb"]["SequenceNumber"])
            elif told[Told.FAILED]:
                outcome.poison.append((record, f"subscriptions that could not be told: {told[Told.FAILED]}"))
        return outcome

    def announce(self, question: Question, until: datetime | None = None) -> Counter[Told]:
        """Tell everybody who is eligible; stops when the question closes, a service is away or time is up."""
        told: Counter[Told] = Counter()
        if not self._is_open(question.question_id):
            return told
        tell = partial(self._tell, question, of_question(question, self.now()))
        with ThreadPoolExecutor(self.writers) as pool:
            for chunk in chunks(self.announcements.listeners(question.audience, self.now()), CHUNK):
                if until and self.now() >= until:
                    told[Told.AGAIN] += 1
                    break
                told += Counter(pool.map(tell, chunk))
                if told[Told.AGAIN] or not self._is_open(question.question_id):
                    break
        return told

    def _is_open(self, question_id: str) -> bool:
        """Whether the question, as it is stored now, still takes answers."""
        answer = self.dynamodb.get_item(
            TableName=self.questions_table, Key=item({"question_id": question_id}), ConsistentRead=True
        )
        return "Item" in answer and shown_status(from_item(plain(answer["Item"])), self.now()) in ANSWERABLE

    def _tell(self, question: Question, message: PushMessage, read: Subscription) -> Told:
        """Tell one person; whatever that raises, the others are told."""
        try:
            return self._try(question, message, read)
        except TRANSIENT:
            logger.exception("to come again", extra={"subscription_id": read.subscription_id})
            return Told.AGAIN
        except Exception:
            logger.exception("failed", extra={"subscription_id": read.subscription_id})
            return Told.FAILED

    def _try(self, question: Question, message: PushMessage, read: Subscription) -> Told:
        """Tell one person, judging again where they changed in between."""
        subscription: Subscription | None = read
        expires_at = claim_expires_at(unstamp(question.closes_at))
        for _ in pauses(ATTEMPTS_MAX):
            now = self.now()
            if subscription is None or not is_eligible(subscription, question.audience, now):
                return Told.SKIPPED
            claim = partial(
                self.announcements.claim, subscription, f"question={question.question_id}", expires_at, now
            )
            told = self.sender.tell(subscription, message, claim, self.announcements.release, now)
            if told is not Told.MOVED:
                return told
            subscription = self.announcements.store.get(subscription.subscription_id)
        return Told.AGAIN


def _named(told: Counter[Told]) -> dict[str, int]:
    return {each.value: count for each, count in told.items()}


@cache
def _parts() -> tuple[Notifier | None, FailureQueue]:
    config, dynamodb = settings.read(NotifySettings), client("dynamodb")
    failures = FailureQueue(lambda: client("sqs"), config.failure_queue_url)
    if not config.platform_application_arn:
        return None, failures
    announcements = Announcements(dynamodb, SubscriptionStore(dynamodb, config.subscriptions_table))
    push = SnsPush(client("sns", attempts=1), config.platform_application_arn)
    sender = Sender(announcements.claims, push, logger)
    return Notifier(dynamodb, config.questions_table, announcements, sender, config.writers), failures


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a batch of the Questions stream. Without a platform application nobody is told."""
    notifier, failures = _parts()
    if notifier is None:
        logger.info("no platform application")
        return {"batchItemFailures": []}
    asked = [each for each in event["Records"] if each["eventName"] == "INSERT"]
    outcome = notifier.notify(asked, stop_at(clock.now(), context))
    outcome.again += failures.settle(event, CONSUMER, outcome.poison, clock.now())
    logger.info(
        "batch",
        extra={**_named(outcome.told), "to_come_again": len(outcome.again), "poison": len(outcome.poison)},
    )
    return failures.answer(outcome.again)
