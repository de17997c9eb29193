"""Every 15 minutes: reminds people of a streak that ends tonight, once a local date (docs/rules.md, rule 2).

It also marks claims that a sender left open when it died. Nobody can tell whether such a message went out.
So it is not sent again, and an alarm tells an operator.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import clock
from adapters.book_store import BookStore
from adapters.bootstrap import ClientOf, bootstrap
from adapters.engagement.account_store import AccountStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.logs import Logger
from adapters.platform.tables import chunks
from adapters.questions.message_claims import DueReminder, ReminderMarker, ReminderStore
from adapters.questions.push import SnsPush
from adapters.questions.subscription_store import SubscriptionStore
from processors.questions.messages import MessageOutcome, Sender, stop_at
from rules.days import local_date, unstamp
from rules.questions.notifications import (
    ReminderClock,
    Subscription,
    claim_expires_at,
    message_of_streak,
    streak_at_risk,
)

logger = Logger(service="reminders")
WRITERS = 16  # messages that are sent at the same time
CHUNK = 100  # reminders between two looks at the clock


@dataclass(frozen=True, slots=True)
class RemindersSettings:
    """Settings of the function that reminds people."""

    user_streaks_table: str
    subscriptions_table: str
    rule_books_table: str
    platform_application_arn: str  # see NotifySettings


@dataclass(frozen=True, slots=True)
class Reminder:
    """Reminds people of streaks that end tonight."""

    accounts: AccountStore
    books: BookStore
    reminders: ReminderStore
    sender: Sender

    def remind(self, until: datetime | None = None) -> Counter[MessageOutcome]:
        """Send or skip every reminder whose marker is due, and let the marker wait for the next one.

        A run may take minutes, so each message is judged by clock and streak when it is sent. until: when to
        stop; the next run handles the other reminders. Returns how many had which outcome.
        """
        counts: Counter[MessageOutcome] = Counter()
        with ThreadPoolExecutor(WRITERS) as pool:
            for chunk in chunks(self.reminders.due(clock.now()), CHUNK):
                if until and clock.now() >= until:
                    break
                counts += Counter(pool.map(self._handle, chunk))
        return counts

    def _handle(self, marker: ReminderMarker) -> MessageOutcome:
        """Remind one person. An error does not stop the reminders of others; the next run tries again."""
        try:
            subscription = self.reminders.store.get(marker.subscription_id)
            if subscription is None or not subscription.is_active:
                self.reminders.drop(marker)
                return MessageOutcome.SKIPPED
            return self._remind(subscription, marker.due)
        except Exception:
            logger.exception("failed", extra={"subscription_id": marker.subscription_id})
            return MessageOutcome.FAILED

    def _remind(self, subscription: Subscription, due: datetime) -> MessageOutcome:
        now, rules = clock.now(), self.books.books().at(clock.now()).book.reminders
        profile = self.accounts.profiles([subscription.owner])[subscription.owner]
        hour = (subscription.reminders_at or rules.at) if rules else None
        zone, starts = profile.zone, profile.day_starts
        due_at = ReminderClock(hour, zone, subscription.quiet_hours, subscription.timezone, starts)
        reminder = DueReminder(subscription, due, due_at.next_look(max(now, due)))
        length = 0
        if rules and due_at.is_due(unstamp(subscription.updated_at), now):
            length = streak_at_risk(profile.streak, profile.cover, zone, now)
        if not (rules and length):
            self.reminders.skip(reminder)
            return MessageOutcome.SKIPPED
        key = f"reminder={local_date(now, zone, starts)}"
        claim = self.reminders.claim_of(reminder, key, claim_expires_at(now), now)
        message = message_of_streak(length, rules.text_in(subscription.language), now, zone, starts)
        outcome = self.sender.tell(claim, message, now)
        if outcome is MessageOutcome.DUPLICATE:
            # This date was claimed before: the person changed the zone, or registered the phone again.
            self.reminders.skip(reminder)
        return outcome

    def mark_unconfirmed(self, now: datetime) -> int:
        """Mark the claims whose senders have died before they stored an outcome; returns how many."""
        lost = [key for key in self.sender.claims.stale_keys(now) if self.sender.claims.give_up(key)]
        for key in lost:
            logger.error("nobody can tell whether it went out", extra={"claim": key})
        return len(lost)


@bootstrap(RemindersSettings)
def _parts(config: RemindersSettings, client: ClientOf) -> Reminder | None:
    dynamodb = client("dynamodb")
    if not config.platform_application_arn:
        return None
    ledger = LedgerStore(dynamodb, "")  # reminders read profiles only
    books = BookStore(dynamodb, config.rule_books_table)
    accounts = AccountStore(dynamodb, config.user_streaks_table, "", ledger, 1, daily_terms=books.daily_terms)
    reminders = ReminderStore(SubscriptionStore(dynamodb, config.subscriptions_table))
    push = SnsPush(client("sns", attempts=1), config.platform_application_arn)
    return Reminder(accounts, books, reminders, Sender(reminders.claims, push, logger))


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
