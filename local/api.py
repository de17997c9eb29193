"""The deployed API over HTTP, as commands and tests call it."""

import json
import shutil
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3

from ingest.web.caller import ADMIN
from local.sign_in import bearer
from local.stack import Stack

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

    def download(self, url: str, file: Path) -> int:
        """Write what a URL that the API gave leads to; returns its bytes; raises RuntimeError."""
        with self._pool.request("GET", url, timeout=180, preload_content=False) as answer:
            if answer.status != 200:
                raise RuntimeError(f"{urlsplit(url).netloc}: {answer.status} {answer.read(200)!r}")
            with file.open("wb") as out:
                shutil.copyfileobj(answer, out)
        return file.stat().st_size

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
