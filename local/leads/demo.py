"""Leads in the demo: a shop's invented webhooks."""

import time
from collections import Counter
from datetime import UTC, datetime

from local import replay, verify
from local.api import Api
from local.cloud import patience
from local.demo_input import ORGANIZATION, webhooks
from local.part_demo import PartDemo
from local.stack import Stack
from rules.parts import Part

SHOP_CUSTOMERS = 40


def send_webhooks(stack: Stack, now: datetime, seed: int) -> None:
    """Send a shop's webhooks, and compare its customers' features with an independent count.

    Half of them go by HTTP, half by the stream. Raises RuntimeError if any is refused or any feature differs.
    """
    events = webhooks(SHOP_CUSTOMERS, seed, now)
    counts = Counter(event["source"] for event in events)
    by_source = ", ".join(f"{count} {source}" for source, count in counts.items())
    print(f"\na shop's webhooks, unordered, some twice: {by_source}", flush=True)
    began = time.monotonic()
    half = len(events) // 2
    outcome = replay.post_webhooks(stack, events[:half])
    if set(outcome.counts) != {"accepted"}:
        raise RuntimeError(f"webhooks were refused, the first: {outcome.refused[0]}")
    replay.queue_webhooks(stack, events[half:])
    patience.drain_leads(stack)
    api, expected = Api(stack), verify.expect_features(events, datetime.now(UTC).date())
    if wrong := verify.compare_features(api, expected):
        raise RuntimeError(f"{len(wrong)} customers' features are wrong, the first: {wrong[0]}")
    seconds = time.monotonic() - began
    print(f"  {len(expected)} customers' features equal an independent count, after {seconds:.1f} s")
    lead = api.get(verify.LEAD.format(ORGANIZATION, "000-0"))["lead_id"]
    features = api.get(f"/v1/leads/{lead}/features")["features"]
    print("  the first: " + ", ".join(f"{name} {value}" for name, value in features.items()))


DEMO = PartDemo(Part.LEADS, send=send_webhooks)
