"""Stats of people who answer, against responses and lake: drift is named, and repaired where provable.

As for engagement, there are two phases. First all stats are scanned. Looked at closely is who differs from
what the lake's answers come to, is not stored as this system writes it, has answered since, or has a turn.
Then the stats are folded anew from the responses that are marked as counted. What differs from that is
repaired, on condition that it still is what was read, unless lake and table contradict each other.
"""

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from pyarrow import Table

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import ANSWERS_COMPARED, run_key
from analytics.recompute.answer_totals import answer_totals
from analytics.reconcile.candidates import SEGMENTS, in_parallel
from analytics.reconcile.differences import Difference
from analytics.reconcile.stats_reconciler import PersonVerdict, StatsReconciler
from analytics.reconcile.stats_rows import AnswersLake, StatsRows
from analytics.reconcile.stats_scan import StatsScan
from rules.days import stamp
from rules.engagement.reconciliation import LAKE_LAG
from rules.lake.residue import is_residue
from rules.questions.answer_doubts import LakeAnswers
from rules.turns import slice_of, slices_due

RESULT = "answer_stats.json"


@dataclass(slots=True)
class AnswerFindings:
    """What was found of people who answer. Names are hashes of the table, or pseudonyms of whom it lacks.

    looked_at: how many. uncounted: people with answers that should have been counted by now.
    disagreements: (person, how lake and table differ); nothing of theirs is repaired.
    """

    people: int = 0
    looked_at: int = 0
    different: list[str] = field(default_factory=list)
    unrepaired: list[str] = field(default_factory=list)
    contended: list[str] = field(default_factory=list)
    uncounted: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    disagreements: list[tuple[str, str]] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """Return the figures."""
        found = {
            name: value if isinstance(value, int) else len(value) for name, value in asdict(self).items()
        }
        return {**found, "repaired": len(self.different) - len(self.unrepaired)}

    def save(self, objects: Objects, run_id: str) -> str:
        """Store the findings as a result of the nightly run; returns the key."""
        key = run_key(run_id, RESULT)
        text = json.dumps({"counts": self.counts, **asdict(self)}, indent=1, default=str)
        objects.put(key, text.encode())
        return key


def reconcile_answers(
    objects: Objects, run_id: str, reconciler: StatsReconciler, now: datetime, *, everybody: bool = False
) -> AnswerFindings:
    """Compare all stats with the lake's answers; look closely at those who differ, changed, or have a turn.

    everybody: look at all closely.
    """
    table = answer_totals(objects, now.date())
    answers = {
        row["person"]: LakeAnswers(row["answers"], row["digest"])
        for row in table.select(["person", "answers", "digest"]).to_pylist()
    }
    before = _last_compared(objects)
    lake = AnswersLake(answers, StatsRows.read(objects, before, now, everybody))
    scan = _scan(reconciler, lake, None if everybody else before, now)
    findings = AnswerFindings(scan.people)
    _choose_unknown(findings, reconciler, scan, table, lake)
    _examine(findings, reconciler, scan, lake, now)
    if reconciler.repair:
        objects.put(ANSWERS_COMPARED, json.dumps({"compared_at": now.isoformat()}).encode())
    return findings


def _choose_unknown(
    findings: AnswerFindings, reconciler: StatsReconciler, scan: StatsScan, table: Table, lake: AnswersLake
) -> None:
    """Choose whom only the lake's answers know, if the table has one of these; tell of all others."""
    for row in table.select(["person", "question_id"]).to_pylist():
        if row["person"] in scan.claimed or is_residue(row["person"]):
            continue
        findings.people += 1
        if person := reconciler.hash_of(row["person"], row["question_id"]):
            scan.chosen.add(person)
        else:
            findings.disagreements.append((row["person"], "the table lacks all answers that the lake has"))
    for name in lake.rows.places.keys() - lake.answers.keys() - scan.claimed:
        if not is_residue(name):
            findings.disagreements.append((name, "the table lacks the stats that the lake has"))


def _scan(
    reconciler: StatsReconciler, lake: AnswersLake, before: datetime | None, now: datetime
) -> StatsScan:
    """Look at all stats once. before: when that was done last; None: all are chosen."""
    since = stamp(before - LAKE_LAG) if before else ""
    slices = slices_due(before.date(), now.date()) if before else frozenset()

    def part(segment: int) -> StatsScan:
        found = StatsScan()
        for stored in reconciler.stats.scan(segment, SEGMENTS):
            has_turn = slice_of(stored["fingerprint_hash"]["S"]) in slices
            found.look(stored, has_turn or not reconciler.looks_right(stored, lake, since, now))
        return found

    whole = StatsScan()
    for found in in_parallel(part, range(SEGMENTS)):
        whole.add(found)
    whole.choose_unlisted()
    return whole


def _examine(
    findings: AnswerFindings,
    reconciler: StatsReconciler,
    scan: StatsScan,
    lake: AnswersLake,
    now: datetime,
) -> None:
    verdicts = _verdicts(reconciler, scan, lake, now)
    findings.looked_at = len(verdicts)
    for person, verdict in verdicts.items():
        if verdict.disagreement:
            findings.disagreements.append((person, verdict.disagreement))
        if verdict.is_uncounted:
            findings.uncounted.append(person)
        if not verdict.is_settled:
            findings.contended.append(person)
        elif verdict.differences:
            findings.differences += verdict.differences
            findings.different.append(person)
            if not verdict.is_repaired:
                findings.unrepaired.append(person)


def _verdicts(
    reconciler: StatsReconciler, scan: StatsScan, lake: AnswersLake, now: datetime
) -> dict[str, PersonVerdict]:
    """Look at all who were chosen, and then at those whose stats have moved to none of theirs."""

    def look(people: Iterable[str], **more: bool) -> dict[str, PersonVerdict]:
        listed = sorted(people)
        with ThreadPoolExecutor(SEGMENTS) as pool:
            found = pool.map(
                lambda each: reconciler.examine(each, scan.moved_to(each), lake, now, **more), listed
            )
            return dict(zip(listed, found, strict=True))

    chosen = look(scan.chosen)
    strangers = {other for each in chosen.values() if not each.disagreement for other in each.strangers}
    return chosen | look(strangers | scan.circling, is_stranger=True)


def _last_compared(objects: Objects) -> datetime | None:
    try:
        return datetime.fromisoformat(json.loads(objects.get(ANSWERS_COMPARED))["compared_at"])
    except NoObject:
        return None


def short_result(objects: Objects, run_id: str, listed_max: int) -> dict[str, Any]:
    """Return what a run has found, shortened; nothing if it did not come so far."""
    try:
        found = json.loads(objects.get(run_key(run_id, RESULT)))
    except NoObject:
        found = {"counts": {}, "differences": [], "disagreements": [], "uncounted": []}
    listed = ("differences", "disagreements", "uncounted")
    return {"counts": found["counts"]} | {name: found[name][:listed_max] for name in listed}


def tables(found: Mapping[str, Any]) -> list[tuple[str, tuple[str, ...], list[Any]]]:
    """Return the report's tables of what short_result returns: title, heads of columns, rows."""
    uncounted = [(each,) for each in found["uncounted"]]
    return [
        ("Figures of people who answer", ("what", "number"), list(found["counts"].items())),
        ("Answers and the lake disagree", ("person", "what"), found["disagreements"]),
        ("Answers that nobody has counted", ("person",), uncounted),
    ]
