"""A sign-in of your own without OpenID Connect: a key, and two documents by which a stack knows it."""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey, generate_private_key
from jwt.algorithms import RSAAlgorithm

from local.command import command, option
from local.paths import write_secret

ABOUT, KEYS = ".well-known/openid-configuration", ".well-known/jwks.json"


def issuer_documents(issuer: str, keys: list[Mapping[str, Any]]) -> dict[str, str]:
    """Return the documents that an authorizer reads, by their paths below the issuer's URL.

    keys: as public_jwk returns them. A token is valid if one of them verifies it.
    """
    about = {"issuer": issuer, "jwks_uri": f"{issuer}/{KEYS}"}
    return {ABOUT: json.dumps(about, indent=2), KEYS: json.dumps({"keys": keys}, indent=2)}


def public_jwk(key: RSAPublicKey, key_id: str) -> dict[str, Any]:
    """Return a public key as a JWK. A token names it in its header `kid`."""
    return {**json.loads(RSAAlgorithm.to_jwk(key)), "kid": key_id, "alg": "RS256", "use": "sig"}


def new_private_key() -> tuple[RSAPrivateKey, bytes]:
    """Return a new private key, and its text (PEM)."""
    key = generate_private_key(public_exponent=65537, key_size=2048)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    return key, key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)


def _checked_issuer(_context: click.Context, _option: click.Parameter, url: str | None) -> str | None:
    if url is None:  # a shell asks how the command may go on
        return None
    parts = urlsplit(url.strip())
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment:
        raise click.BadParameter("must be an https address without a query, such as https://app.example.com")
    return parts.geturl().rstrip("/")


@command(
    "key sign-in --issuer https://app.example.com", "key sign-in --issuer https://app.example.com --next"
)
@option(
    "--issuer", required=True, metavar="URL", callback=_checked_issuer, help="where you serve the documents"
)
@option("--folder", default="sign-in", type=click.Path(file_okay=False, path_type=Path), show_default=True)
@option("--next", "is_next", is_flag=True, help="make a further key, to replace the one in use")
def sign_in_command(issuer: str, folder: Path, is_next: bool) -> Any:
    """Make a key with which your app signs its users' tokens.

    FOLDER/KEY.pem is the secret. FOLDER/public is to be served at the issuer's URL. Keys that are there stay:
    delete a key from .well-known/jwks.json two hours after the last token that it has signed has expired.
    """
    public = folder / "public"
    served = public / KEYS
    keys: list[Mapping[str, Any]] = json.loads(served.read_text())["keys"] if served.exists() else []
    if keys and not is_next:
        raise click.ClickException(f"{served} has a key already; --next makes a further one")
    key_id = f"key-{len(keys) + 1}-{secrets.token_hex(4)}"
    key, pem = new_private_key()
    write_secret(folder / f"{key_id}.pem", pem)
    for path, text in issuer_documents(issuer, [*keys, public_jwk(key.public_key(), key_id)]).items():
        (public / path).parent.mkdir(parents=True, exist_ok=True)
        (public / path).write_text(f"{text}\n")
    return {
        "key_id": key_id,
        "private_key": str(folder / f"{key_id}.pem"),
        "serve": {f"{issuer}/{path}": str(public / path) for path in (ABOUT, KEYS)},
        "deploy_with": {"JwtIssuer": issuer, "JwtAudience": "streakline"},
    }
