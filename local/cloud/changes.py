"""How often each table has changed, which the emulator says at a path of its own.

Two dozen consumers of streams would each ask once a second whether there is something new: a tenth of a core.
The poller asks for the counts instead, and reads the streams of those tables whose count is another one. The
emulator's own Python imports this module.
"""

import json
from collections import Counter
from typing import Any

CHANGES = "/_streakline/changes"


def count_changes(dynamodb: Any) -> Counter[str]:
    """Return the counts by table, which grow from now on. dynamodb: MiniStack's module of it."""
    counts, emit = Counter[str](), dynamodb._emit_stream_event  # noqa: SLF001 (it has no other)

    def counted(table: str, *change: Any, **more: Any) -> None:
        emit(table, *change, **more)
        counts[table] += 1

    dynamodb._emit_stream_event = counted  # noqa: SLF001 (the same)
    return counts


def with_counts(inner: Any, counts: Counter[str]) -> Any:
    """Return an application (ASGI) that answers CHANGES with the counts, and all else as `inner` does."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") != CHANGES:
            await inner(scope, receive, send)
            return
        body = json.dumps(counts).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return application
