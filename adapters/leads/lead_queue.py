"""Puts messages on the lead-ingestion queue."""

import json
from typing import Any

from adapters.leads.lead_payloads import LeadPayloads

# SQS takes 256 KB. If a message is poison, its consumer puts it with the reason into a second message, as
# JSON text in JSON. That escapes each quote, so we measure the escaped text.
MESSAGE_BYTES_MAX = 200 * 1024


class LeadQueue:
    """Puts messages on the queue, and a payload that is too large for it into the bucket."""

    def __init__(self, sqs: Any, url: str, payloads: LeadPayloads) -> None:
        self._sqs, self._url, self._payloads = sqs, url, payloads

    def put(self, message: dict[str, Any]) -> None:
        """Put one message; raises what SQS or S3 raise."""
        text = json.dumps(message, separators=(",", ":"))
        if "payload" in message and len(json.dumps(text)) > MESSAGE_BYTES_MAX:
            held = json.dumps(message["payload"], separators=(",", ":"))
            pointer = {"payload_ref": self._payloads.put_inbox(held)}
            rest = {name: each for name, each in message.items() if name != "payload"}
            text = json.dumps(rest | pointer, separators=(",", ":"))
        self._sqs.send_message(QueueUrl=self._url, MessageBody=text)
