"""Hashes with keys from Secrets Manager: they tell things apart, and do not tell which things they are."""

import hashlib
import hmac
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from adapters import clock
from rules.days import EPOCH
from rules.key_ring import KNOWN_WITHIN, KeyRing, from_text


class KeyedHash:
    """The keys are read when first needed, and again every five minutes (rules/key_ring.py)."""

    def __init__(self, secrets: Callable[[], Any], secret_arn: str) -> None:
        """secrets: returns the client; called once a reading."""
        self._secrets, self._arn = secrets, secret_arn
        self._read_at, self._known = EPOCH, KeyRing(())

    @property
    def ring(self) -> KeyRing:
        """The keys; what Secrets Manager raises goes on: old keys must not live longer than agreed."""
        now = clock.now()
        if not self._known.keys or not timedelta() <= now - self._read_at < KNOWN_WITHIN:
            text: str = self._secrets().get_secret_value(SecretId=self._arn)["SecretString"]
            self._known, self._read_at = from_text(text), now
        return self._known

    def of(self, text: str, digits: int) -> str:
        """Return a hash under the newest key, as hexadecimal digits."""
        return hashed(self.ring.keys[0], text, digits)


def hashed(key: str, text: str, digits: int) -> str:
    """Return a hash under a key, as hexadecimal digits."""
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()[:digits]
