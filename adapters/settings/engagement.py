"""Settings of the functions of accounts and of the book of rules."""

from dataclasses import dataclass

from adapters.settings.common import Allowance


@dataclass(frozen=True, slots=True)
class RulesApiSettings(Allowance):
    """Read by the function ingest.book."""

    rule_books_table: str
    lake_bucket: str
    what_if_function: str  # works out what another book would have led to


@dataclass(frozen=True, slots=True)
class UsersApiSettings(Allowance):
    """Read by the function ingest.engagement.users_api."""

    leaderboard_shards: int
    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rewards_table: str
    bp_events_table: str
    idempotency_keys_table: str
    boards_table: str
    redis_url: str
    rule_books_table: str
    fingerprint_secret_arn: str
    commands_per_minute: int
    erasures_table: str
    erasure_secret_arn: str
    receipt_secret_arn: str
    event_hot_days: int  # after this many days events leave their table; 0: they expire
    past_function: str  # the function that reads past events from the lake
