"""Compares the stats of people who answer with their responses and the lake, and repairs them.

First all stats are scanned. The scan chooses stats that differ from the lake's answers, that are not stored
as this system writes them, that have changed since the last night, or whose turn it is (each once in 28
nights). Then the chosen stats are folded again from the responses that are marked as counted. If the stats
differ from the fold, they are repaired, unless lake and table contradict each other, or somebody writes them
meanwhile.
"""

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from pyarrow import Table

from adapters.platform.items import Item, decode_item
from adapters.platform.objects import NoObject, Objects
from adapters.questions.response_store import ResponseStore
from adapters.questions.user_stats_store import UserStatsStore
from analytics.lake.layout import ANSWERS_COMPARED, run_key
from analytics.questions.answer_totals import answer_totals
from analytics.questions.stats_reconciler import (
    AnswersLake,
    PersonVerdict,
    StatsReconciler,
    StatsRows,
    hashes_of,
    is_moved,
)
from analytics.reconcile.differences import Difference
from analytics.reconcile.findings import NightPlan
from analytics.reconcile.part_night import PartNight, Step
from rules.days import stamp
from rules.engagement.reconciliation import LAKE_LAG
from rules.lake.pseudonyms import pseudonym
from rules.lake.residues import is_residue
from rules.parts import Part
from rules.questions.answer_doubts import LakeAnswers
from rules.turns import slice_of, slices_due

RESULT = "answer_stats.json"
SEGMENTS = 8  # parts of the table that are scanned side by side; also the people who are examined at once
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


def reconcile_answers(
    objects: Objects,
    reconciler: StatsReconciler,
    now: datetime,
    *,
    everybody: bool = False,
    has_named_dates: bool = False,
) -> AnswerFindings:
    """Compare all stats with the lake's answers, and examine those that may be wrong.

    everybody: examine all stats. has_named_dates: the night brings only some dates into the lake, so the next
    night looks at the same changes again.
    """
    totals = answer_totals(objects, now)
    answers = {
        row["person"]: LakeAnswers(row["answers"], row["digest"])
        for row in totals.select(["person", "answers", "digest"]).to_pylist()
    }
    last_compared_at = _last_compared_at(objects)
    lake = AnswersLake(answers, StatsRows.read(objects, last_compared_at, now, everybody))
    comparison = _Comparison(reconciler, lake, now)
    scan = comparison.scan(None if everybody else last_compared_at)
    findings = AnswerFindings(scan.people)
    comparison.choose_unknown(findings, scan, totals)
    comparison.examine_chosen(findings, scan)
    if reconciler.repair and not has_named_dates:
        objects.put(ANSWERS_COMPARED, json.dumps({"compared_at": now.isoformat()}).encode())
    return findings


def _last_compared_at(objects: Objects) -> datetime | None:
    try:
        return datetime.fromisoformat(json.loads(objects.get(ANSWERS_COMPARED))["compared_at"])
    except NoObject:
        return None


