"""Sends one message to one phone, at most once: claim, send, settle. fan_out.py and reminders.py use it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.questions.message_claims import ClaimResult, MessageClaim, MessageClaims
from adapters.questions.push import Push, PushReceipt, PushStatus
from rules.questions.notifications import PushMessage, Subscription

# The time that a message on its way needs to end, before Lambda cuts the function off.
STOP_BEFORE = timedelta(minutes=2)


def stop_at(now: datetime, context: Any) -> datetime:
    """Return the instant from which a run begins no more messages. context: Lambda's.

    Lambda cuts a run off at its time limit. A message in between would leave a claim that nobody confirms.
    """
    return now + timedelta(milliseconds=context.get_remaining_time_in_millis()) - STOP_BEFORE


class MessageOutcome(StrEnum):
    """What became of a message to a person.

    SKIPPED: the person is not to be told, or no longer. DEAD: the phone's token is dead. AGAIN: the message
    certainly did not go out, and may be sent later. UNSURE: nobody can tell whether it went out. MOVED: the
    subscription has changed since it was read. FAILED: the attempt raised an unexpected error.
    """

    SENT = "sent"
    DUPLICATE = "duplicate"
    SKIPPED = "skipped"
    DEAD = "dead"
    AGAIN = "again"
    UNSURE = "unsure"
    MOVED = "moved"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends claimed messages."""

    claims: MessageClaims
    push: Push
    logger: Logger

    def tell(
        self,
        subscription: Subscription,
        message: PushMessage,
        claim: Callable[[], tuple[ClaimResult, MessageClaim]],
        release: Callable[[MessageClaim], None],
        now: datetime,
    ) -> MessageOutcome:
        """Claim and send one message. Between claim and settling there is only the call that sends it."""
        endpoint = subscription.endpoint_arn
        if not endpoint:
            prepared = self.push.prepare(subscription.fcm_token)
            if prepared.status is not PushStatus.SENT:
                return self._note_unprepared(subscription, prepared, now)
            endpoint = prepared.endpoint
        won, made = claim()
        if won is not ClaimResult.CLAIMED:
            if not subscription.endpoint_arn:
                self._leave(subscription, endpoint)
            return MessageOutcome.DUPLICATE if won is ClaimResult.DUPLICATE else MessageOutcome.MOVED
        receipt = self.push.send(endpoint, subscription.fcm_token, message)
        return self._settle(made, receipt, release, now)

    def _note_unprepared(
        self, subscription: Subscription, prepared: PushReceipt, now: datetime
    ) -> MessageOutcome:
        if prepared.status is PushStatus.DEAD:
            self._bury(subscription, now)
            return MessageOutcome.DEAD
        return MessageOutcome.AGAIN

    def _settle(
        self,
        claim: MessageClaim,
        receipt: PushReceipt,
        release: Callable[[MessageClaim], None],
        now: datetime,
    ) -> MessageOutcome:
        if receipt.status is PushStatus.UNSENT:
            release(claim)
            return MessageOutcome.AGAIN
        if receipt.status is PushStatus.UNSURE:
            self.logger.error("nobody can tell whether it went out", extra={"claim": claim.item_key})
            return MessageOutcome.UNSURE
        endpoint = claim.subscription.endpoint_arn
        if receipt.status is PushStatus.DEAD:
            self._bury(replace(claim.subscription, endpoint_arn=receipt.endpoint or endpoint), now)
            self.claims.settle(claim, PushStatus.DEAD, now)
            return MessageOutcome.DEAD
        self.claims.settle(
            claim, PushStatus.SENT, now, receipt.endpoint if receipt.endpoint != endpoint else ""
        )
        return MessageOutcome.SENT

    def _bury(self, subscription: Subscription, now: datetime) -> None:
        """Deactivate a subscription with a dead token, then delete its endpoint.

        In the other order, a sender could make the endpoint again, because the token still looked alive.
        """
        if not self.claims.store.deactivate(subscription, now):
            return
        self.logger.info("a token is dead", extra={"subscription_id": subscription.subscription_id})
        if subscription.endpoint_arn:
            self._forget(subscription.endpoint_arn)

    def _leave(self, subscription: Subscription, endpoint: str) -> None:
        """Delete an endpoint that was prepared for nothing, if the subscription no longer has its token.

        Another sender may have buried the token, or the person may have left, after the subscription was read
        and before the endpoint was made: nobody else knows of it. While the token is alive, the endpoint is
        the other sender's too, because a token has one.
        """
        stored = self.claims.store.get(subscription.subscription_id)
        if stored is None or stored.fcm_token != subscription.fcm_token:
            self._forget(endpoint)

    def _forget(self, endpoint: str) -> None:
        try:
            self.push.forget(endpoint)
        except Unavailable:
            self.logger.exception("an endpoint is left", extra={"endpoint_arn": endpoint})
