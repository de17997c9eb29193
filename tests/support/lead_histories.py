"""Random histories of leads, their features by a plain reading of the rules, and their lake.

`features_of` is written without rules.leads.features: loops over all events, one feature at a time.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from adapters.platform.objects import Objects
from analytics.curation.row_staging import Staging
from analytics.lake.arrow import arrow_schema
from analytics.lake.bookkeeping import Bookkeeping, Counts
from analytics.lake.layout import Partition, curated_key
from rules.days import stamp
from rules.lake.entities import row_of
from rules.leads.lake_entities import LEAD_EVENTS
from rules.leads.lead_events import EVENT_TYPES, IDENTITY_TYPES, PURCHASE_TYPES, LeadEvent, to_item

BASE = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = 130
DID_SOMETHING = {
    *("form_submitted", "message_received", "page_viewed", "preference_stated", "objection_raised"),
    *(
        "purchase_completed",
        "campaign_opened",
        "campaign_clicked",
        "campaign_replied",
        "campaign_unsubscribed",
    ),
}
Values = dict[str, Any]


UNREADABLE: dict[str, tuple[Values, ...]] = {
    "order": (
        {},
        {"amount_minor": "5"},
        {"amount_minor": 1.5},
        {"amount_minor": -1},
        {"amount_minor": 10**30},
    ),
    "sentiment": ({"sentiment_milli": "5"}, {"sentiment_milli": 0.5}, {"sentiment_milli": True}),
    "campaign": ({}, {"campaign_id": ""}, {"campaign_id": 7}),
}


def is_readable(event: LeadEvent) -> bool:
    """Whether the live path takes anything from it; else it keeps it with the reason, and goes on."""
    amount, mood = event.payload.get("amount_minor"), event.payload.get("sentiment_milli", 0)
    campaign = event.payload.get("campaign_id")
    if event.event_type in PURCHASE_TYPES:
        amount = event.payload.get("foreign_minor", amount)
        return type(amount) is int and 0 <= amount <= 10**15
    if event.event_type in ("message_received", "form_submitted"):
        return type(mood) is int and abs(mood) <= 1000
    return not event.event_type.startswith("campaign") or (isinstance(campaign, str) and campaign != "")


def features_of(
    events: Iterable[LeadEvent], lead: str, as_of: datetime, known_by: bool = False, grace_days: int = 7
) -> Values:
    """By column of the lake; all None for a lead of whom nothing was known."""
    usable = [each for each in events if each.occurred <= as_of and is_readable(each)]
    if known_by:
        usable = [each for each in usable if datetime.fromisoformat(each.received_at) <= as_of]
    roots: dict[str, tuple[int, str]] = {}
    for each in usable:
        if each.event_type in ("leads_merged", "leads_unmerged"):
            for group in each.payload["groups"]:
                for leaf in group["leaves"]:
                    told = each.payload["change"], group["root"]
                    roots[leaf] = max(told, roots.get(leaf, told))
    root = roots.get(lead, (0, lead))[1]
    leaves = {lead, *(leaf for leaf, (_, its) in roots.items() if its == root)}
    own = [each for each in usable if each.lead_organization_id in leaves]
    values = _values(own, as_of, grace_days)
    return values if own else dict.fromkeys(values)


def _values(own: list[LeadEvent], as_of: datetime, grace_days: int) -> Values:
    def age(each: LeadEvent) -> int:
        return (as_of.astimezone(UTC).date() - each.occurred.date()).days

    placed = [each for each in own if each.event_type == "purchase_completed"]
    cancelled = [each for each in own if each.event_type == "order_cancelled"]
    by_age = Counter(map(age, placed))
    by_age.subtract(map(age, cancelled))
    ages = [each for each, count in by_age.items() if count > 0]
    priced = sum("amount_minor" in e.payload for e in placed) - sum(
        "amount_minor" in e.payload for e in cancelled
    )

    def spent(days: int) -> Any:
        signs = {"purchase_completed": 1, "order_charged": 1, "order_refunded": -1, "order_cancelled": -1}
        told = [each for each in own if each.event_type in signs and age(each) < days]
        return sum(signs[each.event_type] * each.payload.get("amount_minor", 0) for each in told)

    def orders(days: int) -> int:
        return sum(count for each, count in by_age.items() if each < days)

    moods = [
        each.payload["sentiment_milli"]
        for each in own
        if each.event_type in ("message_received", "form_submitted")
        and "sentiment_milli" in each.payload
        and age(each) < 30
    ]
    ever = 10**9
    return {
        "monetary_total_minor": spent(ever),
        "monetary_30d_minor": spent(30),
        "monetary_90d_minor": spent(90),
        "monetary_365d_minor": spent(365),
        "frequency_purchases_30d": orders(30),
        "frequency_purchases_90d": orders(90),
        "frequency_purchases_365d": orders(365),
        "average_order_value_minor": half_up(spent(ever), priced),
        "days_since_last_purchase": min(ages, default=None),
        "tenure_days": max(ages, default=None),
        "has_purchased": orders(ever) > 0,
        "recency_days": min((age(each) for each in own if each.event_type in DID_SOMETHING), default=None),
        "sentiment_avg_30d_milli": half_up(sum(moods), len(moods)),
        "campaign_ignored": _ignored(own, age, grace_days),
    }


def _ignored(own: list[LeadEvent], age: Any, grace_days: int) -> int:
    ages: dict[str, list[int]] = defaultdict(list)
    answered = set()
    for each in own:
        if each.event_type == "campaign_sent":
            ages[each.payload["campaign_id"]].append(age(each))
        elif each.event_type.startswith("campaign_"):
            answered.add(each.payload["campaign_id"])
    return sum(grace_days <= min(found) < 90 for name, found in ages.items() if name not in answered)


def half_up(total: int, count: int) -> int | None:
    if count <= 0:
        return None
    exact = Fraction(total, count) + Fraction(1, 2)
    return exact.numerator // exact.denominator


class History:
    """Events of some leads in two organizations, merges and unmerges among them; the same for a seed."""

    def __init__(self, seed: int, leads: int = 12, events: int = 160, times: int = 12) -> None:
        self.random = random.Random(seed)
        self.leads = [f"lead-{number:02}" for number in range(leads)]
        self.events: list[LeadEvent] = []
        self.groups: dict[str, tuple[str, ...]] = {lead: (lead,) for lead in self.leads}  # by root
        self.roots: dict[str, str] = {}
        # Few instants: so that many are equal, at the ends of dates, and those of labels.
        self.instants = [
            BASE + timedelta(days=self.random.randrange(DAYS), seconds=clock, microseconds=-tick)
            for clock in (0, 43_200, 86_400)
            for tick in (0, 1)
            for _ in range(times)
        ]
        changes = sorted(self.random.choices(self.instants, k=leads // 2))
        for number, moment in enumerate(changes, 1):
            self._change(number, moment)
        for _ in range(events):
            self._event(self.random.choice(self.leads[:-1]))  # the last one never does anything

    def organization(self, lead: str) -> str:
        return f"org-{int(lead[-2:]) % 2}"

    def _add(self, lead: str, kind: str, moment: datetime, payload: Values, name: str) -> None:
        delay = self.random.choice(
            [timedelta(0, -240), timedelta(0, 2), timedelta(0, 7200), timedelta(3), timedelta(100)]
        )
        source = "identity" if kind in IDENTITY_TYPES else self.random.choice(["shop", "mail"])
        self.events.append(
            LeadEvent(
                self.organization(lead), lead, lead, f"{self.organization(lead)}/{source}", "generic", name,
                kind, stamp(moment), stamp(moment + delay), payload,
            )
        )  # fmt: skip

    def _event(self, lead: str) -> None:
        kind = self.random.choice(sorted(EVENT_TYPES - IDENTITY_TYPES - {"order_cancelled"}))
        payload: Values = {}
        if kind in PURCHASE_TYPES:
            name = self.random.choice(["amount_minor", "amount_minor", "foreign_minor"])
            payload = {name: self.random.choice([0, 1, 333, 10**6, 2**41]), "order_id": "o"}
            payload["currency"] = "USD" if name == "amount_minor" else self.random.choice(["EUR", "JPY"])
        if kind in ("message_received", "form_submitted") and self.random.random() < 0.8:
            payload = {"sentiment_milli": self.random.randint(-1000, 1000)}
        if kind.startswith("campaign"):
            payload = {"campaign_id": self.random.choice(["spring", "o'hara", "größe"])}
        if self.random.random() < 0.1:
            groups = {"order": kind in PURCHASE_TYPES, "campaign": kind.startswith("campaign")}
            groups["sentiment"] = kind in ("message_received", "form_submitted")
            payload = next((self.random.choice(UNREADABLE[name]) for name in groups if groups[name]), payload)
        moment = self.random.choice(self.instants)
        self._add(lead, kind, moment, payload, f"e{len(self.events)}")
        # No cancellation stands alone: rules.leads.orders tells one only of an order that it told before.
        if kind == "purchase_completed" and self.random.random() < 0.3:
            self._add(lead, "order_cancelled", moment, payload, f"e{len(self.events)}")

    def _change(self, number: int, moment: datetime) -> None:
        """Merge two groups of an organization, or split one; tells how all that it touched is afterwards."""
        root = self.random.choice(sorted(self.groups))
        leaves = self.groups.pop(root)
        others = [each for each in self.groups if self.organization(each) == self.organization(root)]
        if len(leaves) > 1 and self.random.random() < 0.4:
            at, kind = self.random.randrange(1, len(leaves)), "leads_unmerged"
            parts = [tuple(sorted(leaves)[:at]), tuple(sorted(leaves)[at:])]
        else:
            parts, kind = [leaves + self.groups.pop(self.random.choice(others))], "leads_merged"
        made = {self.random.choice(part): part for part in parts}
        self.groups |= made
        # Only whom it moved, as changes are told; or all, as they were told before.
        was = {} if self.random.random() < 0.3 else self.roots
        groups = [
            {"root": root, "leaves": [root, *(each for each in part if each != root != was.get(each, each))]}
            for root, part in made.items()
        ]
        self.roots |= {each: root for root, part in made.items() for each in part}
        self._add(next(iter(made)), kind, moment, {"change": number, "groups": groups}, str(number))

    def labels(self, count: int) -> list[tuple[str, datetime]]:
        # Labels of the events' own dates, and at both edges of each window after them.
        steps = [timedelta(microseconds=tick) for tick in (-1, 0, 1)]
        steps += [timedelta(days) for days in (2, 3, 29, 30, 89, 90, 364, 365)]
        return [
            (
                self.random.choice([*self.leads, "nobody"]),
                self.random.choice(self.instants) + self.random.choice(steps),
            )
            for _ in range(count)
        ]


def row(event: LeadEvent) -> Values:
    """The event as a row of its table's type, as curation keeps it."""
    found = row_of(LEAD_EVENTS, {k: v for k, v in to_item(event).items() if v is not None}, BASE)
    for name in ("occurred_at", "received_at"):
        found[name] = datetime.fromisoformat(found[name])
    return {name: found.get(name) for name in arrow_schema(LEAD_EVENTS).names}


def write(objects: Objects, rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write rows of lead_events as curated files of whole days, by the project's own writer."""
    days: dict[str, list[Any]] = defaultdict(list)
    for each in rows:
        days[f"{each['occurred_at']:%Y-%m-%d}"].append(each)
    path, fields = folder / "one.parquet", len(LEAD_EVENTS.fields)
    for dt, found in days.items():
        staging = Staging(LEAD_EVENTS, folder)
        table = pa.Table.from_pylist(found, schema=arrow_schema(LEAD_EVENTS))
        staging.add_rows(table, np.arange(len(found)))
        assert staging.write(
            path, lambda kept: Bookkeeping(fields, Counts(kept, kept))
        ).counts.curated == len(found)
        objects.put(curated_key(Partition("lead_events", dt, None)), path.read_bytes())
