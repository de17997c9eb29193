"""One message to one phone, at most once: claim, send, settle. What announcements and reminders share."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from aws_lambda_powertools import Logger

from adapters.platform.aws import Unavailable
from adapters.questions.message_claims import ClaimResult, MessageClaim, MessageClaims
from adapters.questions.push import Push, PushMessage, PushReceipt, PushStatus
from rules.questions.notifications import Subscription

# What is on its way by then has an end before the function is cut off.
STOP_BEFORE = timedelta(minutes=2)


def stop_at(now: datetime, context: Any) -> datetime:
    """Return when a run is to begin no more messages: cut off, it would leave claims that nobody confirms.

    context: Lambda's, which knows the time left.
    """
    return now + timedelta(milliseconds=context.get_remaining_time_in_millis()) - STOP_BEFORE


class Told(StrEnum):
    """What became of a person's message.

    SKIPPED: not, or no longer, to be told. AGAIN: certainly not told, and may be. UNSURE: nobody can tell.
    MOVED: not what was read. FAILED: raised what no attempt will get past.
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
    ) -> Told:
        """Send one message. Everything that can be done before the claim is: after it there is one call."""
        endpoint = subscription.endpoint_arn
        if not endpoint:
            prepared = self.push.prepare(subscription.fcm_token)
            if prepared.status is not PushStatus.SENT:
                return self._unprepared(subscription, prepared, now)
            endpoint = prepared.endpoint
        won, made = claim()
        if won is not ClaimResult.CLAIMED:
            return Told.DUPLICATE if won is ClaimResult.DUPLICATE else Told.MOVED
        receipt = self.push.send(endpoint, subscription.fcm_token, message)
        return self._settle(made, receipt, release, now)

    def _unprepared(self, subscription: Subscription, prepared: PushReceipt, now: datetime) -> Told:
        if prepared.status is PushStatus.DEAD:
            self._bury(subscription, now)
            return Told.DEAD
        return Told.AGAIN

    def _settle(
        self,
        claim: MessageClaim,
        receipt: PushReceipt,
        release: Callable[[MessageClaim], None],
        now: datetime,
    ) -> Told:
        if receipt.status is PushStatus.UNSENT:
            release(claim)
            return Told.AGAIN
        if receipt.status is PushStatus.UNSURE:
            self.logger.error("nobody can tell whether it went out", extra={"claim": claim.place})
            return Told.UNSURE
        known = claim.subscription.endpoint_arn
        if receipt.status is PushStatus.DEAD:
            self._bury(replace(claim.subscription, endpoint_arn=receipt.endpoint or known), now)
            self.claims.settle(claim, PushStatus.DEAD, now)
            return Told.DEAD
        self.claims.settle(claim, PushStatus.SENT, now, receipt.endpoint if receipt.endpoint != known else "")
        return Told.SENT

    def _bury(self, subscription: Subscription, now: datetime) -> None:
        """Deactivate before the endpoint goes: else a token that looks alive would be tried again."""
        if not self.claims.store.deactivate(subscription, now):
            return
        self.logger.info("a token is dead", extra={"subscription_id": subscription.subscription_id})
        try:
            if subscription.endpoint_arn:
                self.push.forget(subscription.endpoint_arn)
        except Unavailable:
            self.logger.exception("an endpoint is left", extra={"endpoint_arn": subscription.endpoint_arn})
