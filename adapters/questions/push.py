"""Messages to phones, by SNS mobile push (FCM).

How SNS reports that a token is dead: CreatePlatformEndpoint raises InvalidParameter for the token; or Publish
raises EndpointDisabled, because a push service has refused an earlier message and SNS has set the endpoint's
Enabled to false. If Publish raises NotFound, or InvalidParameter for the target, the endpoint has been
deleted. That says nothing of the token, so `send` makes the endpoint again, once.
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
)

from rules.questions.notifications import PushMessage

# FCM takes 4096 bytes of payload.
BODY_CHARACTERS_MAX = 240
TTL_SECONDS_MAX = 28 * 86400
EXISTING = re.compile(r"Endpoint (arn:\S+) already exists")
# The call did not reach SNS.
NOT_SENT = (ConnectTimeoutError, EndpointConnectionError, NoCredentialsError)


class PushStatus(StrEnum):
    """What became of a message."""

    SENT = "sent"
    DEAD = "dead"  # its token is dead
    UNSENT = "unsent"  # certainly not sent
    UNSURE = "unsure"  # nobody knows whether it was sent


@dataclass(frozen=True, slots=True)
class PushReceipt:
    """What became of a message, and the endpoint that it went to ("": there is none)."""

    status: PushStatus
    endpoint: str = ""


class SnsPush:
    """SNS mobile push. What SNS says is returned, not raised, except by `forget`.

    sns: a client that makes each call once: a second Publish is a second message.
    """

    def __init__(self, sns: Any, platform_application_arn: str = "") -> None:
        """platform_application_arn: not needed to forget."""
        self._sns, self._application = sns, platform_application_arn

    def prepare(self, token: str) -> PushReceipt:
        """Make a token's endpoint, or find it and enable it."""
        try:
            return PushReceipt(PushStatus.SENT, self._create(token))
        except ClientError as error:
            is_dead = _code(error) == "InvalidParameter" and "Token" in _text(error)
            return PushReceipt(PushStatus.DEAD if is_dead else PushStatus.UNSENT)
        except BotoCoreError:
            return PushReceipt(PushStatus.UNSENT)

    def _create(self, token: str) -> str:
        try:
            answer = self._sns.create_platform_endpoint(
                PlatformApplicationArn=self._application, Token=token, Attributes={"Enabled": "true"}
            )
        except ClientError as error:
            if existing := EXISTING.search(_text(error)):
                arn = existing.group(1)
                attributes = {"Enabled": "true", "Token": token}
                self._sns.set_endpoint_attributes(EndpointArn=arn, Attributes=attributes)
                return arn
            raise
        return str(answer["EndpointArn"])

    def send(self, endpoint: str, token: str, message: PushMessage) -> PushReceipt:
        """Publish to an endpoint; one that has been deleted is made again."""
        status = self._publish(endpoint, message)
        if status is not None:
            return PushReceipt(status, endpoint)
        receipt = self.prepare(token)
        if receipt.status is not PushStatus.SENT:
            return receipt
        return PushReceipt(self._publish(receipt.endpoint, message) or PushStatus.DEAD, receipt.endpoint)

    def _publish(self, endpoint: str, message: PushMessage) -> PushStatus | None:
        """Publish once. None: there is no such endpoint."""
        try:
            self._sns.publish(TargetArn=endpoint, MessageStructure="json", Message=payload(message))
        except ClientError as error:
            return _refusal(error)
        except NOT_SENT:
            return PushStatus.UNSENT
        except BotoCoreError:
            return PushStatus.UNSURE
        return PushStatus.SENT

    def forget(self, endpoint: str) -> None:
        """Delete an endpoint."""
        self._sns.delete_endpoint(EndpointArn=endpoint)


def payload(message: PushMessage) -> str:
    """Return what Publish takes with MessageStructure json: FCM's v1 message, as JSON in JSON."""
    body = message.body
    if len(body) > BODY_CHARACTERS_MAX:
        body = body[: BODY_CHARACTERS_MAX - 1] + "…"
    ttl = min(max(message.ttl_seconds, 0), TTL_SECONDS_MAX)
    fcm_message = {
        "notification": {"title": message.title, "body": body},
        "data": dict(message.data),
        "android": {"ttl": f"{ttl}s"},
    }
    gcm = json.dumps({"fcmV1Message": {"message": fcm_message}}, ensure_ascii=False)
    return json.dumps({"default": body, "GCM": gcm}, ensure_ascii=False)


def _refusal(error: ClientError) -> PushStatus | None:
    """Return what a refusal by Publish says of the message; None: there is no such endpoint."""
    code = _code(error)
    if code == "EndpointDisabled":
        return PushStatus.DEAD
    if code == "NotFound" or (code == "InvalidParameter" and "TargetArn" in _text(error)):
        return None
    http_status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
    return PushStatus.UNSURE if http_status >= 500 else PushStatus.UNSENT


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _text(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))
