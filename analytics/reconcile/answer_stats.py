"""Stats of people who answer, against responses and lake: drift is named, and repaired where it is provable.

There are two phases. First all stats are scanned. Those are chosen that differ from the lake's answers, are
not stored as this system writes them, have changed since the last night, or have a turn. Then the chosen ones
are folded anew from the responses that are marked as counted. What differs from that is repaired, on
condition that it still is what was read, unless lake and table contradict each other.
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
LISTS = ("differences", "disagreements", "uncounted")  # what the report lists of the findings


@dataclass(slots=True)
class AnswerFindings:
    """What a night found of people who answer.

    A person's name is the fingerprint hash of the stats, or the pseudonym if the table lacks the person.
    """

    people: int = 0
    looked_at: int = 0  # how many people
    different: list[str] = field(default_factory=list)
    unrepaired: list[str] = field(default_factory=list)
    contended: list[str] = field(default_factory=list)
    uncounted: list[str] = field(default_factory=list)  # people with answers that should have been counted
    differences: list[Difference] = field(default_factory=list)
    # (person, how lake and table differ); nothing of these people is repaired
    disagreements: list[tuple[str, str]] = field(default_factory=list)

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


def reconcile_answers(
    objects: Objects, run_id: str, reconciler: StatsReconciler, now: datetime, *, everybody: bool = False
) -> AnswerFindings:
    """Compare all stats with the lake's answers, and look closely at those who need it.

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


def short_result(objects: Objects, run_id: str, listed_max: int) -> dict[str, Any]:
    """Return what a run has found: `counts`, and the first listed_max of each of LISTS.

    All of them are empty if the run did not come so far.
    """
    try:
        findings = json.loads(objects.get(run_key(run_id, RESULT)))
    except NoObject:
        findings = {"counts": {}, **{name: [] for name in LISTS}}
    return {"counts": findings["counts"]} | {name: findings[name][:listed_max] for name in LISTS}


def tables(findings: Mapping[str, Any]) -> list[tuple[str, tuple[str, ...], list[Any]]]:
    """Return the report's tables of what short_result returns: title, heads of columns, rows."""
    uncounted = [(person,) for person in findings["uncounted"]]
    return [
        ("Figures of people who answer", ("what", "number"), list(findings["counts"].items())),
        ("Answers and the lake disagree", ("person", "what"), findings["disagreements"]),
        ("Answers that nobody has counted", ("person",), uncounted),
    ]


def _last_compared(objects: Objects) -> datetime | None:
    try:
        return datetime.fromisoformat(json.loads(objects.get(ANSWERS_COMPARED))["compared_at"])
    except NoObject:
        return None


def _scan(
    reconciler: StatsReconciler, lake: AnswersLake, before: datetime | None, now: datetime
) -> StatsScan:
    """Look at all stats once. before: when that was done last; None: all are chosen."""
    since = stamp(before - LAKE_LAG) if before else ""
    slices = slices_due(before.date(), now.date()) if before else frozenset()

    def scan_segment(segment: int) -> StatsScan:
        scan = StatsScan()
        for item in reconciler.stats.scan(segment, SEGMENTS):
            has_turn = slice_of(item["fingerprint_hash"]["S"]) in slices
            scan.look(item, has_turn or not reconciler.looks_right(item, lake, since, now))
        return scan

    total = StatsScan()
    for scan in in_parallel(scan_segment, range(SEGMENTS)):
        total.add(scan)
    total.choose_unlisted()
    return total


def _choose_unknown(
    findings: AnswerFindings, reconciler: StatsReconciler, scan: StatsScan, table: Table, lake: AnswersLake
) -> None:
    """Choose the people whom only the lake knows, if the table has an answer of theirs; report all others."""
    for row in table.select(["person", "question_id"]).to_pylist():
        pseudonym = row["person"]
        if pseudonym in scan.claimed or is_residue(pseudonym):
            continue
        findings.people += 1
        if fingerprint_hash := reconciler.hash_of(pseudonym, row["question_id"]):
            scan.chosen.add(fingerprint_hash)
        else:
            findings.disagreements.append((pseudonym, "the table lacks all answers that the lake has"))
    for pseudonym in lake.rows.row_of_person.keys() - lake.answers.keys() - scan.claimed:
        if not is_residue(pseudonym):
            findings.disagreements.append((pseudonym, "the table lacks the stats that the lake has"))


def _examine(
    findings: AnswerFindings,
    reconciler: StatsReconciler,
    scan: StatsScan,
    lake: AnswersLake,
    now: datetime,
) -> None:
    """Look closely at all who were chosen, and add what that shows to the findings."""
    verdicts = _verdicts(reconciler, scan, lake, now)
    findings.looked_at = len(verdicts)
    for fingerprint_hash, verdict in verdicts.items():
        if verdict.disagreement:
            findings.disagreements.append((fingerprint_hash, verdict.disagreement))
        if verdict.is_uncounted:
            findings.uncounted.append(fingerprint_hash)
        if not verdict.is_settled:
            findings.contended.append(fingerprint_hash)
        elif verdict.differences:
            findings.differences += verdict.differences
            findings.different.append(fingerprint_hash)
            if not verdict.is_repaired:
                findings.unrepaired.append(fingerprint_hash)


def _verdicts(
    reconciler: StatsReconciler, scan: StatsScan, lake: AnswersLake, now: datetime
) -> dict[str, PersonVerdict]:
    """Return the verdicts on all who were chosen, and on those whose stats have moved to somebody else's.

    The keys are fingerprint hashes.
    """

    def examine_all(hashes: Iterable[str], is_stranger: bool = False) -> dict[str, PersonVerdict]:
        def examine(fingerprint_hash: str) -> PersonVerdict:
            moved = scan.moved_to(fingerprint_hash)
            return reconciler.examine(fingerprint_hash, moved, lake, now, is_stranger=is_stranger)

        ordered = sorted(hashes)
        with ThreadPoolExecutor(SEGMENTS) as pool:
            return dict(zip(ordered, pool.map(examine, ordered), strict=True))

    verdicts = examine_all(scan.chosen)
    # What a disagreement leaves as it is says nothing about others.
    sound = [verdict for verdict in verdicts.values() if not verdict.disagreement]
    strangers = {stranger for verdict in sound for stranger in verdict.strangers}
    return verdicts | examine_all(strangers | scan.circling, is_stranger=True)
