"""Settings of the functions of questions. Those of an HTTP API add their fields to Allowance's."""

from dataclasses import dataclass

from adapters.settings.common import Allowance


@dataclass(frozen=True, slots=True)
class QuestionsApiSettings(Allowance):
    """Read by the function ingest.questions.questions_api."""

    questions_table: str
    responses_table: str
    subscriptions_table: str
    user_stats_table: str
    stats_shards: int
    bp_events_table: str  # the table BPEvents: users' events, which earn points
    idempotency_keys_table: str
    user_streaks_table: str
    fingerprint_secret_arn: str  # the secret with the keys of the fingerprints' hash (rules/key_ring.py)
    redis_url: str
    rate_limit_per_minute: int  # answers of one caller
    commands_per_minute: int
    open_questions_max: int
    subscriptions_max: int
    rule_books_table: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class PollsApiSettings(Allowance):
    """Read by the function ingest.questions.polls_api. It counts waiting polls in limits_table."""

    questions_table: str
    responses_table: str
