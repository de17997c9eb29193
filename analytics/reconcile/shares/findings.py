"""What a night's reconciliation found: of one share of the users, and of all shares together."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import run_key
from analytics.lake.run_notes import REASON_MAX
from analytics.recompute.user_shares import UserShare
from analytics.reconcile.reconcile_user import Verdict
from rules.engagement.reconciliation import Doubt

RESULT, PROGRESS = "differences.json", "progress.json"
FOLDER = "failed_shares/"  # of a run: a file for each share that it gave up, with the reason
LISTED_MAX = 10_000  # of differences, and of disagreements; the figures count all
NUMBERS = (
    *("users", "compared", "looked_at", "in_flight", "behind", "settled", "lowered"),
    *("number_of_differences", "number_of_disagreements"),
)
LISTS = ("different", "unrepaired", "contended", "differences", "disagreements", "frozen")
SHORTENED = ("differences", "disagreements")


@dataclass(slots=True)
class Findings:
    """All numbers are numbers of users.

    compared: ledgers that were compared with the lake. different, unrepaired, contended: user ids.
    disagreements: (user, what), if the ledger table is broken or the lake's copy differs from it. doubted:
    why, by the doubt and the user. frozen: those of these users whose redemptions wait for an admin; in a dry
    run, would wait. spared: by the doubt, how many would wait if they were not so many. lowered: how many
    lapsed streaks were taken out of the leaderboard's index; in a dry run, how many would be. after: the last
    user that was looked at, while there are more.
    heads: of the chains of a share's accounts (analytics.proof); they name nobody. root: over
    all accounts, as it was published; None: none was.
    """

    users: int = 0
    compared: int = 0
    looked_at: int = 0
    in_flight: int = 0
    different: list[str] = field(default_factory=list)
    unrepaired: list[str] = field(default_factory=list)
    contended: list[str] = field(default_factory=list)
    behind: int = 0
    settled: int = 0
    lowered: int = 0
    number_of_differences: int = 0
    number_of_disagreements: int = 0
    differences: list[dict[str, Any]] = field(default_factory=list)
    disagreements: list[list[str]] = field(default_factory=list)
    doubted: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    frozen: list[str] = field(default_factory=list)
    spared: dict[str, int] = field(default_factory=dict)
    after: str | None = None
    heads: list[list[Any]] = field(default_factory=list)
    root: dict[str, Any] | None = None

    def add(self, user_id: str, verdict: Verdict) -> None:
        """Add what was found of one user."""
        self.looked_at += 1
        self.behind += verdict.is_behind
        self.settled += verdict.is_settled
        self.number_of_disagreements += len(verdict.disagreements)
        self.number_of_differences += len(verdict.differences)
        room = LISTED_MAX - len(self.disagreements)
        self.disagreements += [[user_id, what] for what in verdict.disagreements][:room]
        room = LISTED_MAX - len(self.differences)
        self.differences += list(map(asdict, verdict.differences[:room]))
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
        """Add what was found of another share, but for its doubts."""
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
            held = json.loads(objects.get(share.key(run_id, name)))
        except NoObject:
            return None
        del held["counts"]
        return cls(**held)


def note_failed_share(objects: Objects, run_id: str, number: int, error: Mapping[str, str]) -> None:
    """Note that a run has given up a share. error: Error and Cause, as Step Functions tells them."""
    reason = f"{error.get('Error', '')}: {error.get('Cause', '')}"[:REASON_MAX]
    note = json.dumps({"share": number, "reason": reason}).encode()
    objects.put(run_key(run_id, f"{FOLDER}{number:04}.json"), note)


def failed_shares(objects: Objects, run_id: str) -> list[dict[str, Any]]:
    """Return the shares that a run has given up: share, reason."""
    return [json.loads(objects.get(each.key)) for each in objects.list(run_key(run_id, FOLDER))]
