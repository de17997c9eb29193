"""announcements queue -> phones: a page of a question's listeners at a time, each notified at most once.

A message names a question, a shard of the listeners, and how far each of its partitions has been read. The
page takes as many from each class of intervals, those who were notified longest ago first; then it asks for
the next page. A run may die at any point and be run again, or it may run twice at the same time. So whoever
sends a message claims it first (adapters/questions/message_claims.py); and whose claim is there already is
not claimed again. Who is to be notified is judged at the moment of sending. A person in quiet hours is not
later: they find the question in the list of open ones.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from adapters import clock, settings
from adapters.logs import Logger
from adapters.platform.aws import client, pauses
from adapters.platform.fence import fence_writer
from adapters.platform.items import decode_item, encode_item
from adapters.platform.queues import PoisonMessage
from adapters.questions.announcements import AnnouncementPage, AnnouncementQueue, Announcements
from adapters.questions.push import SnsPush
from adapters.questions.subscription_store import SubscriptionStore
from processors.batches import TRANSIENT, ConsumerSettings, queue_consumer
from processors.questions.messages import MessageOutcome, Sender
from rules.days import unstamp
from rules.questions.notifications import (
    PushMessage,
    Subscription,
    claim_expires_at,
    is_eligible,
    message_of_question,
)
from rules.questions.questions import ANSWERABLE, Question, from_item, shown_status

logger = Logger(service="fan-out")
# People to a page. Before each page it looks whether the question still is open.
PAGE_SIZE = 100
ATTEMPTS_MAX = 8
# A page that did not reach everybody comes again after this many seconds, doubled each time.
AGAIN_SECONDS = 15
PAGE_ATTEMPTS_MAX = 7
WRITERS = 16  # messages on their way at the same time
PageOutcome = tuple[Counter[MessageOutcome], AnnouncementPage | None]


@dataclass(frozen=True)
class FanOutSettings(ConsumerSettings):
    """Settings of the function that sends announcements."""

    questions_table: str
    subscriptions_table: str
    announcement_queue_url: str
    platform_application_arn: str  # see NotifySettings


def _now() -> datetime:
    return clock.now()


@dataclass(frozen=True, slots=True)
class Notifier:
    """Announces questions."""

    dynamodb: Any
    questions_table: str
    announcements: Announcements
    sender: Sender
    writers: int = 1  # messages on their way at the same time
    now: Callable[[], datetime] = _now  # the clock

    def tell(self, page: AnnouncementPage) -> PageOutcome:
        """Tell a page of people; returns what became of them, and the next page, None after the last one.

        If a service is away, the next page is this one again.
        """
        question = self._open(page.question_id)
        if question is None:
            return Counter(), None
        people, after = self.announcements.page(
            question.audience, page.shard, page.after, PAGE_SIZE, self.now()
        )
        fresh = self.announcements.unclaimed(people, _key(question), question.created_at)
        counts = Counter(
            {MessageOutcome.DUPLICATE: len(people) - len(fresh)} if len(people) > len(fresh) else {}
        )
        message = message_of_question(question, self.now())
        with ThreadPoolExecutor(self.writers) as pool:
            counts += Counter(pool.map(partial(self._tell, question, message), fresh))
        if counts[MessageOutcome.AGAIN]:
            return counts, page.again()
        return counts, page.next(after) if after else None

    def _open(self, question_id: str) -> Question | None:
        """Return the question as it is stored now, if it takes answers."""
        answer = self.dynamodb.get_item(
            TableName=self.questions_table, Key=encode_item({"question_id": question_id}), ConsistentRead=True
        )
        question = from_item(decode_item(answer["Item"])) if "Item" in answer else None
        return question if question and shown_status(question, self.now()) in ANSWERABLE else None

    def _tell(self, question: Question, message: PushMessage, subscription: Subscription) -> MessageOutcome:
        """Tell one person; whatever that raises, the others are told."""
        try:
            return self._try(question, message, subscription)
        except TRANSIENT:
            logger.exception("to come again", extra={"subscription_id": subscription.subscription_id})
            return MessageOutcome.AGAIN
        except Exception:
            logger.exception("failed", extra={"subscription_id": subscription.subscription_id})
            return MessageOutcome.FAILED

    def _try(self, question: Question, message: PushMessage, before: Subscription) -> MessageOutcome:
        """Tell one person, judging again where they changed in between."""
        subscription: Subscription | None = before
        expires_at = claim_expires_at(unstamp(question.closes_at))
        for _ in pauses(ATTEMPTS_MAX):
            now = self.now()
            if subscription is None or not is_eligible(subscription, question.audience, now):
                return MessageOutcome.SKIPPED
            claim = partial(self.announcements.claim, subscription, _key(question), expires_at, now)
            outcome = self.sender.tell(subscription, message, claim, self.announcements.release, now)
            if outcome is not MessageOutcome.MOVED:
                return outcome
            subscription = self.announcements.store.get(subscription.subscription_id)
        return MessageOutcome.AGAIN


def _key(question: Question) -> str:
    return f"question={question.question_id}"


def announce(
    notifier: Notifier, queue: AnnouncementQueue, message: Mapping[str, Any]
) -> Counter[MessageOutcome]:
    """Tell the page that a message asks for, and ask for the next one.

    Raises PoisonMessage for what is no page, for people who cannot be told, and if a service stays away.
    """
    try:
        page = AnnouncementPage.read(message)
    except (KeyError, TypeError, ValueError) as error:
        raise PoisonMessage(f"no page of an announcement: {type(error).__name__}: {error}") from None
    counts, following = notifier.tell(page)
    logger.info("page", extra={each.value: count for each, count in counts.items()})
    if following and following.attempt > PAGE_ATTEMPTS_MAX:
        raise PoisonMessage(
            f"subscriptions that could not be told, again and again: {counts[MessageOutcome.AGAIN]}"
        )
    if following:
        queue.send(following, AGAIN_SECONDS * 2**following.attempt if following.attempt else 0)
    if counts[MessageOutcome.FAILED]:
        raise PoisonMessage(f"subscriptions that could not be told: {counts[MessageOutcome.FAILED]}")
    return counts


@settings.wiring(FanOutSettings)
def _parts(config: FanOutSettings) -> tuple[Notifier | None, AnnouncementQueue]:
    dynamodb = fence_writer(client("dynamodb"))
    queue = AnnouncementQueue(lambda: client("sqs"), config.announcement_queue_url)
    if not config.platform_application_arn:
        return None, queue
    announcements = Announcements(dynamodb, SubscriptionStore(dynamodb, config.subscriptions_table))
    push = SnsPush(client("sns", attempts=1), config.platform_application_arn)
    sender = Sender(announcements.claims, push, logger)
    return Notifier(dynamodb, config.questions_table, announcements, sender, WRITERS), queue


@queue_consumer("fan-out", logger)
def handler(message: Any, _now: datetime) -> None:
    """Lambda entry: pages of the announcements queue. Without a platform application nobody is told."""
    notifier, queue = _parts()
    if notifier is None:
        logger.info("no platform application")
        return
    announce(notifier, queue, message)
