"""announcements queue -> phones: tells the people who hear of a question, each at most once.

A message of the queue stands for a page of people: it names a question, a shard of the listeners, and how far
each partition of the shard has been read. After a page, a message for the next page is sent. While a service
is away, it is a message for the same page, which is delivered later.

A run may die at any point and be repeated, or two runs may have the same message. So each message to a phone
is claimed before it is sent (adapters/questions/message_claims.py), and nobody is told whose claim exists.
Whether a person is to be told is judged at the moment of sending. A person who is in quiet hours then is not
told later: they find the question in the list of open ones.
"""

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.aws import pauses
from adapters.platform.queues import PoisonMessage
from adapters.questions.announcements import AnnouncementPage, AnnouncementQueue, Announcements
from adapters.questions.push import SnsPush
from adapters.questions.question_store import QuestionStore
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
from rules.questions.questions import ANSWERABLE, Question, shown_status

logger = Logger(service="fan-out")
# People on a page. Before each page the question is read, and nobody is told of one that is closed.
PAGE_SIZE = 100
ATTEMPTS_MAX = 8
# A page that did not reach everybody is tried again after this many seconds, then after twice as many.
AGAIN_SECONDS = 30
PAGE_ATTEMPTS_MAX = 7
WRITERS = 16  # messages that are sent at the same time


@dataclass(frozen=True)
class FanOutSettings(ConsumerSettings):
    """Settings of the function that sends announcements."""

    questions_table: str
    subscriptions_table: str
    announcement_queue_url: str
    platform_application_arn: str  # see NotifySettings


@dataclass(frozen=True, slots=True)
class Notifier:
    """Announces questions."""

    questions: QuestionStore
    announcements: Announcements
    sender: Sender

    def tell_page(self, page: AnnouncementPage) -> tuple[Counter[MessageOutcome], AnnouncementPage | None]:
        """Tell a page of people; returns how many messages had which outcome, and the next page if any."""
        now = clock.now()
        question = self.questions.get(page.question_id)
        if question is None or shown_status(question, now) not in ANSWERABLE:
            return Counter(), None
        people, after = self.announcements.page(question.audience, page.shard, page.after, PAGE_SIZE, now)
        unclaimed = self.announcements.unclaimed(people, _key(question), question.created_at)
        counts = Counter({MessageOutcome.DUPLICATE: len(people) - len(unclaimed)})
        message = message_of_question(question, now)
        with ThreadPoolExecutor(WRITERS) as pool:
            # `+=` drops the counts that are 0.
            counts += Counter(pool.map(partial(self._tell_person, question, message), unclaimed))
        return counts, AnnouncementPage(page.question_id, page.shard, after) if after else None

    def _tell_person(
        self, question: Question, message: PushMessage, subscription: Subscription
    ) -> MessageOutcome:
        """Tell one person. An error is logged, so that it does not keep the others from being told."""
        try:
            return self._claim_and_send(question, message, subscription)
        except TRANSIENT:
            logger.exception("to come again", extra={"subscription_id": subscription.subscription_id})
            return MessageOutcome.AGAIN
        except Exception:
            logger.exception("failed", extra={"subscription_id": subscription.subscription_id})
            return MessageOutcome.FAILED

    def _claim_and_send(
        self, question: Question, message: PushMessage, subscription: Subscription | None
    ) -> MessageOutcome:
        """Tell one person. If the subscription changes before the claim, judge again by the new one."""
        expires_at = claim_expires_at(unstamp(question.closes_at))
        for _ in pauses(ATTEMPTS_MAX):
            now = clock.now()
            if subscription is None or not is_eligible(subscription, question.audience, now):
                return MessageOutcome.SKIPPED
            claim = self.announcements.claim_of(subscription, _key(question), expires_at, now)
            outcome = self.sender.tell(claim, message, now)
            if outcome is not MessageOutcome.MOVED:
                return outcome
            subscription = self.announcements.store.get(subscription.subscription_id)
        return MessageOutcome.AGAIN


def _key(question: Question) -> str:
    """Return the name of a question's messages, by which each person's is claimed."""
    return f"question={question.question_id}"


def announce(
    notifier: Notifier, queue: AnnouncementQueue, message: Mapping[str, Any]
) -> Counter[MessageOutcome]:
    """Tell the page of people that a message of the queue stands for, and send the message for the next page.

    Returns how many messages to phones had which outcome. Raises PoisonMessage for a message that is no page,
    if a person cannot be told, and if a service stays away in all attempts. The next page is sent all the
    same.
    """
    try:
        page = AnnouncementPage(**message)
    except TypeError as error:
        raise PoisonMessage(f"no page of an announcement: {type(error).__name__}: {error}") from None
    counts, next_page = notifier.tell_page(page)
    logger.info("page", extra={each.value: count for each, count in counts.items()})
    untold = counts[MessageOutcome.AGAIN]
    if untold and page.attempt < PAGE_ATTEMPTS_MAX:
        queue.send(replace(page, attempt=page.attempt + 1), AGAIN_SECONDS * 2**page.attempt)
    else:
        if next_page:
            queue.send(next_page)
        if untold:
            raise PoisonMessage(f"subscriptions that could not be told, again and again: {untold}")
    if counts[MessageOutcome.FAILED]:
        raise PoisonMessage(f"subscriptions that could not be told: {counts[MessageOutcome.FAILED]}")
    return counts


@bootstrap(FanOutSettings)
def _parts(config: FanOutSettings, client: ClientOf) -> tuple[Notifier | None, AnnouncementQueue]:
    dynamodb = client("dynamodb")
    queue = AnnouncementQueue(lambda: client("sqs"), config.announcement_queue_url)
    if not config.platform_application_arn:
        return None, queue
    announcements = Announcements(SubscriptionStore(dynamodb, config.subscriptions_table))
    push = SnsPush(client("sns", attempts=1), config.platform_application_arn)
    sender = Sender(announcements.claims, push, logger)
    return Notifier(QuestionStore(dynamodb, config.questions_table), announcements, sender), queue


@queue_consumer("fan-out", logger)
def handler(message: Any, _now: datetime) -> None:
    """Lambda entry: pages of the announcements queue. Without a platform application nobody is told."""
    notifier, queue = _parts()
    if notifier is None:
        logger.info("no platform application")
        return
    announce(notifier, queue, message)
