"""Settings of the functions of the live view, the web page and webhook endpoints."""

from dataclasses import dataclass

from adapters.settings.common import Allowance


@dataclass(frozen=True, slots=True)
class OperationsApiSettings(Allowance):
    """Read by the function ingest.operations_api."""

    redis_url: str
    lake_bucket: str
    queue_urls: (
        str  # JSON: a queue's name -> its URL. Messages of a queue named ...Failures need an operator.
    )


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Read by the function ingest.page."""

    oidc_authority: str  # the issuer's URL; "": people bring a token in the page's address
    oidc_client_id: str
    oidc_origins: str  # further origins that the sign-in speaks to (a Cognito domain), separated by spaces


@dataclass(frozen=True, slots=True)
class EndpointsApiSettings(Allowance):
    """Read by the function ingest.endpoints_api."""

    notifications_table: str
    webhook_endpoints_table: str
    endpoint_secret_prefix: str  # of the names of endpoints' secrets, as hook_secret_prefix is of hooks'
    private_endpoints: bool  # whether endpoints may have private addresses; only on a laptop
    outgoing_webhooks: bool  # whether the deployment sends webhooks
    deliver_function: str  # the function that delivers notifications
