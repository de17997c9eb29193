"""Stats of people who answer, against responses and lake: drift is named, and repaired where provable.

As for engagement, there are two phases. First all stats are scanned. Looked at closely is who differs from
what the lake's answers come to, is not stored as this system writes it, has answered since, or has a turn.
Then the stats are folded anew from the responses that are marked as counted. What differs from that is
repaired, on condition that it still is what was read, unless lake and table contradict each other.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyarrow import Table

from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.objects import NoObject, Objects
from adapters.questions.response_store import COUNTED, ResponseStore
from adapters.questions.user_stats_store import UserStatsStore, stats_from
from analytics.lake import curated_files
from analytics.lake.curated_files import arrow_table, connect, query
from analytics.lake.layout import ANSWERS_COMPARED, run_key
from analytics.lake.layout import curated_files as files_of
from analytics.recompute.answer_totals import answer_totals
from analytics.reconcile.candidates import SEGMENTS, in_parallel
from analytics.reconcile.differences import Difference, differences
from analytics.reconcile.profile_settings import UNREADABLE
from rules.days import stamp, unstamp
from rules.engagement.reconciliation import (
    LAKE_LAG,
    LAKE_LOST,
    Doubt,
    Look,
    Step,
    dates_due,
    next_step,
    slice_of,
    slices_due,
)
from rules.lake.entities import ANSWER_STATS, row_of
from rules.lake.question_entities import pseudonym
from rules.lake.residue import is_residue
from rules.questions.answer_doubts import LakeAnswers, doubt_of
from rules.questions.answer_stats import fold_responses
from rules.questions.responses import Response, from_item, to_item
from rules.smoke_names import is_smoke

# Stats against their newest rows in the lake: a version or a row that was changed by hand is named.
#
# Each write of stats has a version of its own, and makes one row. A night reads the rows of the last days and
# of dates that have their turn (dates_due): whose stats were written on one of them has a turn.


ENTITY = ANSWER_STATS.name
STATS_ENTITY = f"lake.{ENTITY}"
COLUMNS = tuple(each.name for each in ANSWER_STATS.fields)
_WRITTEN = ", ".join(each for each in COLUMNS if each != "version")
# A row that was changed by hand may lack what all rows have. copies: rows of one write. There are several if
# a version was changed alone, for the stream carries that.
NEWEST = f"""
SELECT * REPLACE (coalesce(person, '') AS person, coalesce(version, 0) AS version),
  count(*) OVER (PARTITION BY {_WRITTEN}) AS copies FROM stats
QUALIFY row_number() OVER (PARTITION BY person ORDER BY version DESC, updated_at DESC) = 1
"""  # noqa: S608 (declared names)


@dataclass(frozen=True, slots=True)
class StatsRows:
    """The newest row of each person, of those that were read. places: by pseudonym.

    since: all that was written from then on was read, so what is not there is not in the lake.
    """

    table: pa.Table
    places: Mapping[str, int]
    since: str
    now: datetime

    @classmethod
    def read(
        cls, objects: Objects, before: datetime | None, now: datetime, everybody: bool = False
    ) -> "StatsRows":
        """Read what has a turn. before: when that was done last; None: never, so all rows are read."""
        since = before - LAKE_LOST if before else now
        stored = {each: date.fromisoformat(curated_files.date_of(each)) for each in files_of(objects, ENTITY)}
        due = dates_due(set(stored.values()), before and before.date(), now.date())
        files = [each for each, day in stored.items() if everybody or day >= since.date() or day in due]
        db = connect()
        with arrow_table(db, "stats", curated_files.reader(objects, ENTITY, COLUMNS, files=files)):
            table = query(db, NEWEST)
        places = {person: place for place, person in enumerate(table["person"].to_pylist())}
        return cls(table, places, stamp(since), now)

    def version(self, person: str) -> int:
        """Return the version of a person's row; 0: none was read."""
        row = self._row(person)
        return int(row["version"]) if row else 0

    def differences(self, person: str, stored: Item) -> list[Difference]:
        """Return in what the lake's row is not what these stats made; `stored` is the lake's value."""
        found = row_of(ANSWER_STATS, decode_item(stored), self.now)
        row = self._row(person)
        is_due = found["updated_at"] < stamp(self.now - LAKE_LOST)
        if row is None or (row["version"] < found["version"] and row["updated_at"] != found["updated_at"]):
            is_lost = self.since <= found["updated_at"] and is_due
            return [Difference(person, STATS_ENTITY, "", "", None, found["version"])] if is_lost else []
        if row["version"] < found["version"] and not is_due:
            return []  # two writes at one instant, of which the lake has the first
        if row["version"] == found["version"] and row["copies"] > 1:
            return [Difference(person, STATS_ENTITY, "", "version", row["version"], None)]
        names = [name for name in COLUMNS if row[name] != _as_written(found.get(name))]
        if row["version"] != found["version"]:
            names = ["version"]
        return [
            Difference(person, STATS_ENTITY, "", name, row[name], _as_written(found.get(name)))
            for name in names
        ]

    def _row(self, person: str) -> dict[str, Any] | None:
        """Return a person's row, with values as the publisher writes them."""
        place = self.places.get(pseudonym(person))
        if place is None:
            return None
        (row,) = self.table.slice(place, 1).to_pylist()
        return {name: _as_written(each) for name, each in row.items()}


