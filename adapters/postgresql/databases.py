"""Which way to PostgreSQL a URL names: the driver's, or the RDS Data API's (docs/decisions/0013)."""

from collections.abc import Callable
from urllib.parse import urlsplit

from adapters.postgresql.postgres import Postgres
from adapters.postgresql.rds_data import RdsData
from adapters.postgresql.sql import Database


def database(url: str, password: Callable[[], str] | None = None) -> Database:
    """Return the database of an IDENTITY_URL. Nothing is opened yet.

    password: for a postgresql URL without one. Raises ValueError that says what a URL looks like.
    """
    return RdsData(url) if urlsplit(url).scheme == "rds-data" else Postgres(url, password)