@dataclass(slots=True)
class StatsScan:
    """The result of a pass over the stats. A hash is a person's fingerprint hash."""

    people: int = 0  # the number of people with stats
    chosen: set[str] = field(default_factory=set)  # hashes whose stats are to be examined
    known_pseudonyms: set[str] = field(default_factory=set)  # of all hashes that any item names
    moves: dict[str, set[str]] = field(default_factory=dict)  # hash -> older hashes whose stats moved there
    listed: dict[str, set[str]] = field(default_factory=dict)  # hash -> older hashes that its stats list

    def add_item(self, item: Item, is_chosen: bool) -> None:
        """Add an item. is_chosen: whether its stats are to be examined, if it has some."""
        fingerprint_hash = item["fingerprint_hash"]["S"]
        hashes = hashes_of(fingerprint_hash, item)
        self.known_pseudonyms.update(map(pseudonym, hashes))
        if is_moved(item):
            self.moves.setdefault(str(decode_item(item)["moved_to"]), set()).add(fingerprint_hash)
            return
        self.people += 1
        if len(hashes) > 1:
            self.listed[fingerprint_hash] = set(hashes[1:])
        if is_chosen:
            self.chosen.add(fingerprint_hash)

    def merge(self, other: "StatsScan") -> None:
        """Add the result of another part of the table."""
        self.people += other.people
        self.chosen |= other.chosen
        self.known_pseudonyms |= other.known_pseudonyms
        self.listed |= other.listed
        for new, older in other.moves.items():
            self.moves.setdefault(new, set()).update(older)

    def choose_unlisted(self) -> None:
        """Choose also stats that do not list a hash whose stats have moved to them: one of both is wrong."""
        for home in self._homes():
            if self.moved_from(home) - self.listed.get(home, set()):
                self.chosen.add(home)

    def hash_in_circle(self) -> set[str]:
        """Return the first of the hashes whose stats have moved in a circle; an empty set if there is none.

        One hash is enough: once it has its stats back, the moves of the others lead to it.
        """
        # A move that leads to no home is one of a circle.
        in_circles = self._moved_hashes().difference(*map(self.moved_from, self._homes()))
        return set(sorted(in_circles)[:1])

    def moved_from(self, fingerprint_hash: str) -> set[str]:
        """Return the older hashes whose stats have moved to a hash, in one step or several."""
        all_older: set[str] = set()
        waiting = [fingerprint_hash]
        while waiting:
            older = self.moves.get(waiting.pop(), set()) - all_older
            all_older |= older
            waiting += older
        return all_older

    def _homes(self) -> set[str]:
        """Return the hashes to which stats have moved, and from which they have not moved on."""
        return self.moves.keys() - self._moved_hashes()

    def _moved_hashes(self) -> set[str]:
        return set().union(*self.moves.values())


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A night's comparison of stats with the lake."""

    reconciler: StatsReconciler
    lake: AnswersLake
    now: datetime

    def scan(self, last_compared_at: datetime | None) -> StatsScan:
        """Scan all stats. last_compared_at: None: choose all of them."""
        if last_compared_at is None:
            since, slices = "", frozenset[int]()  # no stats were written before "", so none look right
        else:
            since = stamp(last_compared_at - LAKE_LAG)
            slices = slices_due(last_compared_at.date(), self.now.date())

        def scan_segment(segment: int) -> StatsScan:
            scan = StatsScan()
            for item in self.reconciler.stats.scan(segment, SEGMENTS):
                has_turn = slice_of(item["fingerprint_hash"]["S"]) in slices
                looks_right = self.reconciler.looks_right(item, self.lake, since, self.now)
                scan.add_item(item, is_chosen=has_turn or not looks_right)
            return scan

        total = StatsScan()
        with ThreadPoolExecutor(SEGMENTS) as pool:
            for scan in pool.map(scan_segment, range(SEGMENTS)):
                total.merge(scan)
        total.choose_unlisted()
        return total

    def choose_unknown(self, findings: AnswerFindings, scan: StatsScan, totals: Table) -> None:
        """Choose people whom only the lake knows, if the table has an answer of theirs; report the others.

        totals: see answer_totals.
        """
        for row in totals.select(["person", "question_id"]).to_pylist():
            person = row["person"]
            if person in scan.known_pseudonyms or is_residue(person):
                continue
            findings.people += 1
            if fingerprint_hash := self.reconciler.hash_of(person, row["question_id"]):
                scan.chosen.add(fingerprint_hash)
            else:
                findings.disagreements.append((person, "the table lacks all answers that the lake has"))
        with_stats = self.lake.rows.row_of_person.keys()
        for person in sorted(with_stats - self.lake.answers.keys() - scan.known_pseudonyms):
            if not is_residue(person):
                findings.disagreements.append((person, "the table lacks the stats that the lake has"))

    def examine_chosen(self, findings: AnswerFindings, scan: StatsScan) -> None:
        """Examine the chosen stats, and add the verdicts to the findings.

        Then examine the stats that say that they have moved to one of these, though no answer shows it.
        """
        verdicts = self._examine(scan, scan.chosen)
        # If lake and table disagree about a person, the person's moves prove nothing about others.
        undisputed = [verdict for verdict in verdicts.values() if not verdict.disagreement]
        strangers = {stranger for verdict in undisputed for stranger in verdict.strangers}
        verdicts |= self._examine(scan, strangers | scan.hash_in_circle(), are_strangers=True)
        findings.looked_at = len(verdicts)
        for fingerprint_hash, verdict in verdicts.items():
            findings.add(fingerprint_hash, verdict)

    def _examine(
        self, scan: StatsScan, hashes: Iterable[str], *, are_strangers: bool = False
    ) -> dict[str, PersonVerdict]:
        ordered = sorted(hashes)

        def examine(fingerprint_hash: str) -> PersonVerdict:
            moved = scan.moved_from(fingerprint_hash)
            return self.reconciler.examine(
                fingerprint_hash, moved, self.lake, self.now, is_stranger=are_strangers
            )

        with ThreadPoolExecutor(SEGMENTS) as pool:
            return dict(zip(ordered, pool.map(examine, ordered), strict=True))


def answers_step(config: Any, dynamodb: Any) -> Step:
    """Return the step that compares the stats of people who answer: {"run_id", "repair"?, "everybody"?}.

    Its answer: counts, answer_stats_key. It raises NoObject if the night is not planned.
    """
    stats = UserStatsStore(dynamodb, config.user_stats_table, config.stats_shards)
    responses = ResponseStore(dynamodb, config.responses_table)

    def compare(objects: Objects, event: Mapping[str, Any], now: datetime) -> dict[str, Any]:
        reconciler = StatsReconciler(stats, responses, event.get("repair") is True)
        findings = reconcile_answers(
            *(objects, reconciler, now),
            everybody=event.get("everybody") is True,
            has_named_dates=NightPlan.load(objects, event["run_id"]).span is not None,
        )
        return {"counts": findings.counts, "answer_stats_key": findings.save(objects, event["run_id"])}

    return compare


NIGHT = PartNight(
    Part.QUESTIONS,
    "reconcile_answers",
    {"responses_table": str, "user_stats_table": str, "stats_shards": int},
    answers_step,
    "answer_stats",
    short_result,
    tables,
)
