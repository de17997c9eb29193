"""The deployed API over HTTP."""

import json
import time
from typing import Any

import urllib3

from local.cloud.tokens import ADMIN, token
from local.stack import Stack

ATTEMPTS_MAX = 10


class Api:
    """The deployed API, called as an admin, as a member of another group, or as one user."""

    def __init__(
        self, stack: Stack, user_id: str = "operator", *, admin: bool = True, group: str | None = None
    ) -> None:
        self._url = stack.api_url
        self._pool = urllib3.PoolManager(maxsize=64, retries=False)
        self._headers = {
            "authorization": f"Bearer {token(stack, user_id, group or (ADMIN if admin else None))}",
            "content-type": "application/json",
        }

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return (status, JSON answer).

        A 429 or a 5xx is repeated after the seconds of Retry-After. That is safe, because requests carry
        keys.
        """
        for attempt in range(ATTEMPTS_MAX):
            answer = self._pool.request(
                method,
                self._url + path,
                body=None if body is None else json.dumps(body).encode(),
                headers=self._headers,
                timeout=180,
            )
            if (answer.status != 429 and answer.status < 500) or attempt == ATTEMPTS_MAX - 1:
                break
            time.sleep(float(answer.headers.get("Retry-After", 1)))
        return answer.status, json.loads(answer.data or b"null")

    def get(self, path: str) -> Any:
        """Return the answer to a GET; raises RuntimeError unless it is 200."""
        status, answer = self.call("GET", path)
        if status != 200:
            raise RuntimeError(f"GET {path}: {status} {answer}")
        return answer
