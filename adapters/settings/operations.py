"""What the functions of the live view, the web page and webhook endpoints read from their environment."""

from dataclasses import dataclass

from adapters.settings.common import Allowance


@dataclass(frozen=True, slots=True)
class OperationsApiSettings(Allowance):
    """ingest.operations_api."""

    redis_url: str
    lake_bucket: str
    queue_urls: str  # JSON, name -> URL. What waits in a queue named ...Failures needs an operator.


@dataclass(frozen=True, slots=True)
class PageSettings:
    """ingest.page."""

    oidc_authority: str  # the issuer's URL; "": people bring a token in the page's address
    oidc_client_id: str
    oidc_origins: str  # further origins that the sign-in speaks to (a Cognito domain), separated by spaces


@dataclass(frozen=True, slots=True)
class EndpointsApiSettings(Allowance):
    """ingest.endpoints_api."""

    notifications_table: str
    webhook_endpoints_table: str
    endpoint_secret_prefix: str
    private_endpoints: bool
    outgoing_webhooks: bool  # whether the deployment sends any
    deliver_function: str
