"""What the functions of questions read from their environment."""

from dataclasses import dataclass

from adapters.settings.allowance import Allowance


@dataclass(frozen=True, slots=True)
class QuestionsApiSettings(Allowance):
    """ingest.questions.questions_api: rate_limit_per_minute counts a caller's answers.

    fingerprint_secret_arn: the secret with the keys of the fingerprints' hash (rules/key_ring.py).
    """

    questions_table: str
    responses_table: str
    answer_lines_table: str
    subscriptions_table: str
    user_stats_table: str
    stats_shards: int
    bp_events_table: str
    idempotency_keys_table: str
    user_streaks_table: str
    fingerprint_secret_arn: str
    redis_url: str
    rate_limit_per_minute: int
    commands_per_minute: int
    open_questions_max: int
    subscriptions_max: int
    rule_books_table: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class PollsApiSettings(Allowance):
    """ingest.questions.polls_api. The places of waiting polls are in limits_table."""

    questions_table: str
    responses_table: str


@dataclass(frozen=True, slots=True)
class AnswersSettings:
    """processors.questions.answers: what it cannot count goes to failure_queue_url."""

    responses_table: str
    user_stats_table: str
    stats_shards: int
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class SubscriptionsSettings:
    """ingest.questions.subscriptions: the part of QuestionsApiSettings that its routes need."""

    subscriptions_table: str
    redis_url: str
    limits_table: str
    commands_per_minute: int
    subscriptions_max: int


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """processors.questions.notify: what it cannot announce goes to failure_queue_url.

    platform_application_arn: SNS's platform application for FCM; "": no phone is told. outgoing_webhooks:
    whether endpoints are told of closed questions; what follows is for that.
    """

    announcement_queue_url: str
    platform_application_arn: str
    failure_queue_url: str
    outgoing_webhooks: bool
    notifications_table: str
    webhook_endpoints_table: str
    event_bus_name: str
    deliver_function: str


@dataclass(frozen=True, slots=True)
class FanOutSettings:
    """processors.questions.fan_out: see NotifySettings."""

    questions_table: str
    subscriptions_table: str
    announcement_queue_url: str
    platform_application_arn: str
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class ExpireQuestionsSettings:
    """processors.questions.expire_questions."""

    questions_table: str


@dataclass(frozen=True, slots=True)
class RemindersSettings:
    """processors.questions.reminders: see FanOutSettings."""

    user_streaks_table: str
    subscriptions_table: str
    platform_application_arn: str
