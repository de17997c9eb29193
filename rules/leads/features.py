"""A lead's features: each is declared here once, and the live path and the batch both read the declaration.

Time is counted in calendar dates, UTC. A window of 90 days is the 90 dates that end with the date asked
about. Amounts are whole minor units and sentiment is whole thousandths, so sums are exact, and the order in
which events came does not matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from rules.leads.lead_events import ACTIVITY_TYPES, CAMPAIGN_TYPES, PURCHASE_TYPES, SENTIMENT_TYPES

# The schedule follows a lead for 90 dates after its last activity, also if all of its windows are empty.
ACTIVE_DAYS_MAX = 91
# A campaign is ignored once it has gone unanswered for this many dates, unless a deployment has another
# number.
CAMPAIGN_GRACE_DAYS = 7
CAMPAIGN_DAYS_MAX = 90


class Input(StrEnum):
    """What a feature is computed from. All but campaigns are series of (date, count, amount)."""

    PURCHASES = "purchases"  # what each type adds: lead_events.ORDER_SIGNS
    SENTIMENT = "sentiment"  # count 1, thousandths
    ACTIVITY = "activity"  # what the lead did itself
    CAMPAIGNS = "campaigns"  # memory of campaign contacts


class Aggregate(StrEnum):
    """How a feature is computed from the part of its input that lies in the window."""

    SUM = "sum"  # of amounts; 0 of nothing
    COUNT = "count"
    ANY = "any"  # whether there is one that counts
    AVERAGE = "average"  # amounts by count, rounded half up; None of nothing
    DAYS_SINCE_FIRST = "days_since_first"  # of those that count; None of nothing
    DAYS_SINCE_LAST = "days_since_last"
    IGNORED = "ignored"  # campaigns sent in the window, the grace ago or before, with no reaction at all


class Unit(StrEnum):
    """What a value counts. Minor units are shown with two decimals, thousandths with three."""

    MINOR = "minor"
    MILLI = "milli"
    DAYS = "days"
    COUNT = "count"
    FLAG = "flag"


DECIMALS = {Unit.MINOR: 2, Unit.MILLI: 3}
TRIGGERS: Mapping[Input, frozenset[str]] = {
    Input.PURCHASES: PURCHASE_TYPES,
    Input.SENTIMENT: SENTIMENT_TYPES,
    Input.ACTIVITY: ACTIVITY_TYPES,
    Input.CAMPAIGNS: CAMPAIGN_TYPES,
}


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature."""

    name: str
    input: Input
    aggregate: Aggregate
    unit: Unit
    doc: str
    window_days: int | None = None  # how many dates count, the date asked about included; None: all

    @property
    def triggers(self) -> frozenset[str]:
        """The event types that change it."""
        return TRIGGERS[self.input]


PURCHASES, SENTIMENT, ACTIVITY, CAMPAIGNS = Input
FEATURES = (
    Feature("monetary_total", PURCHASES, Aggregate.SUM, Unit.MINOR, "spent, less refunds"),
    Feature("monetary_30d", PURCHASES, Aggregate.SUM, Unit.MINOR, "the same in 30 dates", 30),
    Feature("monetary_90d", PURCHASES, Aggregate.SUM, Unit.MINOR, "the same in 90 dates", 90),
    Feature("monetary_365d", PURCHASES, Aggregate.SUM, Unit.MINOR, "the same in 365 dates", 365),
    Feature("frequency_purchases_30d", PURCHASES, Aggregate.COUNT, Unit.COUNT, "orders in 30 dates", 30),
    Feature("frequency_purchases_90d", PURCHASES, Aggregate.COUNT, Unit.COUNT, "orders in 90 dates", 90),
    Feature("frequency_purchases_365d", PURCHASES, Aggregate.COUNT, Unit.COUNT, "orders in 365 dates", 365),
    Feature(
        "average_order_value", PURCHASES, Aggregate.AVERAGE, Unit.MINOR, "spent, less refunds, for each order"
    ),
    Feature(
        "days_since_last_purchase",
        PURCHASES,
        Aggregate.DAYS_SINCE_LAST,
        Unit.DAYS,
        "days since the last order",
    ),
    Feature("tenure_days", PURCHASES, Aggregate.DAYS_SINCE_FIRST, Unit.DAYS, "days since the first order"),
    Feature("has_purchased", PURCHASES, Aggregate.ANY, Unit.FLAG, "whether there is an order"),
    Feature(
        "recency_days", ACTIVITY, Aggregate.DAYS_SINCE_LAST, Unit.DAYS, "days since the lead's last activity"
    ),
    Feature(
        "sentiment_avg_30d", SENTIMENT, Aggregate.AVERAGE, Unit.MILLI, "-1 to 1, of messages in 30 dates", 30
    ),
    Feature(
        *("campaign_ignored", CAMPAIGNS, Aggregate.IGNORED, Unit.COUNT),
        "campaigns of 90 dates without any reaction, less the newest (setting CampaignGraceDays)",
        CAMPAIGN_DAYS_MAX,
    ),
)
BY_NAME = {feature.name: feature for feature in FEATURES}
Value = int | bool | None
ShownValue = Decimal | int | bool | None


@dataclass(frozen=True, slots=True)
class Contact:
    """One campaign, as a lead met it."""

    sent: int | None  # the date of the newest sending, an ordinal; None: unknown
    reacted: bool


def shown_value(feature: Feature, value: Value) -> ShownValue:
    """Return a value as people read it: amounts and sentiment with their decimals."""
    decimals = DECIMALS.get(feature.unit)
    if decimals is None or value is None:
        return value
    return Decimal(int(value)).scaleb(-decimals)
