"""Processes of the questions' API that know different keys, as they do for five minutes after each step."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from adapters.platform.aws import client
from ingest.questions import questions_api
from ingest.web.caller import ApiError, Caller
from local.operate.fingerprint_keys import NEEDED_FOR
from rules.key_ring import PROMOTED_AFTER, KeyRing, announce_key, from_text, promote_key, retire_key, to_text
from tests.support.questions.stack import set_clock

FIRST_KEY = "a key of these tests"


def store_ring(ring: KeyRing) -> None:
    text = ring.keys[0] if ring == KeyRing(ring.keys[:1]) else to_text(ring)
    client("secretsmanager").put_secret_value(
        SecretId=os.environ["FINGERPRINT_SECRET_ARN"], SecretString=text
    )


def stored_ring() -> KeyRing:
    secret = client("secretsmanager").get_secret_value(SecretId=os.environ["FINGERPRINT_SECRET_ARN"])
    return from_text(secret["SecretString"])


class Process:
    """A process of the API; it knows the keys that the secret has now, for the next five minutes."""

    def __init__(self) -> None:
        self.parts = questions_api._parts.build()
        self.hashes_of = self.parts.answers.fingerprints.of_user
        self.hashes_of("anybody")

    def answer(self, question: dict[str, Any], person: str) -> Any:
        """The receipt, or the refusal."""
        caller = Caller(person, is_admin=False)
        body = {"selected_option": 0, "confidence": 3}
        try:
            return self.parts.answers.answer(question["question_id"], body, caller)
        except ApiError as error:
            return error


@dataclass
class Operator:
    """Takes steps as early as they are allowed; the clock of all processes is the operator's.

    Each step returns a process that has read the keys just before: it does not know of the step for 5 minutes.
    """

    patch: pytest.MonkeyPatch
    now: datetime
    made: int = 0

    def __post_init__(self) -> None:
        set_clock(self.patch, self.now)
        store_ring(KeyRing((FIRST_KEY,)))

    def wait(self, time: timedelta) -> None:
        self.now += time
        set_clock(self.patch, self.now)

    def announce(self) -> Process:
        self.made += 1
        return self._step(lambda ring: announce_key(ring, f"key {self.made}", self.now), timedelta())

    def promote(self) -> Process:
        return self._step(lambda ring: promote_key(ring, self.now), PROMOTED_AFTER)

    def rotate(self) -> Process:
        self.announce()
        return self.promote()

    def retire(self) -> Process:
        return self._step(lambda ring: retire_key(ring, NEEDED_FOR, self.now), NEEDED_FOR)

    def steps(self) -> Iterator[tuple[Process, Process]]:
        """Yield who is behind, and who is not, at each step from one key to three and back to one."""
        for step in (self.announce, self.promote, self.announce, self.promote, self.retire, self.retire):
            behind, ahead = step(), Process()
            assert behind.hashes_of("somebody") != ahead.hashes_of("somebody")
            yield behind, ahead

    def _step(self, change: Callable[[KeyRing], KeyRing], after: timedelta) -> Process:
        self.wait(after)
        behind = Process()
        store_ring(change(stored_ring()))
        return behind
