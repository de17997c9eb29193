"""Every 15 minutes: reminds people of a streak that ends tonight, once a local date.

It also marks claims that a sender left open when it died. Nobody can tell whether such a message went out.
So it is not sent again, and an alarm tells an operator.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from adapters import clock, settings
from adapters.engagement.account_store import AccountStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.logs import Logger
from adapters.platform.aws import client
from adapters.platform.fence import fence_writer
from adapters.platform.tables import READ_MAX, chunks
from adapters.questions.message_claims import DueReminder, ReminderStore
from adapters.questions.push import SnsPush
from adapters.questions.subscription_store import SubscriptionStore
from processors.questions.messages import MessageOutcome, Sender, stop_at
from rules.days import UnknownZone, today
from rules.engagement.account_state import Profile
from rules.questions.notifications import (
    claim_expires_at,
    is_timely_reminder,
    message_of_streak,
    next_reminder,
    streak_at_risk,
)

logger = Logger(service="reminders")
WRITERS = 6  # messages that are sent at the same time


@dataclass(frozen=True, slots=True)
class RemindersSettings:
    """Settings of the function that reminds people."""

    user_streaks_table: str
    subscriptions_table: str
    platform_application_arn: str  # see NotifySettings


def _now() -> datetime:
    return clock.now()


@dataclass(frozen=True, slots=True)
class Reminder:
    """Reminds people of streaks that end tonight."""

    accounts: AccountStore
    reminders: ReminderStore
    sender: Sender
    writers: int = 1  # how many messages it sends at the same time
    now: Callable[[], datetime] = _now  # the clock

    def remind(self, until: datetime | None = None) -> Counter[MessageOutcome]:
        """Send or skip every reminder that is due, and let its marker wait for the next one.

        A run may take minutes, so each message is judged by clock and streak when it is sent. until: when to
        stop; the next run handles the other reminders. Returns how many had which outcome.
        """
        counts: Counter[MessageOutcome] = Counter()
        now = self.now()
        with ThreadPoolExecutor(self.writers) as pool:
            for chunk in chunks(self.reminders.due(now), READ_MAX):
                if until and self.now() >= until:
                    break
                counts += Counter(pool.map(self._handle, *self._read(chunk, self.now())))
        return counts

    def _read(
        self, chunk: Sequence[tuple[str, datetime]], now: datetime
    ) -> tuple[list[DueReminder], list[Profile]]:
        """Read the subscriptions and profiles of due reminders in bulk; returns reminders, and their
        profiles.

        chunk: (subscription_id, when the reminder was due). Markers of subscriptions that are gone are
        dropped.
        """
        subscriptions = self.reminders.store.get_many(subscription_id for subscription_id, _ in chunk)
        by_id = {subscription.subscription_id: subscription for subscription in subscriptions}
        waiting: list[DueReminder] = []
        for subscription_id, due in chunk:
            subscription = by_id.get(subscription_id)
            if subscription is None or not subscription.is_active:
                self.reminders.drop(subscription_id, due)
                continue
            try:
                next_due = next_reminder(max(now, due), subscription.timezone, subscription.quiet_hours)
            except UnknownZone:  # this process lacks a zone that registration knew: the next run tries again
                logger.exception("failed", extra={"subscription_id": subscription_id})
                continue
            waiting.append(DueReminder(subscription, due, next_due))
        profiles = self.accounts.profiles(reminder.subscription.owner for reminder in waiting)
        return waiting, [profiles[reminder.subscription.owner] for reminder in waiting]

    def _handle(self, each: DueReminder, profile: Profile) -> MessageOutcome:
        """Remind one person. An error does not stop the reminders of others; the next run tries again."""
        try:
            return self._remind(each, profile)
        except Exception:
            logger.exception("failed", extra={"subscription_id": each.subscription.subscription_id})
            return MessageOutcome.FAILED

    def _remind(self, each: DueReminder, profile: Profile) -> MessageOutcome:
        """Remind one person, if the streak still ends tonight.

        profile: as it was read in bulk. It may be old by now, so profile and subscription are read again
        before a message is sent.
        """
        if not self._length(each, profile):
            self.reminders.skip(each)
            return MessageOutcome.SKIPPED
        subscription = self.reminders.store.get(each.subscription.subscription_id)
        if subscription is None or subscription.updated_at != each.subscription.updated_at:
            # Whoever changed the subscription has written its new marker, or deleted the marker.
            return MessageOutcome.MOVED
        owner, now = subscription.owner, self.now()
        length = self._length(each, self.accounts.profiles([owner])[owner])
        if not length:
            self.reminders.skip(each)
            return MessageOutcome.SKIPPED
        key = f"reminder={today(each.due, subscription.timezone)}"
        claim = partial(self.reminders.claim, each, key, claim_expires_at(now), now)
        release = partial(self.reminders.release, each)
        message = message_of_streak(length, now, subscription.timezone)
        outcome = self.sender.tell(subscription, message, claim, release, now)
        if outcome is MessageOutcome.DUPLICATE:
            # This date was claimed before: the person changed the zone, or registered the phone again.
            self.reminders.skip(each)
        return outcome

    def _length(self, each: DueReminder, profile: Profile) -> int:
        """Return the length of the streak of which a person is to be reminded now; 0: the person is not."""
        now, subscription = self.now(), each.subscription
        is_timely = is_timely_reminder(each.due, now, subscription.timezone, subscription.quiet_hours)
        return streak_at_risk(profile.streak, profile.cover, profile.zone, now) if is_timely else 0

    def mark_unconfirmed(self, now: datetime) -> int:
        """Mark the claims whose senders have died before they stored an outcome; returns how many."""
        lost = [key for key in self.sender.claims.stale_keys(now) if self.sender.claims.give_up(key)]
        for key in lost:
            logger.error("nobody can tell whether it went out", extra={"claim": key})
        return len(lost)


@settings.wiring(RemindersSettings)
def _parts(config: RemindersSettings) -> Reminder | None:
    dynamodb = fence_writer(client("dynamodb"))
    if not config.platform_application_arn:
        return None
    ledger = LedgerStore(dynamodb, "")  # reminders read profiles only
    accounts = AccountStore(dynamodb, config.user_streaks_table, "", ledger, 1)
    reminders = ReminderStore(dynamodb, SubscriptionStore(dynamodb, config.subscriptions_table))
    push = SnsPush(client("sns", attempts=1), config.platform_application_arn)
    return Reminder(accounts, reminders, Sender(reminders.claims, push, logger), WRITERS)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a schedule. Without a platform application it reminds nobody."""
    reminder = _parts()
    if reminder is None:
        logger.info("no platform application")
        return {"unconfirmed": 0}
    now = clock.now()
    sent = {each.value: count for each, count in reminder.remind(stop_at(now, context)).items()}
    counts = {**sent, "unconfirmed": reminder.mark_unconfirmed(now)}
    logger.info("reminders", extra=counts)
    return counts
