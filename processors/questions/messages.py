"""Sends one message to one phone, at most once: claim, send, settle. fan_out.py and reminders.py use it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.questions.message_claims import ClaimResult, MessageClaim, MessageClaims
from adapters.questions.push import PushReceipt, PushStatus, SnsPush
from rules.questions.notifications import PushMessage, Subscription

# A message that has been begun needs at most this long. So none is begun later before the function's time
# limit.
STOP_BEFORE = timedelta(minutes=2)


def stop_at(now: datetime, context: Any) -> datetime:
    """Return the instant from which a run begins no more messages. context: Lambda's.

    A message that is being sent when Lambda ends the run would leave a claim without outcome.
    """
    return now + timedelta(milliseconds=context.get_remaining_time_in_millis()) - STOP_BEFORE


class MessageOutcome(StrEnum):
    """What became of a message to a person."""

    SENT = "sent"
    DUPLICATE = "duplicate"  # the message was claimed before
    SKIPPED = "skipped"  # the person is not to be told, or no longer
    DEAD = "dead"  # the phone's token is dead
    AGAIN = "again"  # the message certainly did not go out, and may be sent later
    UNSURE = "unsure"  # nobody can tell whether the message went out
    MOVED = "moved"  # the subscription has changed since it was read
    FAILED = "failed"  # the attempt raised an unexpected error


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends claimed messages."""

    claims: MessageClaims
    push: SnsPush
    logger: Logger

    def tell(self, claim: MessageClaim, message: PushMessage, now: datetime) -> MessageOutcome:
        """Open a message's claim, send the message, and store its outcome.

        The endpoint is made first, so between claim and outcome there is only the call that sends.
        """
        subscription, endpoint = claim.subscription, claim.subscription.endpoint_arn
        if not endpoint:
            prepared = self.push.prepare(subscription.fcm_token)
            if prepared.status is not PushStatus.SENT:
                if prepared.status is PushStatus.UNSENT:
                    return MessageOutcome.AGAIN
                self._bury(subscription, now)
                return MessageOutcome.DEAD
            endpoint = prepared.endpoint
        result = self.claims.open(claim)
        if result is not ClaimResult.CLAIMED:
            if not subscription.endpoint_arn:
                self._drop_unneeded_endpoint(subscription, endpoint)
            return MessageOutcome.DUPLICATE if result is ClaimResult.DUPLICATE else MessageOutcome.MOVED
        receipt = self.push.send(endpoint, subscription.fcm_token, message)
        return self._settle(claim, receipt, now)

    def _settle(self, claim: MessageClaim, receipt: PushReceipt, now: datetime) -> MessageOutcome:
        if receipt.status is PushStatus.UNSENT:
            self.claims.undo(claim)
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
        """Deactivate a subscription, then delete its endpoint: before, a sender could make it again."""
        if not self.claims.store.deactivate(subscription, now):
            return
        self.logger.info("a token is dead", extra={"subscription_id": subscription.subscription_id})
        if subscription.endpoint_arn:
            self._forget(subscription.endpoint_arn)

    def _drop_unneeded_endpoint(self, subscription: Subscription, endpoint: str) -> None:
        """Delete an endpoint that was made for a message which is not sent, unless its token is still in use.

        Another sender may have deactivated the subscription since, or the person may have left. Then nobody
        else knows of the endpoint. While the token is in use, another sender needs it: a token has only one.
        """
        stored = self.claims.store.get(subscription.subscription_id)
        if stored is None or stored.fcm_token != subscription.fcm_token:
            self._forget(endpoint)

    def _forget(self, endpoint: str) -> None:
        """Delete an endpoint. If SNS is away, the endpoint stays, and the log names it."""
        try:
            self.push.forget(endpoint)
        except Unavailable:
            self.logger.exception("an endpoint is left", extra={"endpoint_arn": endpoint})
