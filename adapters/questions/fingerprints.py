"""Fingerprints: keyed hashes that tell people who answer apart. The identifier itself is never stored."""

from collections.abc import Callable
from typing import Any

from adapters.platform.keyed_hash import KeyedHash

HASH_CHARACTERS = 32


class Fingerprints:
    """Hashes of people, with a key from Secrets Manager."""

    def __init__(self, secrets: Callable[[], Any], secret_arn: str) -> None:
        """secrets: returns the client; called once a process."""
        self._hashed = KeyedHash(secrets, secret_arn)

    def of_user(self, user_id: str) -> str:
        """Return a signed-in person's fingerprint_hash: 32 hexadecimal digits."""
        return self._hashed.of(f"user:{user_id}", HASH_CHARACTERS)

    def of_device(self, fingerprint: str) -> str:
        """Return the fingerprint_hash of somebody whom an agent knows by this identifier."""
        return self._hashed.of(f"device:{fingerprint}", HASH_CHARACTERS)