@dataclass(frozen=True, slots=True)
class AnswersLake:
    """What the lake knows of people who answer. answers: by pseudonym."""

    answers: Mapping[str, LakeAnswers]
    rows: StatsRows


def _as_written(value: Any) -> Any:
    """Return a column's value as the publisher writes it; an empty text is none in the lake."""
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, date):
        return value.isoformat()
    return None if value == "" else value


# What a pass over all stats of people who answer found, and how an item of UserStats names a person.


# All attributes of an item that says under which hash a person's stats are. With others it is stats.
OF_MOVED = {"fingerprint_hash", "moved_to", "version", "updated_at"}


@dataclass(slots=True)
class StatsScan:
    """What a pass over the stats found.

    people: how many have stats. chosen: whom to look at closely. claimed: pseudonyms of all hashes that any
    item names. moves: hash -> the older ones whose stats have moved to it. listed: hash -> the older ones
    that its stats list. circling: one of those whose stats have moved in a circle.
    """

    people: int = 0
    chosen: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)
    moves: dict[str, set[str]] = field(default_factory=dict)
    listed: dict[str, set[str]] = field(default_factory=dict)
    circling: set[str] = field(default_factory=set)

    def look(self, stored: Item, is_chosen: bool) -> None:
        """Add an item. is_chosen: whether to look at it closely, if it has stats."""
        person = stored["fingerprint_hash"]["S"]
        hashes = hashes_of(person, stored)
        self.claimed.update(map(pseudonym, hashes))
        if is_moved(stored):
            self.moves.setdefault(str(decode_item(stored)["moved_to"]), set()).add(person)
            return
        self.people += 1
        if len(hashes) > 1:
            self.listed[person] = set(hashes[1:])
        if is_chosen:
            self.chosen.add(person)

    def add(self, other: "StatsScan") -> None:
        """Add what another part of the table showed."""
        self.people += other.people
        self.chosen |= other.chosen
        self.claimed |= other.claimed
        self.listed |= other.listed
        for new, older in other.moves.items():
            self.moves.setdefault(new, set()).update(older)

    def choose_unlisted(self) -> None:
        """Choose also whoever others have moved to without being listed there: one of the two is wrong."""
        moved = set().union(*self.moves.values())
        homes = self.moves.keys() - moved
        for home in homes:
            if self.moved_to(home) - self.listed.get(home, set()):
                self.chosen.add(home)
        # What leads to no home leads in a circle. Once one of it has its stats back, the others have a home.
        self.circling = set(sorted(moved - set().union(*map(self.moved_to, homes)))[:1])

    def moved_to(self, person: str) -> set[str]:
        """Return the older hashes whose stats have moved to a person, in one step or several."""
        found: set[str] = set()
        waiting = [person]
        while waiting:
            older = self.moves.get(waiting.pop(), set()) - found
            found |= older
            waiting += older
        return found


def is_moved(stored: Item) -> bool:
    """Whether an item only says under which hash a person's stats are."""
    return "moved_to" in stored and stored.keys() <= OF_MOVED


def proven_hashes(person: str, hashes: Iterable[str], responses: Sequence[Response]) -> list[str]:
    """Return those of some hashes that the person's answers show to be the person's, the person's own first.

    Each answer names the other hashes of whoever gave it. responses: all that were given under these hashes.
    """
    names: dict[str, set[str]] = {}
    for each in responses:
        for other in each.other_hashes:
            names.setdefault(each.fingerprint_hash, set()).add(other)
            names.setdefault(other, set()).add(each.fingerprint_hash)
    known, waiting = {person}, [person]
    while waiting:
        more = names.get(waiting.pop(), set()) - known
        known |= more
        waiting += more
    return [person, *sorted(known.intersection(hashes) - {person})]


