"""Fingerprints: keyed hashes that tell people who answer apart. The identifier itself is never stored."""

import hashlib
import hmac
from collections.abc import Callable
from functools import cached_property
from typing import Any

HASH_CHARACTERS = 32


class Fingerprints:
    """Hashes with a key from Secrets Manager, which is read once, when first needed."""

    def __init__(self, secrets: Callable[[], Any], secret_arn: str) -> None:
        """secrets: returns the client; called once a process."""
        self._secrets, self._arn = secrets, secret_arn

    @cached_property
    def _key(self) -> bytes:
        key: str = self._secrets().get_secret_value(SecretId=self._arn)["SecretString"]
        if not key:
            raise RuntimeError(f"{self._arn} holds an empty key")
        return key.encode()

    def of_user(self, user_id: str) -> str:
        """Return a signed-in person's fingerprint_hash: 32 hexadecimal digits."""
        return self._hash(f"user:{user_id}")

    def of_device(self, fingerprint: str) -> str:
        """Return the fingerprint_hash of somebody whom an agent knows by this identifier."""
        return self._hash(f"device:{fingerprint}")

    def _hash(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()[:HASH_CHARACTERS]
