"""The deployed API over HTTP."""

import json
import time
from typing import Any

import urllib3

from local.bearer import bearer
from local.stack import Stack

ADMIN = "streakline/admin"
ATTEMPTS_MAX = 10


class Api:
    """The deployed API, called as an admin, as a member of another group, or as one user."""

    def __init__(
        self, stack: Stack, user_id: str = "operator", *, admin: bool = True, group: str | None = None
    ) -> None:
        member_of = group or (ADMIN if admin else None)
        self._stack, self._who = stack, (user_id, *([member_of] if member_of else []))
        self._pool = urllib3.PoolManager(maxsize=64, retries=False)
        self.token = bearer(stack, *self._who)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return (status, JSON answer). An answer that is no JSON is {"error": {"message": its text}}.

        A 429 or a 5xx is repeated after the seconds of Retry-After. That is safe, because requests carry
        keys. After a 401 the token is fetched anew, once: a long replay outlives a token.
        """
        renewed = False
        for attempt in range(ATTEMPTS_MAX):
            answer = self._request(method, path, body)
            if answer.status == 401 and not renewed:
                renewed, self.token = True, bearer(self._stack, *self._who)
                continue
            if (answer.status != 429 and answer.status < 500) or attempt == ATTEMPTS_MAX - 1:
                break
            time.sleep(float(answer.headers.get("Retry-After", 1)))
        return answer.status, _json(answer.data)

    def _request(self, method: str, path: str, body: Any) -> Any:
        return self._pool.request(
            method,
            self._stack.api_url + path,
            body=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {self.token}", "content-type": "application/json"},
            timeout=180,
        )

    def download(self, path: str) -> bytes:
        """Return what a GET answers as it is, also from where it sends us; raises RuntimeError."""
        answer = self._request("GET", path, None)
        if answer.status == 303:
            answer = self._pool.request("GET", answer.headers["Location"], timeout=180)
        if answer.status != 200:
            raise RuntimeError(f"GET {path}: {answer.status} {_json(answer.data)}")
        data: bytes = answer.data
        return data

    def get(self, path: str) -> Any:
        """Return the answer to a GET; raises RuntimeError unless it is 200."""
        status, answer = self.call("GET", path)
        if status != 200:
            raise RuntimeError(f"GET {path}: {status} {answer}")
        return answer


def _json(data: bytes) -> Any:
    try:
        return json.loads(data or b"null")
    except ValueError:  # a proxy's page, or a gateway's text
        return {"error": {"message": data[:200].decode(errors="replace")}}
