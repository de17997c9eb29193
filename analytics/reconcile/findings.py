"""What a night's comparison of users stores: its plan, and the findings of each share and of all together.

Each share has its own watermark. So if a share fails, the next night compares it from its old watermark, and
the other shares from their new ones.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from typing import Any, Self

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import LEDGERS_COMPARED, run_key
from analytics.lake.run_notes import REASON_MAX
from analytics.proof import Head
from analytics.recompute.user_shares import FOLDER, UserShare
from analytics.reconcile.reconcile_user import Verdict
from rules.engagement.reconciliation import Doubt

PLAN = FOLDER + "plan.json"
RESULT, PROGRESS = "differences.json", "progress.json"
FAILED = "failed_shares/"  # of a run: a file for each share that it gave up, with the reason
LISTED_MAX = 10_000  # of differences, and of disagreements; the figures count all
NUMBERS = (
    *("users", "compared", "looked_at", "in_flight", "behind", "settled", "lowered"),
    *("number_of_differences", "number_of_disagreements"),
)
LISTS = ("different", "unrepaired", "contended", "differences", "disagreements", "frozen")
SHORTENED = ("differences", "disagreements")


@dataclass(slots=True)
class Findings:
    """The findings about users. In a dry run `frozen` and `lowered` are those that would have been."""

    # Numbers of users
    users: int = 0
    compared: int = 0  # their ledgers were compared with the lake
    looked_at: int = 0  # they were examined (Reconciler.examine)
    in_flight: int = 0  # their profiles count entries that are not in the lake yet
    behind: int = 0  # a writer had not finished the account, or wrote it by earlier books
    settled: int = 0  # the reconciler has finished what that writer had begun
    lowered: int = 0  # their lapsed streaks were taken out of the leaderboard's index
    # Ids of users
    different: list[str] = field(default_factory=list)  # their items had differences
    unrepaired: list[str] = field(default_factory=list)  # differences that were not repaired
    contended: list[str] = field(default_factory=list)  # others kept changing the account
    number_of_differences: int = 0  # also of those that are not listed
    number_of_disagreements: int = 0  # also of those that are not listed
    differences: list[dict[str, Any]] = field(default_factory=list)
    # (user, what is wrong): the ledger's table is broken, or the lake's copy differs from it
    disagreements: list[list[str]] = field(default_factory=list)
    doubted: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # doubt -> user -> reasons
    frozen: list[str] = field(default_factory=list)  # users whose redemptions wait for an admin
    # doubt -> how many redemptions do not wait, because the accounts are too many
    spared: dict[str, int] = field(default_factory=dict)
    after: str | None = None  # the last user that was examined, if users are left
    # Users after it whose results are here already: the call then failed
    examined: list[str] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)  # of sound ledgers, for the tree over all ledgers
    root: dict[str, Any] | None = None  # the published root over all accounts; None: none was published

    def add(self, user_id: str, verdict: Verdict) -> None:
        """Add the verdict on one user."""
        self.looked_at += 1
        self.behind += verdict.is_behind
        self.settled += verdict.is_settled
        self.number_of_disagreements += len(verdict.disagreements)
        self.number_of_differences += len(verdict.differences)
        disagreements = [[user_id, disagreement] for disagreement in verdict.disagreements]
        self.disagreements += disagreements[: LISTED_MAX - len(self.disagreements)]
        differences = verdict.differences[: LISTED_MAX - len(self.differences)]
        self.differences += list(map(asdict, differences))
        if verdict.differences:
            self.different.append(user_id)
            if not verdict.is_repaired:
                self.unrepaired.append(user_id)
        if verdict.doubt in (Doubt.CONTRADICTED, Doubt.UNPROVEN, Doubt.LACKING):
            self.doubted.setdefault(verdict.doubt, {})[user_id] = verdict.disagreements

    def of_doubt(self, doubt: Doubt) -> dict[str, list[str]]:
        """Return the users whose journal is in this doubt, with the reasons."""
        return self.doubted.get(doubt, {})

    def join(self, other: "Findings") -> None:
        """Add the findings of another share, except for its doubts."""
        for name in NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in LISTS:
            getattr(self, name).extend(getattr(other, name))
        for name in SHORTENED:
            del getattr(self, name)[LISTED_MAX:]

    @property
    def counts(self) -> dict[str, int]:
        """Return the run's figures."""
        return {
            "users": self.users,
            "compared": self.compared,
            "looked_at": self.looked_at,
            "in_flight": self.in_flight,
            "different": len(self.different),
            "differences": self.number_of_differences,
            "repaired": len(self.different) - len(self.unrepaired),
            "unrepaired": len(self.unrepaired),
            "contended": len(self.contended),
            "behind": self.behind,
            "settled": self.settled,
            "lowered": self.lowered,
            "lake_disagreements": self.number_of_disagreements,
            "frozen": len(self.frozen),
        }

    def _text(self) -> bytes:
        figures: dict[str, Any] = {"counts": self.counts}
        return json.dumps(figures | asdict(self), indent=1, default=str).encode()

    def save(self, objects: Objects, run_id: str) -> str:
        """Store the findings of all shares as the nightly run's result; returns its key."""
        key = run_key(run_id, RESULT)
        objects.put(key, self._text())
        return key

    def save_share(self, objects: Objects, run_id: str, share: UserShare, name: str) -> None:
        """Store a share's findings: as its RESULT, or as its PROGRESS."""
        objects.put(share.key(run_id, name), self._text())

    @classmethod
    def of_share(cls, objects: Objects, run_id: str, share: UserShare, name: str = RESULT) -> Self | None:
        """Return a share's findings; None: it has stored none."""
        try:
            values = json.loads(objects.get(share.key(run_id, name)))
        except NoObject:
            return None
        del values["counts"]
        return cls(**{**values, "heads": [Head(*head) for head in values["heads"]]})


