"""How far a kind of thing has left: state/retention/NAME.json, which has dates and names nobody."""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field

from adapters.platform.objects import NoObject, Objects

PREFIX = "state/retention/"


@dataclass(slots=True)
class RetentionState:
    """Dates are YYYY-MM-DD; of partitions but for `began`.

    began: the first night. through: up to this date all partitions were gone through. due: partitions of
    before that are to be looked at again, and when. at: the file under way, its ETag, and how many batches
    of its rows are done. run_id: the last night.
    """

    name: str
    began: str
    through: str = ""
    due: dict[str, str] = field(default_factory=dict)
    at: tuple[str, str, int] = ("", "", 0)
    run_id: str = ""

    @classmethod
    def read(cls, objects: Objects, name: str, today: str) -> "RetentionState":
        """Return what the nights before have left, or a beginning."""
        try:
            told = json.loads(objects.get(f"{PREFIX}{name}.json"))
        except NoObject:
            return cls(name, today)
        return cls(**{**told, "at": tuple(told["at"])})

    def save(self, objects: Objects) -> None:
        """Store it."""
        objects.put(f"{PREFIX}{self.name}.json", json.dumps(asdict(self)).encode())

    def begin(self, run_id: str, grown: Collection[str], today: str) -> None:
        """Note a night at its first call: partitions of before that have grown are due."""
        if self.run_id != run_id:
            self.run_id = run_id
            self.due |= dict.fromkeys((dt for dt in grown if dt <= self.through), today)

    def done_in(self, key: str, etag: str) -> int:
        """Return how many batches of a file's rows are done."""
        return self.at[2] if self.at[:2] == (key, etag) else 0

    def gone_through(self, dt: str, again: str) -> None:
        """Note a partition. again: when it has to be looked at again; "" if it has not."""
        self.through = max(self.through, dt)
        self.due.pop(dt, None)
        if again:
            self.due[dt] = again
        self.at = "", "", 0
