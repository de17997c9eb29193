"""The bucket that takes what does not fit: payloads too large for a message, or for an item."""

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from adapters.leads.lead_event_store import item_bytes
from rules.leads.lead_events import LeadEvent

# A write unit covers 1 KB; an event is put and published at that price.
ITEM_BYTES_MAX = 1024
INBOX = "leads/inbox/"


class NoPayload(LookupError):
    """There is nothing at a pointer, or it does not point to where doors put payloads."""


class LeadPayloads:
    """Payloads of lead events."""

    def __init__(self, s3: Callable[[], Any], bucket: str) -> None:
        """s3: makes the client, which most requests never need."""
        self._s3, self._bucket = s3, bucket

    def put_inbox(self, text: str) -> str:
        """Put a payload aside until its message is handled; returns its s3:// URL."""
        return self._put(f"{INBOX}{uuid.uuid4()}.json", text)

    def read_inbox(self, url: str) -> bytes:
        """Return a payload that was put aside; raises NoPayload.

        Only what doors have put there: a message must not make us read anything else.
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
        """Return the event with its raw payload, or with a pointer where the item would be over 1 KB.

        The object is named by event and content: an attempt that is repeated writes the same one, and another
        body sent under the same external id cannot replace it.
        """
        text = json.dumps(raw, separators=(",", ":"), ensure_ascii=False)
        inline = replace(event, raw_payload=text)
        if item_bytes(inline) <= ITEM_BYTES_MAX:
            return inline
        return replace(event, raw_payload_ref=self._put(f"leads/{event.id}/{digest}.json", text))

    def _put(self, key: str, text: str) -> str:
        self._s3().put_object(
            Bucket=self._bucket, Key=key, Body=text.encode(), ContentType="application/json"
        )
        return f"s3://{self._bucket}/{key}"
