"""What sources send: one file a source in tests/webhooks, with good payloads and what must stay in them.

{"private": [words of the payloads that no derived event may have], "payloads": [payload]}
"""

import copy
import json
from datetime import UTC, datetime
from typing import Any

from ingest.leads import sources
from ingest.leads.readers import DecodeContext, DecodedEvent
from rules.days import stamp
from tests.support.template import ROOT

FOLDER = ROOT / "tests" / "webhooks"
SAMPLES: dict[str, dict[str, Any]] = {
    each.stem: json.loads(each.read_text(encoding="utf-8")) for each in sorted(FOLDER.glob("*.json"))
}
GOOD: dict[str, list[Any]] = {name: each["payloads"] for name, each in SAMPLES.items()}
NOW = datetime(2026, 3, 10, 6, tzinfo=UTC)
CONTEXT = DecodeContext("acme", "shop", "USD", stamp(NOW), "US")
ORDER, REFUND = GOOD["ecommerce"]
(FORM,) = GOOD["web_form"]
MAIL: dict[str, Any] = GOOD["email_campaign"][1]
(GENERIC,) = GOOD["generic"]


def text(words: str, number: int = 1, **more: Any) -> dict[str, Any]:
    message = {"from": "16505551234", "id": f"wamid.{number}", "timestamp": "1772000000", "type": "text"}
    return {**message, "text": {"body": words}, **more}


def whatsapp(*messages: Any, **value: Any) -> dict[str, Any]:
    inner = {"messaging_product": "whatsapp", "messages": list(messages), **value}
    return {
        "object": "whatsapp_business_account",
        "entry": [{"changes": [{"field": "messages", "value": inner}]}],
    }


def system(kind: str, number: object = 7, **ids: Any) -> dict[str, Any]:
    """WhatsApp's word of another number or id. ids: `from` stands beside, all others in `system`."""
    outer = {"from": ids.pop("from")} if "from" in ids else {}
    message = {"id": f"wamid.system.{number}", "timestamp": "1772000000", "type": "system", **outer}
    return {**message, "system": {"body": "User Ann changed", "type": kind, **ids}}


def preference(value: str, **more: Any) -> dict[str, Any]:
    """WhatsApp's word that somebody has stopped marketing messages, or resumed them."""
    stated = {"category": "marketing_messages", "value": value, "timestamp": 1772000000, **more}
    inner = {"messaging_product": "whatsapp", "user_preferences": [stated]}
    return {"entry": [{"changes": [{"field": "user_preferences", "value": inner}]}]}


def generic(event_type: str, **data: Any) -> dict[str, Any]:
    return {**GENERIC, "event_type": event_type, "data": data}


def decode(source: str, payload: Any, context: DecodeContext = CONTEXT) -> list[DecodedEvent]:
    return sources.source_named(source).decode(payload, context)


def changed(payload: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The payload with one field changed; ... takes it away."""
    whole = copy.deepcopy(payload)
    *above, last = path.split(".")
    holder: Any = whole
    for name in above:
        holder = holder[int(name) if isinstance(holder, list) else name]
    if value is ...:
        del holder[last]
    else:
        holder[int(last) if isinstance(holder, list) else last] = value
    return whole
