"""Which types of memory there are, and what holds for all memories of a type."""

from dataclasses import dataclass
from enum import StrEnum


class ValueRule(StrEnum):
    """How an entry's value follows from its evidence, and which evidence agrees with it."""

    LATEST = "latest"  # the newest value; pieces with the same value agree
    FACT = "fact"  # the newest value; all pieces agree that there was something
    MEAN = "mean"  # the mean of thousandths; pieces with the same sign agree
    REACTIONS = "reactions"  # the newest date of each value; all pieces agree


@dataclass(frozen=True, slots=True)
class MemoryType:
    """What holds for all memories of a type. A piece of evidence weighs half after half_life_days.

    An entry expires retention_days after its newest evidence.
    """

    name: str
    value_rule: ValueRule
    half_life_days: int
    retention_days: int


PREFERENCE = MemoryType("preference", ValueRule.LATEST, half_life_days=180, retention_days=730)
PURCHASE = MemoryType("purchase", ValueRule.FACT, half_life_days=365, retention_days=1095)
SENTIMENT = MemoryType("sentiment", ValueRule.MEAN, half_life_days=30, retention_days=180)
# Kept for five years, so that an old reaction still tells that the lead did not ignore the campaign.
CAMPAIGN_CONTACT = MemoryType("campaign_contact", ValueRule.REACTIONS, half_life_days=90, retention_days=1826)
OBJECTION = MemoryType("objection", ValueRule.FACT, half_life_days=90, retention_days=365)
# Whoever said "stop" never has to say it again: what ends it is a newer word, and not time.
CONSENT = MemoryType("consent", ValueRule.LATEST, half_life_days=36_500, retention_days=36_500)
TYPES = {each.name: each for each in (PREFERENCE, PURCHASE, SENTIMENT, CAMPAIGN_CONTACT, OBJECTION, CONSENT)}
