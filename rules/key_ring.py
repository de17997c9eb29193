"""The ring of keys of a keyed hash, and how a new key takes the place of another while many processes hash.

A person is known under several hashes: one for each key. A new key is announced, so that every process learns
it. Ten minutes later it is promoted: from then on it makes the first hash. Later the oldest key is retired.
"""

import json
import re
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from rules.days import stamp, unstamp

KNOWN_WITHIN = timedelta(minutes=5)  # after an announcement every process knows the key
# Another five minutes for requests that are under way, and for a store whose news come late.
PROMOTED_AFTER = 2 * KNOWN_WITHIN
KEYS_MAX = 3
# A secret that was generated, and holds no ring yet. No ring matches, because its JSON has blanks.
GENERATED = re.compile(r"[!-~]{64}")


class StepRefused(ValueError):
    """The ring does not allow this step now; the message says why, or from when on."""


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys of a keyed hash. Times are stamps, "" for what has not happened."""

    keys: tuple[str, ...]  # newest first
    next: str | None = None  # the announced key
    announced_at: str = ""
    promoted_at: str = ""


def from_text(text: str) -> KeyRing:
    """Read a secret; a text that is no JSON is one key, which was never rotated. Raises ValueError."""
    # A generated key may begin with a brace: where punctuation is generated, one in 94 does.
    if not text.startswith("{") or GENERATED.fullmatch(text):
        ring = KeyRing((text,))
    else:
        try:
            fields = json.loads(text)
            keys = tuple(fields["keys"]) if isinstance(fields["keys"], list) else ()
            ring = KeyRing(**{**fields, "keys": keys})
        except (TypeError, KeyError, ValueError):
            raise ValueError("the secret is no ring of keys") from None  # the cause would quote it
    every = (*ring.keys, ring.next) if ring.next is not None else ring.keys
    if not ring.keys or not all(isinstance(each, str) and each for each in every):
        raise ValueError("the secret holds an empty key, or none")
    return ring


def to_text(ring: KeyRing) -> str:
    """Return the secret's text."""
    return json.dumps({name: each for name, each in asdict(ring).items() if each})


def announce_key(ring: KeyRing, key: str, now: datetime) -> KeyRing:
    """Let every process learn a new key; raises StepRefused."""
    if ring.next is not None:
        raise StepRefused(f"a key has been announced at {ring.announced_at}: promote it")
    if len(ring.keys) >= KEYS_MAX:
        raise StepRefused(f"there are {KEYS_MAX} keys, and each costs every answer a read: retire the oldest")
    return replace(ring, next=key, announced_at=stamp(now))


def promote_key(ring: KeyRing, now: datetime) -> KeyRing:
    """Make the announced key the newest; raises StepRefused."""
    if ring.next is None:
        raise StepRefused("no key has been announced")
    _check_wait(ring.announced_at, PROMOTED_AFTER, now)
    return KeyRing((ring.next, *ring.keys), promoted_at=stamp(now))


def retire_key(ring: KeyRing, needed_for: timedelta, now: datetime) -> KeyRing:
    """Forget the oldest key; raises StepRefused.

    needed_for: for so long after a promotion the older keys are needed. Without them a person might be asked
    something twice.
    """
    if len(ring.keys) == 1:
        raise StepRefused("there is one key: nothing to retire")
    _check_wait(ring.promoted_at, needed_for, now)
    return replace(ring, keys=ring.keys[:-1])


def _check_wait(since: str, wait: timedelta, now: datetime) -> None:
    if now < (earliest := unstamp(since) + wait):
        raise StepRefused(f"not before {stamp(earliest)}")


@dataclass(frozen=True, slots=True)
class PersonHashes:
    """The hashes under which a person is known: one for each key."""

    own: str  # under the newest key; answers are stored under it
    older: tuple[str, ...] = ()  # under the keys before, newest first
    upcoming: tuple[str, ...] = ()  # under a key that is announced, if one is
    is_rotated: bool = False  # whether there have been other keys, perhaps retired since
    is_signed_in: bool = False  # whether the person has an account and answers; others are known to an agent

    @property
    def all(self) -> tuple[str, ...]:
        """Every hash, the own one first."""
        return self.own, *self.older, *self.upcoming
