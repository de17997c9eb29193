"""What the poller tells in two files: its counts, and how far each consumer of a shard is."""

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path

from local.cloud.streams.delivery import EventSourceMapping
from local.paths import LOCAL

CHECKPOINTS = LOCAL / "checkpoints.json"
HEARTBEAT = LOCAL / "poller.json"


def place_name(mapping: EventSourceMapping, shard: str) -> str:
    """Return the key of a consumer of a shard in the file CHECKPOINTS."""
    return f"{mapping.function} {mapping.source} {shard}"


def read_checkpoints() -> dict[str, str]:
    """Return the last record done, by consumer and shard; empty before a poller has written any."""
    return dict(json.loads(CHECKPOINTS.read_text())) if CHECKPOINTS.exists() else {}


@dataclass(slots=True)
class PollerState:
    """checkpoints: the last record done, by consumer and shard. counts: of each function.

    caught_up: when a consumer last had nothing left to do, by function, then by consumer and shard.
    written: the text of each file.
    """

    checkpoints: dict[str, str] = field(default_factory=dict)
    caught_up: dict[str, dict[str, float]] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    written: dict[Path, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self) -> None:
        """Go on where a former poller stopped."""
        self.checkpoints = read_checkpoints()

    def checkpoint(self, key: str, number: str) -> None:
        """Note the last record that a consumer of a shard has done."""
        with self.lock:
            self.checkpoints[key] = number

    def count(self, function: str, what: str, number: int) -> None:
        """Add to one of a function's counts."""
        with self.lock:
            counts = self.counts.setdefault(function, {})
            counts[what] = counts.get(what, 0) + number

    def write(self) -> None:
        """Write the files whose text has changed."""
        with self.lock:
            state = {
                name: {**self.counts.get(name, {}), "caught_up_at": min(shards.values(), default=0.0)}
                for name, shards in self.caught_up.items()
            }
            texts = {HEARTBEAT: json.dumps(state), CHECKPOINTS: json.dumps(self.checkpoints)}
        for path, text in texts.items():
            if self.written.get(path) == text:
                continue
            self.written[path] = text
            fresh = path.with_suffix(".new")
            fresh.write_text(text)
            fresh.replace(path)
