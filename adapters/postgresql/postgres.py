"""PostgreSQL as an IDENTITY_URL names it: by its driver, or by the RDS Data API (docs/decisions/0013).

With the driver a process has one connection, which it opens when needed and then keeps. It signs in to RDS by
a token, and checks RDS's certificate.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

import botocore
import botocore.session
from botocore.signers import generate_db_auth_token

from adapters.postgresql.rds_data import RdsData
from adapters.postgresql.sql import (
    LOST_RACES,
    URL_FORMS,
    Database,
    PostgresRefused,
    PostgresUnavailable,
    may_pass,
)

BUNDLE = "rds-global-bundle.pem"
T = TypeVar("T")
CONNECT_SECONDS_MAX = 5
# These settings notice a peer that is gone. How long a statement may take is set on the role.
NETWORK: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 5000,
}


def database(url: str, password: Callable[[], str] | None = None) -> Database:
    """Return the database of an IDENTITY_URL. Nothing is opened yet.

    password: for a postgresql URL without one. Raises ValueError that says what a URL looks like.
    """
    return RdsData(url) if urlsplit(url).scheme == "rds-data" else Postgres(url, password)


class Postgres:
    """The process's connection to one database; see adapters.postgresql.sql.Database."""

    def __init__(self, url: str, password: Callable[[], str] | None = None) -> None:
        """url: postgresql://user[:password]@host:port/database.

        If the url has no password, the connection uses TLS. The password then comes from `password`, or it is
        a token of the process's AWS role. Raises ValueError.
        """
        self._url, self._password = urlsplit(url), password
        if self._url.scheme != "postgresql" or not (self._url.hostname and self._url.username):
            raise ValueError(URL_FORMS)
        self._connection: Any = None

    def connection(self) -> Any:
        """Return the open connection (autocommit), or open one; raises what psycopg raises."""
        if self._connection is None or self._connection.closed:
            import psycopg  # noqa: PLC0415 (functions that use the Data API have no driver)

            self._connection = psycopg.connect(
                **connection_arguments(self._url, self._password),
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=CONNECT_SECONDS_MAX,
                application_name="streakline",
                **NETWORK,
            )
        return self._connection

    def close(self) -> None:
        """Drop the connection; the next use opens another."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def run(self, work: Callable[[Any], T], attempts: int = 2) -> T:
        """Return work(connection); see adapters.postgresql.sql.Database."""
        import psycopg  # noqa: PLC0415 (functions that use the Data API have no driver)

        for attempt in range(attempts):
            try:
                return work(self.connection())
            except psycopg.Error as error:
                if error.sqlstate in LOST_RACES or self._drop_if_broken():
                    if attempt < attempts - 1:
                        continue
                elif not _may_succeed_later(error):
                    if error.sqlstate is None:
                        raise  # The driver's own: a statement that does not fit its values.
                    raise PostgresRefused(error.sqlstate, str(error.diag.message_primary)) from error
                text = f"{type(error).__name__}: {error}"
                raise PostgresUnavailable(text, error.sqlstate or "") from error
        raise AssertionError("no attempt was allowed")

    def _drop_if_broken(self) -> bool:
        # If no connection could be opened, the server is down, and not just this connection.
        is_broken = self._connection is not None and self._connection.closed
        if is_broken:
            self.close()
        return is_broken


def _may_succeed_later(error: Any) -> bool:
    """Return whether a later attempt may succeed.

    An operational error without a SQLSTATE is one of the connection.
    """
    import psycopg  # noqa: PLC0415 (functions that use the Data API have no driver)

    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError)
    return may_pass(error.sqlstate)


def connection_arguments(url: SplitResult, password: Callable[[], str] | None = None) -> dict[str, Any]:
    """Return psycopg's arguments for a url as Postgres takes it."""
    host, port, user = str(url.hostname), url.port or 5432, unquote(str(url.username))
    plain = {"host": host, "port": port, "user": user, "dbname": url.path.strip("/") or user}
    if url.password is not None:
        return {**plain, "password": unquote(url.password)}
    secret = password() if password else iam_token(host, port, user)
    return {**plain, "password": secret, "sslmode": "verify-full", "sslrootcert": ca_bundle()}


def iam_token(host: str, port: int, user: str) -> str:
    """Return what RDS takes as a password for 15 minutes: a request to connect, signed by the AWS role.

    The client of STS signs it, because the one of RDS would load a large service model.
    """
    signer = botocore.session.get_session().create_client("sts")
    token: str = generate_db_auth_token(signer, host, port, user)
    return token


@cache
def ca_bundle() -> str:
    """Return the path of a file with the authorities that sign RDS's certificates.

    Instances have RDS's own authorities, RDS Proxy has common ones. Raises FileNotFoundError if the layer was
    built without RDS's own (infra/layer/rds-bundle).
    """
    bundles = [path for folder in sys.path if (path := Path(folder) / BUNDLE).is_file()]
    if not bundles:
        raise FileNotFoundError(
            f"{BUNDLE} is not in the function's layer, so RDS's certificate cannot be checked: build the"
            " layer again, without LAYER_RDS_BUNDLE"
        )
    files = [Path(botocore.__file__).parent / "cacert.pem", bundles[0]]
    with tempfile.NamedTemporaryFile(suffix=".pem", delete=False) as out:
        out.write(b"\n".join(file.read_bytes() for file in files))
    return out.name
