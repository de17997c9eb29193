"""Time receipts on the deployed cloud: its keys, its permissions, its gateway (rule 16)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import urllib3

from local.api import Api
from local.stack import Stack
from rules.engagement.offline import new_receipt, read_receipt
from rules.key_ring import from_text

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")
DEVICE = "phone-0001"
DAY = timedelta(days=1)


def called(stack: Stack, me: Api, method: str, path: str, body: Any = None) -> tuple[str | None, Any]:
    """Ask as a device does; returns the receipt and the answer."""
    told = urllib3.request(
        method,
        stack.api_url + path,
        json=body,
        headers={"Authorization": f"Bearer {me.token}", "Streakline-Device": DEVICE},
        timeout=180,
    )
    return told.headers.get("Streakline-Time-Receipt"), told.json()


def test_a_receipt_is_given_and_lets_a_sailor_s_events_count(
    stack: Stack, me: Api, user: str, settled: Callable[..., None]
) -> None:
    secret = stack.client("secretsmanager").get_secret_value(SecretId=stack.output("ReceiptSecretId", "keys"))
    keys = from_text(secret["SecretString"]).keys
    now = datetime.now(UTC)
    given, _ = called(stack, me, "GET", f"/v1/users/{user}")
    assert given
    assert abs(read_receipt(given, keys, user, DEVICE).issued_at - now) < timedelta(minutes=1)

    def sent(key: str, receipt: str) -> Any:
        event = {
            "idempotency_key": key,
            "event_type": "CHECK_IN",
            "occurred_at": (now - 5 * DAY).isoformat(),
        }
        body = {"events": [event], "sent_at": datetime.now(UTC).isoformat(), "receipt": receipt}
        another, told = called(stack, me, "POST", "/v1/events", body)
        assert another
        return told["results"][0]

    of_last_week = new_receipt(keys[0], user, DEVICE, now - 7 * DAY)
    assert sent("a", of_last_week)["status"] == "accepted"
    assert sent("b", of_last_week)["status"] == "accepted"
    assert sent("c", of_last_week[:-1] + "x")["error"]["code"] == "receipt_refused"
    settled(user)
    day = (now - 5 * DAY).date()
    told = me.get(f"/v1/users/{user}/streak/explain?date={day}")
    assert told["event"]["offline_since"][:10] == str((now - 7 * DAY).date())
