"""What the live view's function and the web page's read from their environment."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperationsApiSettings:
    """ingest.operations_api. queue_urls: JSON, name -> URL; one named ...Failures waits for an operator."""

    redis_url: str
    lake_bucket: str
    queue_urls: str


@dataclass(frozen=True, slots=True)
class PageSettings:
    """ingest.page. oidc_authority: the issuer's URL; empty: people come with a token in the address.

    oidc_origins: further origins that the sign-in speaks to (a Cognito domain), divided by spaces.
    """

    oidc_authority: str
    oidc_client_id: str
    oidc_origins: str