def hashes_of(person: str, stored: Item | None) -> list[str]:
    """Return all hashes under which a person has answered, the one of the item first."""
    older = decode_item(stored).get("older_hashes", []) if stored else []
    known = [each for each in older if isinstance(each, str)] if isinstance(older, list) else []
    return [person, *known]


def sum_of(lake: Mapping[str, LakeAnswers], hashes: Iterable[str]) -> LakeAnswers:
    """Return what the lake's answers under these hashes come to."""
    whole = LakeAnswers()
    for each in hashes:
        whole = whole.plus(lake.get(pseudonym(each), LakeAnswers()))
    return whole


# Responses that contradict themselves or each other: changed by hand in what the lake has no copy of.


def contradiction(found: Sequence[tuple[Item, Response]]) -> str:
    """Return what is wrong with all answers of one person, in words; "" if nothing is."""
    for stored, response in found:
        if wrong := _changed_attributes(stored, response):
            return f"{' and '.join(wrong)} is not as it was written, in the answer to {response.question_id}"
    return ""


def _changed_attributes(stored: Item, response: Response) -> list[str]:
    """Return the attributes that no process writes so."""
    expected = encode_item(to_item(response))
    names = stored.keys() | expected.keys()
    wrong = sorted(name for name in names - {COUNTED} if stored.get(name) != expected.get(name))
    # An answer without a zone of its own counts by UTC, also for whoever has set a zone (rule 1).
    return [*wrong, *(["zone"] if response.zone != (response.timezone or "UTC") else [])]


# One person's stats against the person's own responses, and their repair (the exact phase).


TABLE = "UserStats"
LOOKS_MAX = 4
PAUSE_SECONDS = 0.05
# The index by person has all that was written so long ago.
INDEXED = timedelta(seconds=10)
KEPT = ("version", "updated_at")
VERSION_MAX = 2**62


