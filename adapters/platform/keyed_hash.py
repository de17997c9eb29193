"""Hashes with keys from Secrets Manager. Equal things have equal hashes, which do not reveal the things.

Fingerprints are the hashes of people who answer. Their identifiers themselves are never stored.
"""

import hashlib
import hmac
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from adapters import clock
from rules.days import EPOCH
from rules.key_ring import KNOWN_WITHIN, KeyRing, PersonHashes, from_text

HASH_CHARACTERS = 32


class KeyedHash:
    """The keys are read when first needed, and again every five minutes (rules/key_ring.py)."""

    def __init__(self, secrets: Callable[[], Any], secret_arn: str) -> None:
        """secrets: returns the client; called at each read."""
        self._secrets, self._arn = secrets, secret_arn
        self._read_at, self._ring = EPOCH, KeyRing(())

    @property
    def ring(self) -> KeyRing:
        """The keys, at most five minutes old. Raises what Secrets Manager raises, and uses no older keys."""
        now = clock.now()
        if not self._ring.keys or not timedelta() <= now - self._read_at < KNOWN_WITHIN:
            text: str = self._secrets().get_secret_value(SecretId=self._arn)["SecretString"]
            self._ring, self._read_at = from_text(text), now
        return self._ring

    def of(self, text: str, digits: int) -> str:
        """Return a hash under the newest key, as hexadecimal digits."""
        return hash_under_key(self.ring.keys[0], text, digits)


def hash_under_key(key: str, text: str, digits: int) -> str:
    """Return a hash under a key, as hexadecimal digits."""
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()[:digits]


class Fingerprints:
    """Hashes of people, with keys from Secrets Manager."""

    def __init__(self, secrets: Callable[[], Any], secret_arn: str) -> None:
        """secrets: returns the client; called at each read."""
        self._keyed = KeyedHash(secrets, secret_arn)

    def of_user(self, user_id: str) -> PersonHashes:
        """Return a signed-in person's hashes: 32 hexadecimal digits each."""
        return self._hashes_of(f"user:{user_id}", is_signed_in=True)

    def of_device(self, fingerprint: str) -> PersonHashes:
        """Return the hashes of the person whom an agent knows by this identifier."""
        return self._hashes_of(f"device:{fingerprint}", is_signed_in=False)

    def of_text(self, text: str) -> str:
        """Return a text's hash under the newest key, 32 hexadecimal digits."""
        return self._keyed.of(text, HASH_CHARACTERS)

    def _hashes_of(self, text: str, *, is_signed_in: bool) -> PersonHashes:
        ring = self._keyed.ring
        newest, *older = (hash_under_key(key, text, HASH_CHARACTERS) for key in ring.keys)
        upcoming = (hash_under_key(ring.next, text, HASH_CHARACTERS),) if ring.next else ()
        return PersonHashes(newest, tuple(older), upcoming, bool(ring.promoted_at), is_signed_in)
