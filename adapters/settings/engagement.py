"""What the functions of engagement read from their environment."""

from dataclasses import dataclass

from adapters.settings.allowance import Allowance


@dataclass(frozen=True, slots=True)
class RulesApiSettings(Allowance):
    """ingest.book.rules_api."""

    rule_books_table: str


@dataclass(frozen=True, slots=True)
class FulfilmentSettings:
    """processors.fulfilment: redeemed rewards go to shipment_queue_url, what is none to failure_queue_url.

    Every change goes to table_items_delivery_stream.
    """

    shipment_queue_url: str
    failure_queue_url: str
    rewards_table: str
    table_items_delivery_stream: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class RanksSettings:
    """processors.ranks."""

    leaderboard_shards: int
    user_streaks_table: str
    boards_table: str
    redis_url: str


@dataclass(frozen=True, slots=True)
class ExpirySettings:
    """processors.expiry."""

    leaderboard_shards: int
    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rule_books_table: str
    redis_url: str
