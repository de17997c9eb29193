"""The findings of a night's reconciliation: of one share of the users, and of all shares together."""

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
    """The findings about users. In a dry run `frozen` and `lowered` are those that would have been."""

    # Numbers of users
    users: int = 0
    compared: int = 0  # their ledgers were compared with the lake
    looked_at: int = 0  # they were examined (Reconciler.examine)
    in_flight: int = 0  # their profiles count entries that are not in the lake yet
    behind: int = 0  # a writer had not finished the account
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
    heads: list[list[Any]] = field(default_factory=list)  # of accounts (analytics.proof); they name nobody
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
        return cls(**values)


def note_failed_share(objects: Objects, run_id: str, number: int, error: Mapping[str, str]) -> None:
    """Note that a run has given up a share. error: Error and Cause, as Step Functions tells them."""
    reason = f"{error.get('Error', '')}: {error.get('Cause', '')}"[:REASON_MAX]
    note = json.dumps({"share": number, "reason": reason}).encode()
    objects.put(run_key(run_id, f"{FOLDER}{number:04}.json"), note)


def failed_shares(objects: Objects, run_id: str) -> list[dict[str, Any]]:
    """Return the shares that a run has given up: share, reason."""
    return [json.loads(objects.get(note.key)) for note in objects.list(run_key(run_id, FOLDER))]
