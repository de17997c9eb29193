"""The lead-ingestion queue, as a door puts on it."""

import json
from typing import Any

from adapters.leads.lead_payloads import LeadPayloads

# SQS takes 256 KB. What a consumer cannot process goes, with its reason, into one message more, in which each
# quote costs an escape: so the escaped text is what is measured.
MESSAGE_BYTES_MAX = 200 * 1024


class LeadQueue:
    """Puts messages on the queue; a large payload goes to the bucket."""

    def __init__(self, sqs: Any, url: str, payloads: LeadPayloads) -> None:
        self._sqs, self._url, self._payloads = sqs, url, payloads

    def put(self, message: dict[str, Any]) -> None:
        """Put one message; raises what SQS or S3 raise."""
        text = json.dumps(message, separators=(",", ":"))
        if "payload" in message and len(json.dumps(text)) > MESSAGE_BYTES_MAX:
            held = json.dumps(message["payload"], separators=(",", ":"), ensure_ascii=False)
            pointer = {"payload_ref": self._payloads.put_inbox(held)}
            rest = {name: each for name, each in message.items() if name != "payload"}
            text = json.dumps(rest | pointer, separators=(",", ":"))
        self._sqs.send_message(QueueUrl=self._url, MessageBody=text)
