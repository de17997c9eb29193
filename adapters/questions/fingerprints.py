"""Fingerprints: keyed hashes that tell people who answer apart. The identifier itself is never stored."""

from collections.abc import Callable
from typing import Any

from adapters.platform.keyed_hash import KeyedHash, hashed
from rules.key_ring import PersonHashes

HASH_CHARACTERS = 32


class Fingerprints:
    """Hashes of people, with keys from Secrets Manager."""

    def __init__(self, secrets: Callable[[], Any], secret_arn: str) -> None:
        """secrets: returns the client; called once a reading."""
        self._keyed = KeyedHash(secrets, secret_arn)

    def of_user(self, user_id: str) -> PersonHashes:
        """Return a signed-in person's hashes: 32 hexadecimal digits each."""
        return self._of(f"user:{user_id}", is_signed_in=True)

    def of_device(self, fingerprint: str) -> PersonHashes:
        """Return the hashes of somebody whom an agent knows by this identifier."""
        return self._of(f"device:{fingerprint}", is_signed_in=False)

    def of_award(self, user_id: str, question_id: str) -> str:
        """Return the name of what a user earns by an answer: without the key it leads to no question."""
        return hashed(self._keyed.ring.keys[0], f"award:{user_id}\x00{question_id}", HASH_CHARACTERS)

    def _of(self, text: str, *, is_signed_in: bool) -> PersonHashes:
        ring = self._keyed.ring
        own, *older = (hashed(key, text, HASH_CHARACTERS) for key in ring.keys)
        upcoming = (hashed(ring.next, text, HASH_CHARACTERS),) if ring.next else ()
        return PersonHashes(own, tuple(older), upcoming, bool(ring.promoted_at), is_signed_in)
