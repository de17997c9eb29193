"""Phones for tests: what SNS and FCM would do, with every message written down."""

import threading
from collections import Counter

from adapters.questions.push import PushReceipt, PushStatus
from rules.questions.notifications import PushMessage


class Phones:
    """A Push that remembers. dead: tokens that the push service knows no more (only a message finds out).

    It keeps the contract of tests/integration/test_push.py, as SnsPush does.
    """

    def __init__(self, dead: frozenset[str] = frozenset(), away: bool = False) -> None:
        self.dead, self.away = dead, away
        self.endpoints: dict[str, str] = {}
        self.got: Counter[str] = Counter()
        self.messages: list[tuple[str, PushMessage]] = []
        self.tried: Counter[str] = Counter()
        self._made, self._lock = 0, threading.Lock()

    def prepare(self, token: str) -> PushReceipt:
        if self.away:
            return PushReceipt(PushStatus.UNSENT)
        with self._lock:
            known = [arn for arn, owner in self.endpoints.items() if owner == token]
            if known:
                return PushReceipt(PushStatus.SENT, known[0])
            self._made += 1
            self.endpoints[f"arn:phone/{self._made}"] = token
            return PushReceipt(PushStatus.SENT, f"arn:phone/{self._made}")

    def send(self, endpoint: str, token: str, message: PushMessage) -> PushReceipt:
        if self.away:
            return PushReceipt(PushStatus.UNSENT, endpoint)
        with self._lock:
            self.tried[token] += 1
            if endpoint in self.endpoints and token in self.dead:
                return PushReceipt(PushStatus.DEAD, endpoint)
            if endpoint in self.endpoints:
                self.got[token] += 1
                self.messages.append((token, message))
                return PushReceipt(PushStatus.SENT, endpoint)
        return self.send(self.prepare(token).endpoint, token, message)

    def forget(self, endpoint: str) -> None:
        with self._lock:
            self.endpoints.pop(endpoint, None)