@dataclass(slots=True)
class PersonVerdict:
    """What was found of one person. is_settled: looked at long enough to say so.

    strangers: whose stats say that they have moved to this person, and no answer shows that they are one.
    """

    differences: list[Difference] = field(default_factory=list)
    disagreement: str = ""
    is_uncounted: bool = False
    is_repaired: bool = False
    is_settled: bool = True
    strangers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StatsReconciler:
    """repair: False writes nothing at all."""

    stats: UserStatsStore
    responses: ResponseStore
    repair: bool

    def examine(
        self,
        person: str,
        moved: Iterable[str],
        lake: AnswersLake,
        now: datetime,
        *,
        is_stranger: bool = False,
    ) -> PersonVerdict:
        """Compare and repair one person's stats.

        person: a hash of the table. moved: older hashes whose stats have moved to this one.
        is_stranger: if the stats have moved, that is wrong.
        """
        verdict, moved = PersonVerdict(), set(moved)
        for times, _ in enumerate(pauses(LOOKS_MAX, base_seconds=PAUSE_SECONDS), 1):
            stored = self.stats.stored(person)
            if stored is not None and (is_moved(stored) or _is_fresh(stored, now)) and not is_stranger:
                verdict.is_settled = is_moved(stored)
                return verdict
            claimed = {*hashes_of(person, stored)[1:], *moved} - {person}
            try:
                hashes, counted, doubt = self._answers(person, claimed, lake.answers, verdict, now)
            except UNREADABLE as error:
                verdict.disagreement = f"an answer cannot be read: {type(error).__name__}: {error}"
                return verdict
            verdict.strangers = sorted(moved - {*hashes})
            kept = {name for name in KEPT if stored is None or _is_sound(name, stored, now)}
            new = self._item(hashes, counted, stored, lake.rows.version(person), now)
            found = differences(
                person, TABLE, "", _lasting_attributes(stored, kept), _lasting_attributes(new, kept)
            )
            if stored and new and kept == {*KEPT} and not is_moved(stored):
                found += lake.rows.differences(person, {**new, **{name: stored[name] for name in KEPT}})
            step = next_step(Look(bool(found), is_behind=False, doubt=doubt), times, self.repair)
            if step is Step.LOOK_AGAIN:
                continue
            verdict.is_repaired = bool(
                step is Step.REPAIR and new is not None and self.stats.put_in_place(new, stored)
            )
            if step is not Step.REPAIR or verdict.is_repaired:
                verdict.differences = found
                return verdict
        verdict.is_settled = False
        return verdict

    def looks_right(self, stored: Item, lake: AnswersLake, since: str, now: datetime) -> bool:
        """Whether stats are what the lake says, are stored as we write them, and are not new."""
        try:
            kept = decode_item(stored)
            stats, hashes = stats_from(kept), hashes_of(kept["fingerprint_hash"], stored)
            whole = encode_item(self.stats.attributes(hashes[0], stats, tuple(hashes[1:])))
            is_whole = _lasting_attributes(stored, KEPT) == whole and kept["updated_at"] < since
            is_whole = is_whole and all(_is_sound(name, stored, now) for name in KEPT)
            is_whole = is_whole and stats.total_answers == sum_of(lake.answers, hashes).answers
            return bool(is_whole and not lake.rows.differences(hashes[0], stored))
        except UNREADABLE:
            return False

    def hash_of(self, name: str, question_id: str) -> str | None:
        """Return the hash of somebody whom only the lake knows: one of those who answered this question."""
        found = self.responses.of_question(question_id)
        return next(
            (each.fingerprint_hash for each in found if pseudonym(each.fingerprint_hash) == name), None
        )

    def _answers(
        self,
        person: str,
        claimed: Iterable[str],
        lake: Mapping[str, LakeAnswers],
        verdict: PersonVerdict,
        now: datetime,
    ) -> tuple[list[str], list[Response], Doubt]:
        """Return a person's hashes, the counted responses, and what speaks against all; notes what it sees.

        claimed: other hashes that are said to be the person's.
        """
        found = [
            (stored, from_item(decode_item(stored)), is_counted)
            for stored, is_counted in self.responses.of_person([person, *sorted(claimed)])
        ]
        hashes = proven_hashes(person, claimed, [each for _, each, _ in found])
        own = [each for each in found if each[1].fingerprint_hash in hashes]
        counted = [each for _, each, is_counted in own if is_counted]
        left = [each for _, each, is_counted in own if not is_counted]
        genuine = [each for each in (*counted, *left) if not is_smoke(each.agent_id)]
        doubt, verdict.disagreement = doubt_of(genuine, sum_of(lake, hashes), now)
        if not doubt and (wrong := contradiction([(stored, each) for stored, each, _ in own])):
            doubt, verdict.disagreement = Doubt.CONTRADICTED, wrong
        verdict.is_uncounted = any(each.created_at < stamp(now - LAKE_LAG) for each in left)
        return hashes, counted, doubt

    def _item(
        self, hashes: list[str], counted: list[Response], stored: Item | None, past: int, now: datetime
    ) -> Item | None:
        """Return the item that must be there; None if nothing is counted. past: the lake's version.

        The version is a number that never restarts: the seconds since 1970, or more. So it is beyond all that
        the lake has, also where the item is gone or its version was set back.
        """
        if not counted and stored is None:
            return None
        before = decode_item(stored)["version"] if stored and _is_sound("version", stored, now) else 0
        version = max(before, past, int(now.timestamp())) + 1
        whole = self.stats.attributes(hashes[0], fold_responses(counted), tuple(hashes[1:]))
        return encode_item(whole | {"version": version, "updated_at": stamp(now)})


def _is_fresh(stored: Item, now: datetime) -> bool:
    """Whether a writer was here just now, so that the index may lack what was counted."""
    return bool(stamp(now - INDEXED) < stored.get("updated_at", {}).get("S", "") < stamp(now + LAKE_LAG))


def _is_sound(name: str, stored: Item, now: datetime) -> bool:
    """Whether the next writer can go on from an item's version, and read when it was written."""
    value = decode_item(stored).get(name)
    if name == "version":
        return type(value) is int and 0 < value < VERSION_MAX
    try:
        return isinstance(value, str) and stamp(unstamp(value)) == value < stamp(now + LAKE_LAG)
    except ValueError:
        return False


def _lasting_attributes(stored: Item | None, kept: Collection[str]) -> Item | None:
    """Return an item without what each writing changes."""
    return stored and {name: value for name, value in stored.items() if name not in kept}


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
        told = {"counts": self.counts, **asdict(self)}
        objects.put(key, json.dumps(told, indent=1, default=str).encode())
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
    _claim(findings, reconciler, scan, table, lake)
    _examine(findings, reconciler, scan, lake, now)
    if reconciler.repair:
        objects.put(ANSWERS_COMPARED, json.dumps({"compared_at": now.isoformat()}).encode())
    return findings


def _claim(
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
    """Return the report's tables of what `told` returns: title, heads of columns, rows."""
    uncounted = [(each,) for each in found["uncounted"]]
    return [
        ("Figures of people who answer", ("what", "number"), list(found["counts"].items())),
        ("Answers and the lake disagree", ("person", "what"), found["disagreements"]),
        ("Answers that nobody has counted", ("person",), uncounted),
    ]
