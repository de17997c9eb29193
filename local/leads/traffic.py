"""What leads cost (local/plan)."""

from local.plan.part_traffic import PartTraffic
from rules.parts import Part

TRAFFIC = PartTraffic(
    Part.LEADS,
    "lead_events",
    "webhooks",
    "webhooks a day",
    0,
    {"lead.next": 1, "lead.refresh.4": 1 / 4, "lead.read.features": 1},
)
