"""What the functions of outgoing webhooks read from their environment."""

from dataclasses import dataclass

from adapters.settings.common import Allowance


@dataclass(frozen=True, slots=True)
class EndpointsApiSettings(Allowance):
    """ingest.endpoints_api. outgoing_webhooks: whether the deployment sends any."""

    notifications_table: str
    webhook_endpoints_table: str
    endpoint_secret_prefix: str
    private_endpoints: bool
    outgoing_webhooks: bool
    deliver_function: str
