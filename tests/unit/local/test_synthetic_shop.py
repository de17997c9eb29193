"""The demo's shop: what it sends is taken."""

import json
from datetime import UTC, datetime

from ingest.leads.payloads import DecodeContext
from local.demo import webhooks
from tests.support.webhooks import decode

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def test_every_webhook_of_the_shop_names_somebody() -> None:
    context = DecodeContext("demo-shop", "demo-shop", "USD", NOW.isoformat())
    for hook in (each for seed in range(10) for each in webhooks(40, seed, NOW)):
        found = decode(hook["source"], json.loads(json.dumps(hook["payload"])), context)
        assert found and all(each.identities for each in found), hook
