"""Hashes with a key from Secrets Manager: they tell things apart, and do not tell which things they are."""

import hashlib
import hmac
from collections.abc import Callable
from functools import cached_property
from typing import Any


class KeyedHash:
    """The key is read once, when first needed."""

    def __init__(self, secrets: Callable[[], Any], secret_arn: str) -> None:
        """secrets: returns the client; called once a process."""
        self._secrets, self._arn = secrets, secret_arn

    @cached_property
    def _key(self) -> bytes:
        key: str = self._secrets().get_secret_value(SecretId=self._arn)["SecretString"]
        if not key:
            raise RuntimeError(f"{self._arn} holds an empty key")
        return key.encode()

    def of(self, text: str, digits: int) -> str:
        """Return a hash as hexadecimal digits."""
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()[:digits]