def note_failed_share(objects: Objects, run_id: str, number: int, error: Mapping[str, str]) -> None:
    """Note that a run has given up a share. error: Error and Cause, as Step Functions tells them."""
    reason = f"{error.get('Error', '')}: {error.get('Cause', '')}"[:REASON_MAX]
    note = json.dumps({"share": number, "reason": reason}).encode()
    objects.put(run_key(run_id, f"{FAILED}{number:04}.json"), note)


def failed_shares(objects: Objects, run_id: str) -> list[dict[str, Any]]:
    """Return the shares that a run has given up: share, reason."""
    return [json.loads(objects.get(note.key)) for note in objects.list(run_key(run_id, FAILED))]


def read_compared(objects: Objects, shares: int) -> list[datetime | None]:
    """Return when each share's ledgers were last compared with the lake; None: never.

    If the number of shares has changed since then, no share counts as compared.
    """
    try:
        texts = json.loads(objects.get(LEDGERS_COMPARED))["compared_at"]
    except NoObject:
        texts = []
    compared = [text and datetime.fromisoformat(text) for text in texts]
    return compared if len(compared) == shares else [None] * shares


@dataclass(frozen=True, slots=True)
class NightPlan:
    """A night's comparison."""

    run_id: str
    at: datetime  # when the night began, and up to when it compares
    everybody: bool  # whether to examine all users
    span: tuple[date, date] | None  # first and last activity date to compare; None: the changed dates
    last_compared_at: list[datetime | None]  # for each share, by its number; None: never

    @classmethod
    def of(cls, objects: Objects, now: datetime, shares: int, event: Mapping[str, Any]) -> "NightPlan":
        """Plan and store a night's comparison. event: `run_id`; and `everybody`, `from` and `to` if given."""
        span = None
        if event.get("from") and event.get("to"):
            span = (date.fromisoformat(event["from"]), date.fromisoformat(event["to"]))
        everybody = event.get("everybody") is True
        plan = cls(event["run_id"], now, everybody, span, read_compared(objects, shares))
        objects.put(run_key(plan.run_id, PLAN), json.dumps(asdict(plan), default=str).encode())
        return plan

    @classmethod
    def load(cls, objects: Objects, run_id: str) -> "NightPlan":
        """Read a run's plan. Raises NoObject if there is none."""
        values = json.loads(objects.get(run_key(run_id, PLAN)))
        span = None
        if values["span"]:
            first, last = values["span"]
            span = (date.fromisoformat(first), date.fromisoformat(last))
        last_compared_at = [text and datetime.fromisoformat(text) for text in values["last_compared_at"]]
        at = datetime.fromisoformat(values["at"])
        return cls(values["run_id"], at, values["everybody"], span, last_compared_at)

    @property
    def shares(self) -> int:
        """The number of shares of all users."""
        return len(self.last_compared_at)

    def note_compared(self, objects: Objects, failed: Collection[int]) -> None:
        """Note that all ledgers whose turn it was were compared, except for those of failed shares.

        A comparison of named dates alone notes nothing: the changes of other dates are left.
        """
        if self.span:
            return
        compared_at = [
            last if number in failed else self.at for number, last in enumerate(self.last_compared_at)
        ]
        values = {"compared_at": [instant and instant.isoformat() for instant in compared_at]}
        objects.put(LEDGERS_COMPARED, json.dumps(values).encode())
