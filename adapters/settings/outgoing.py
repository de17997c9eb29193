"""What the functions of outgoing webhooks read from their environment."""

from dataclasses import dataclass

from adapters.settings.allowance import Allowance


@dataclass(frozen=True, slots=True)
class TellingSettings:
    """processors.outgoing.telling: deliver_function is woken; event_bus_name: "" for none."""

    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rule_books_table: str
    event_table: str
    notifications_table: str
    webhook_endpoints_table: str
    event_bus_name: str
    deliver_function: str
    failure_queue_url: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class DeliverSettings:
    """processors.outgoing.delivering: what was tried for three days goes to failure_queue_url.

    endpoint_secret_prefix: of the names of endpoints' secrets. private_endpoints: whether an endpoint may be
    at a private address, as on a laptop.
    """

    notifications_table: str
    webhook_endpoints_table: str
    event_bus_name: str
    endpoint_secret_prefix: str
    private_endpoints: bool
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class EndpointsApiSettings(Allowance):
    """ingest.outgoing.endpoints_api. outgoing_webhooks: whether the deployment sends any."""

    notifications_table: str
    webhook_endpoints_table: str
    endpoint_secret_prefix: str
    private_endpoints: bool
    outgoing_webhooks: bool
    deliver_function: str
