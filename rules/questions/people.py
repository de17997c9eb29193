"""Under which hashes a person is known: one for each key (rules/key_ring.py)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PersonHashes:
    """own: under the newest key; answers are stored under it.

    older: under the keys before, newest first. upcoming: under a key that is announced, if one is.
    is_rotated: whether there have been other keys, perhaps retired since. is_signed_in: whether they are of
    an account, whose owner answers; others are of whom an agent knows.
    """

    own: str
    older: tuple[str, ...] = ()
    upcoming: tuple[str, ...] = ()
    is_rotated: bool = False
    is_signed_in: bool = False

    @property
    def all(self) -> tuple[str, ...]:
        """Every hash, the own one first."""
        return self.own, *self.older, *self.upcoming
