"""A night's findings about people who answer: as the run stores them, and as its report shows them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import run_key
from analytics.reconcile.differences import Difference
from analytics.reconcile.stats_reconciler import PersonVerdict

RESULT = "answer_stats.json"
LISTS = ("differences", "disagreements", "uncounted")  # what the report lists of the findings


@dataclass(slots=True)
class AnswerFindings:
    """A night's findings about people who answer.

    A person's name is the fingerprint hash of the stats, or the pseudonym if the table lacks the person.
    """

    people: int = 0
    looked_at: int = 0  # the number of people who were examined
    different: list[str] = field(default_factory=list)  # people; so are the next three lists
    unrepaired: list[str] = field(default_factory=list)
    contended: list[str] = field(default_factory=list)  # people whose stats others kept changing
    uncounted: list[str] = field(default_factory=list)  # people with answers that should have been counted
    differences: list[Difference] = field(default_factory=list)
    # (person, how lake and table differ). No stats of these people are repaired.
    disagreements: list[tuple[str, str]] = field(default_factory=list)

    def add(self, fingerprint_hash: str, verdict: PersonVerdict) -> None:
        """Add the verdict on one person."""
        if verdict.disagreement:
            self.disagreements.append((fingerprint_hash, verdict.disagreement))
        if verdict.is_uncounted:
            self.uncounted.append(fingerprint_hash)
        if verdict.is_contended:
            self.contended.append(fingerprint_hash)
        elif verdict.differences:
            self.differences += verdict.differences
            self.different.append(fingerprint_hash)
            if not verdict.is_repaired:
                self.unrepaired.append(fingerprint_hash)

    @property
    def counts(self) -> dict[str, int]:
        """Return the figures."""
        counts = {
            name: value if isinstance(value, int) else len(value) for name, value in asdict(self).items()
        }
        return {**counts, "repaired": len(self.different) - len(self.unrepaired)}

    def save(self, objects: Objects, run_id: str) -> str:
        """Store the findings as a result of the nightly run; returns the key."""
        key = run_key(run_id, RESULT)
        text = json.dumps({"counts": self.counts, **asdict(self)}, indent=1, default=str)
        objects.put(key, text.encode())
        return key


def short_result(objects: Objects, run_id: str, listed_max: int) -> dict[str, Any]:
    """Return a run's findings: `counts`, and the first listed_max of each of LISTS.

    All of them are empty if the run ended before it compared answers.
    """
    try:
        findings = json.loads(objects.get(run_key(run_id, RESULT)))
    except NoObject:
        findings = {"counts": {}, **{name: [] for name in LISTS}}
    return {"counts": findings["counts"]} | {name: findings[name][:listed_max] for name in LISTS}


def tables(findings: Mapping[str, Any]) -> list[tuple[str, tuple[str, ...], list[Any]]]:
    """Return the report's tables: title, heads of columns, rows. findings: as short_result returns them."""
    uncounted = [(person,) for person in findings["uncounted"]]
    return [
        ("Figures of people who answer", ("what", "number"), list(findings["counts"].items())),
        ("Answers and the lake disagree", ("person", "what"), findings["disagreements"]),
        ("Answers that nobody has counted", ("person",), uncounted),
    ]
