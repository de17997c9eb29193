"""The lead-ingestion queue, and the bucket for payloads that are too large for a message, or for an item."""

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from adapters.leads.lead_event_store import event_item
from adapters.platform.items import item_bytes
from rules.leads.lead_events import LeadEvent

# A write unit covers 1 KB; a larger item would cost more.
ITEM_BYTES_MAX = 1024
INBOX = "leads/inbox/"
# A poison message is stored with its reason in a message of the failure queue, as JSON text within JSON,
# which escapes each quote. So this is the size of the escaped text. A message of the failure queue may have
# 250,000 bytes (adapters/platform/queues.py).
MESSAGE_BYTES_MAX = 200 * 1024


class NoPayload(LookupError):
    """A pointer leads to no object, or out of the folder in which doors put payloads."""


class LeadPayloads:
    """The bucket of payloads: those that wait for their message, and the raw ones of stored events."""

    def __init__(self, s3: Callable[[], Any], bucket: str) -> None:
        """s3: returns the client; most requests never call it."""
        self._s3, self._bucket = s3, bucket

    def put_inbox(self, data: bytes) -> str:
        """Put a payload aside until its message is handled; returns its s3:// URL."""
        return self._put(f"{INBOX}{uuid.uuid4()}.json", data)

    def read_inbox(self, url: str) -> bytes:
        """Return a payload that was put aside; raises NoPayload.

        It reads only from the folder in which doors put payloads: a message must not make us read anything
        else.
        """
        prefix = f"s3://{self._bucket}/"
        key = url.removeprefix(prefix)
        if not url.startswith(prefix + INBOX):
            raise NoPayload(f"{url} does not start with {prefix}{INBOX}")
        try:
            return bytes(self._s3().get_object(Bucket=self._bucket, Key=key)["Body"].read())
        except ClientError as error:
            # Without the right to list, S3 answers AccessDenied for a key that is not there.
            if error.response["Error"]["Code"] in ("NoSuchKey", "AccessDenied"):
                raise NoPayload(f"{url}: {error.response['Error']['Code']}") from None
            raise

    def with_raw(self, event: LeadEvent, raw: Any, digest: str) -> LeadEvent:
        """Return the event with its raw payload, or with a pointer to it if the item would be over 1 KB.

        The object's key has the event's id and the body's digest. So a repeated attempt writes the same
        object, and another body under the same external id cannot replace it.
        """
        text = json.dumps(raw, separators=(",", ":"), ensure_ascii=False)
        inline = replace(event, raw_payload=text)
        if item_bytes(event_item(inline)) <= ITEM_BYTES_MAX:
            return inline
        return replace(event, raw_payload_ref=self._put(f"leads/{event.id}/{digest}.json", text.encode()))

    def _put(self, key: str, data: bytes) -> str:
        self._s3().put_object(Bucket=self._bucket, Key=key, Body=data, ContentType="application/json")
        return f"s3://{self._bucket}/{key}"


class LeadQueue:
    """Puts messages on the queue, and a payload that is too large for it into the bucket."""

    def __init__(self, sqs: Any, url: str, payloads: LeadPayloads) -> None:
        self._sqs, self._url, self._payloads = sqs, url, payloads

    def put(self, message: dict[str, Any]) -> None:
        """Put one message; raises what SQS or S3 raise."""
        text = json.dumps(message, separators=(",", ":"))
        if "payload" in message and len(json.dumps(text)) > MESSAGE_BYTES_MAX:
            payload = json.dumps(message["payload"], separators=(",", ":"))
            pointer = {"payload_ref": self._payloads.put_inbox(payload.encode())}
            rest = {name: value for name, value in message.items() if name != "payload"}
            text = json.dumps(rest | pointer, separators=(",", ":"))
        self._sqs.send_message(QueueUrl=self._url, MessageBody=text)

    def put_refused(self, message: dict[str, Any], body: bytes, reason: str) -> None:
        """Keep a body that a door refuses, for an operator: the consumer fails its message, with the reason.

        message: as in put(), without a payload.
        """
        kept = {**message, "payload_ref": self._payloads.put_inbox(body), "refused": reason}
        self._sqs.send_message(QueueUrl=self._url, MessageBody=json.dumps(kept, separators=(",", ":")))
