"""The password of the Data API's role: PostgreSQL gets a SCRAM verifier of it, never the password itself.

So neither a log of statements nor an error's text can hold it. The verifier has no character that would need
quoting, but for the colons: the Data API might take what follows one for a parameter's name.
"""

import base64
import hashlib
import hmac
import os
from typing import Any

ROLE = "streakline_leads_api"
ITERATIONS = 4096  # PostgreSQL's own


def set_password(connection: Any, secret: dict[str, str]) -> None:
    """Let the role sign in by the password of a secret, {"username", "password"}.

    Raises ValueError if the secret is another user's, or if its password is no printable ASCII.
    """
    if secret["username"] != ROLE:
        raise ValueError(f"the secret's username must be {ROLE}, not {secret['username']}")
    quoted = verifier(secret["password"], os.urandom(16)).replace(":", r"\x3A")
    connection.execute(f"ALTER ROLE {ROLE} PASSWORD E'{quoted}'")


def verifier(password: str, salt: bytes) -> str:
    """Return what PostgreSQL keeps of a password (RFC 5803)."""
    if not (password and password.isascii() and password.isprintable()):
        raise ValueError("the secret's password must be printable ASCII")
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    shown = [base64.b64encode(each).decode() for each in (salt, stored, server)]
    return "SCRAM-SHA-256${}:{}${}:{}".format(ITERATIONS, *shown)
