"""Compares one person's stats with the person's own responses, and repairs them.

A person is named by a fingerprint hash here: the one under which the stats are stored.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.objects import Objects
from adapters.questions.response_store import COUNTED, ResponseStore
from adapters.questions.stats_items import stats_from
from adapters.questions.user_stats_store import UserStatsStore
from analytics.lake.curated_files import arrow_table, cursor, date_of, query, reader
from analytics.lake.layout import curated_files
from analytics.reconcile.differences import Difference, differences
from analytics.reconcile.stored_profiles import UNREADABLE
from rules.days import stamp, unstamp
from rules.engagement.reconciliation import LAKE_LAG, LAKE_LOST, Doubt, Look, Step, next_step
from rules.lake.entities import row_of
from rules.lake.pseudonyms import pseudonym
from rules.questions.answer_doubts import LakeAnswers, doubt_of
from rules.questions.answer_stats import fold_responses
from rules.questions.lake_entities import ANSWER_STATS
from rules.questions.responses import Response, from_item, to_item
from rules.smoke_names import is_smoke
from rules.turns import dates_due

ENTITY = ANSWER_STATS.name
STATS_ENTITY = f"lake.{ENTITY}"
COLUMNS = tuple(field.name for field in ANSWER_STATS.fields)
_WRITTEN = ", ".join(column for column in COLUMNS if column != "version")
# The newest row of each person. A row that was changed by hand may lack its person or version. copies: how
# many rows differ in nothing but their versions. There are several if somebody has changed the version of an
# item alone, because the stream brings each change into the lake.
NEWEST = f"""
SELECT * REPLACE (coalesce(person, '') AS person, coalesce(version, 0) AS version),
  count(*) OVER (PARTITION BY {_WRITTEN}) AS copies FROM stats
QUALIFY row_number() OVER (PARTITION BY person ORDER BY version DESC, updated_at DESC) = 1
"""  # noqa: S608 (declared names)
TABLE = "UserStats"
LOOKS_MAX = 4  # at a person whose stats others keep changing
PAUSE_SECONDS = 0.05  # before a second look, then more
# The index by person has every answer that is older than this.
INDEX_LAG = timedelta(seconds=10)
# Attributes that each write changes. They are compared only if the next writer cannot go on from them.
WRITER_ATTRIBUTES = ("version", "updated_at")
VERSION_MAX = 2**62  # beyond that the next versions would not fit into the lake's column
# All attributes of an item that only says where a person's stats are. An item with others is stats.
MOVED_ATTRIBUTES = {"fingerprint_hash", "moved_to", "version", "updated_at"}


@dataclass(frozen=True, slots=True)
class StatsRows:
    """The newest row of each person, of the rows that a night reads."""

    table: pa.Table
    row_of_person: Mapping[str, int]  # pseudonym -> index of the row in the table
    since: str  # all rows of writes since this instant were read: a missing one is not in the lake
    now: datetime

    @classmethod
    def read(
        cls, objects: Objects, last_compared_at: datetime | None, now: datetime, everybody: bool = False
    ) -> "StatsRows":
        """Read the rows of the last days and of the dates whose turn it is. everybody: read all rows.

        last_compared_at: None if stats were never compared; then it is the turn of all dates.
        """
        # The first night reports no lost row, because it does not know since when the lake has rows.
        since = last_compared_at - LAKE_LOST if last_compared_at else now
        dates = {file: date.fromisoformat(date_of(file)) for file in curated_files(objects, ENTITY)}
        last_compared_on = last_compared_at.date() if last_compared_at else None
        due = dates_due(set(dates.values()), last_compared_on, now.date())
        files = [file for file, day in dates.items() if everybody or day >= since.date() or day in due]
        db = cursor()
        with arrow_table(db, "stats", reader(objects, ENTITY, COLUMNS, files=files)):
            table = query(db, NEWEST)
        row_of_person = {person: index for index, person in enumerate(table["person"].to_pylist())}
        return cls(table, row_of_person, stamp(since), now)

    def version(self, fingerprint_hash: str) -> int:
        """Return the version of a person's row; 0: none was read."""
        row = self._row(fingerprint_hash)
        return int(row["version"]) if row else 0

    def differences(self, fingerprint_hash: str, item: Item) -> list[Difference]:
        """Return in what the lake's row differs from the row that the stats must have.

        item: the stats, as the table has them. A Difference has the lake's value as `stored`, and the item's
        value as `expected`.
        """
        difference = partial(Difference, fingerprint_hash, STATS_ENTITY, "")
        expected, row = row_of(ANSWER_STATS, decode_item(item), self.now), self._row(fingerprint_hash)
        is_old = expected["updated_at"] < stamp(self.now - LAKE_LOST)  # its row would be in the lake by now
        # The lake has no row of the person, or an older one.
        if row is None or (
            row["version"] < expected["version"] and row["updated_at"] != expected["updated_at"]
        ):
            is_lost = is_old and self.since <= expected["updated_at"]
            return [difference("", None, expected["version"])] if is_lost else []
        # There were two writes at one instant, and so far only the row of the first is in the lake.
        if row["version"] < expected["version"] and not is_old:
            return []
        # Somebody has changed only the version, and the rows of both versions are in the lake.
        if row["version"] == expected["version"] and row["copies"] > 1:
            return [difference("version", row["version"], None)]
        # The row is ahead of the table; or somebody has changed only the version, and that one has no row.
        if row["version"] != expected["version"]:
            return [difference("version", row["version"], expected["version"])]
        return [
            difference(name, row[name], _as_written(expected.get(name)))
            for name in COLUMNS
            if row[name] != _as_written(expected.get(name))
        ]

    def _row(self, fingerprint_hash: str) -> dict[str, Any] | None:
        """Return a person's row, with values as the publisher writes them."""
        index = self.row_of_person.get(pseudonym(fingerprint_hash))
        if index is None:
            return None
        (row,) = self.table.slice(index, 1).to_pylist()
        return {name: _as_written(value) for name, value in row.items()}


@dataclass(frozen=True, slots=True)
class AnswersLake:
    """The lake's figures and rows of people who answer."""

    answers: Mapping[str, LakeAnswers]  # by pseudonym
    rows: StatsRows

    def answers_under(self, hashes: Iterable[str]) -> LakeAnswers:
        """Return the figures of all answers under these hashes together."""
        total = LakeAnswers()
        for fingerprint_hash in hashes:
            total = total.plus(self.answers.get(pseudonym(fingerprint_hash), LakeAnswers()))
        return total


def _as_written(value: Any) -> Any:
    """Return a column's value as the publisher writes it. The lake has no empty text: it is None there."""
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, date):
        return value.isoformat()
    return None if value == "" else value


@dataclass(slots=True)
class PersonVerdict:
    """The result of the looks at one person, and of what was done about it."""

    differences: list[Difference] = field(default_factory=list)
    disagreement: str = ""  # how lake and table differ, or what is wrong with an answer; "" if nothing
    is_uncounted: bool = False  # there are answers that should already be counted
    is_repaired: bool = False
    is_contended: bool = False  # others kept changing the stats, so they were not compared
    # Hashes whose stats say that they have moved to this person, though no answer shows that both are one
    # person
    strangers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer as the table has it."""

    item: Item
    response: Response  # read from the item
    is_counted: bool  # whether the item is marked as counted in the stats


@dataclass(frozen=True, slots=True)
class PersonAnswers:
    """A person's answers, as the table has them."""

    hashes: list[str]  # all hashes that the answers prove to be the person's; the hash of the stats first
    counted: list[Response]  # the answers that are marked as counted
    doubt: Doubt
    disagreement: str  # the reason of the doubt
    is_uncounted: bool  # see PersonVerdict


@dataclass(frozen=True, slots=True)
class StatsReconciler:
    """Compares stats with responses, and repairs them."""

    stats: UserStatsStore
    responses: ResponseStore
    repair: bool  # False: nothing at all is written

    def examine(
        self,
        fingerprint_hash: str,
        moved: Iterable[str],
        lake: AnswersLake,
        now: datetime,
        *,
        is_stranger: bool = False,
    ) -> PersonVerdict:
        """Compare and repair one person's stats.

        moved: older hashes whose stats have moved to this one. is_stranger: the stats of this hash should not
        have moved, so they are compared even if they say that they have.
        """
        verdict, older_hashes = PersonVerdict(), set(moved)
        for looks, _ in enumerate(pauses(LOOKS_MAX, base_seconds=PAUSE_SECONDS), 1):
            stored = self.stats.stored(fingerprint_hash)
            if stored is not None and not is_stranger:
                if is_moved(stored):  # the hash that they have moved to is compared
                    return verdict
                if _is_fresh(stored, now):
                    break
            claimed = {*hashes_of(fingerprint_hash, stored)[1:], *older_hashes} - {fingerprint_hash}
            try:
                answers = self._answers(fingerprint_hash, claimed, lake, now)
            except UNREADABLE as error:
                verdict.disagreement = f"an answer cannot be read: {type(error).__name__}: {error}"
                return verdict
            verdict.disagreement, verdict.is_uncounted = answers.disagreement, answers.is_uncounted
            verdict.strangers = sorted(older_hashes - {*answers.hashes})
            expected = self._expected_item(answers, stored, lake.rows.version(fingerprint_hash), now)
            found = _item_differences(fingerprint_hash, stored, expected, lake, now)
            step = next_step(Look(bool(found), is_only_behind=False, doubt=answers.doubt), looks, self.repair)
            if step is Step.LOOK_AGAIN:
                continue
            verdict.is_repaired = bool(
                step is Step.REPAIR and expected is not None and self.stats.put_in_place(expected, stored)
            )
            if step is not Step.REPAIR or verdict.is_repaired:
                verdict.differences = found
                return verdict
        verdict.is_contended = True
        return verdict

    def looks_right(self, stored: Item, lake: AnswersLake, since: str, now: datetime) -> bool:
        """Whether stats agree with the lake, were written by this system, and are older than `since`."""
        try:
            values = decode_item(stored)
            stats, hashes = stats_from(values), hashes_of(values["fingerprint_hash"], stored)
            expected = encode_item(self.stats.attributes(hashes[0], stats, tuple(hashes[1:])))
            return bool(
                _without(WRITER_ATTRIBUTES, stored) == expected
                and values["updated_at"] < since
                and all(_is_sound(name, stored, now) for name in WRITER_ATTRIBUTES)
                and stats.total_answers == lake.answers_under(hashes).answers
                and not lake.rows.differences(hashes[0], stored)
            )
        except UNREADABLE:
            return False

    def hash_of(self, person: str, question_id: str) -> str | None:
        """Return the hash of a person whom only the lake knows; None if no answer to the question has it.

        person: the pseudonym. question_id: a question that the person has answered.
        """
        for response in self.responses.of_question(question_id):
            if pseudonym(response.fingerprint_hash) == person:
                return response.fingerprint_hash
        return None

    def _answers(
        self, fingerprint_hash: str, claimed: Iterable[str], lake: AnswersLake, now: datetime
    ) -> PersonAnswers:
        """Read a person's answers. claimed: other hashes that items say are the person's.

        Raises one of UNREADABLE for an answer that cannot be read.
        """
        answers = [
            StoredAnswer(stored, from_item(decode_item(stored)), is_counted=COUNTED in stored)
            for stored in self.responses.of_person([fingerprint_hash, *sorted(claimed)])
        ]
        hashes = proven_hashes(fingerprint_hash, claimed, [answer.response for answer in answers])
        proven = [answer for answer in answers if answer.response.fingerprint_hash in hashes]
        counted = [answer.response for answer in proven if answer.is_counted]
        uncounted = [answer.response for answer in proven if not answer.is_counted]
        genuine = [response for response in (*counted, *uncounted) if not is_smoke(response.agent_id)]
        doubt, disagreement = doubt_of(genuine, lake.answers_under(hashes), now)
        fault = "" if doubt else _fault_of_answers(proven)
        if fault:
            doubt, disagreement = Doubt.CONTRADICTED, fault
        is_uncounted = any(response.created_at < stamp(now - LAKE_LAG) for response in uncounted)
        return PersonAnswers(hashes, counted, doubt, disagreement, is_uncounted)

    def _expected_item(
        self, answers: PersonAnswers, stored: Item | None, lake_version: int, now: datetime
    ) -> Item | None:
        """Return the item that must be stored; None if no answer is counted and no item stored.

        The version is a number that never restarts: the seconds since 1970, or more. So it is greater than
        all versions in the lake, even if the item is gone or its version was set back.
        """
        if not answers.counted and stored is None:
            return None
        before = decode_item(stored)["version"] if stored and _is_sound("version", stored, now) else 0
        version = max(before, lake_version, int(now.timestamp())) + 1
        stats, (current, *older) = fold_responses(answers.counted), answers.hashes
        attributes = self.stats.attributes(current, stats, tuple(older))
        return encode_item(attributes | {"version": version, "updated_at": stamp(now)})


def proven_hashes(fingerprint_hash: str, claimed: Iterable[str], responses: Sequence[Response]) -> list[str]:
    """Return a person's hash, and the claimed hashes that answers show to be the same person's.

    Each answer names the other hashes of the person who gave it. responses: all that were given under these
    hashes.
    """
    neighbours: dict[str, set[str]] = {}
    for response in responses:
        for other in response.other_hashes:
            neighbours.setdefault(response.fingerprint_hash, set()).add(other)
            neighbours.setdefault(other, set()).add(response.fingerprint_hash)
    connected, waiting = {fingerprint_hash}, [fingerprint_hash]
    while waiting:
        next_hashes = neighbours.get(waiting.pop(), set()) - connected
        connected |= next_hashes
        waiting += next_hashes
    return [fingerprint_hash, *sorted(connected.intersection(claimed) - {fingerprint_hash})]


def _fault_of_answers(answers: Iterable[StoredAnswer]) -> str:
    """Return the first fault of the answers of one person, in words; "" if there is none."""
    for answer in answers:
        if changed := _changed_attributes(answer.item, answer.response):
            question = answer.response.question_id
            return f"{' and '.join(changed)} is not as it was written, in the answer to {question}"
    return ""


def _changed_attributes(stored: Item, response: Response) -> list[str]:
    """Return the attributes whose values no process of ours writes for this response."""
    expected = encode_item(to_item(response))
    names = stored.keys() | expected.keys()
    wrong = sorted(name for name in names - {COUNTED} if stored.get(name) != expected.get(name))
    # An answer without a zone of its own counts by UTC, also for a person who has set a zone (rule 1).
    return [*wrong, *(["zone"] if response.zone != (response.timezone or "UTC") else [])]


def _item_differences(
    fingerprint_hash: str, stored: Item | None, expected: Item | None, lake: AnswersLake, now: datetime
) -> list[Difference]:
    """Return in what the stats, and the lake's row, differ from the item that must be stored."""
    sound = {name for name in WRITER_ATTRIBUTES if stored is None or _is_sound(name, stored, now)}
    wrong = differences(
        fingerprint_hash,
        TABLE,
        "",
        stored and _without(sound, stored),
        expected and _without(sound, expected),
    )
    if stored and expected and sound == {*WRITER_ATTRIBUTES} and not is_moved(stored):
        written = {name: stored[name] for name in WRITER_ATTRIBUTES}
        wrong += lake.rows.differences(fingerprint_hash, {**expected, **written})
    return wrong


def _is_fresh(stored: Item, now: datetime) -> bool:
    """Whether the stats were written just now, so that the index may still lack the newest answer."""
    return bool(stamp(now - INDEX_LAG) < stored.get("updated_at", {}).get("S", "") < stamp(now + LAKE_LAG))


def _is_sound(name: str, stored: Item, now: datetime) -> bool:
    """Whether the next writer can go on from one of WRITER_ATTRIBUTES."""
    value = decode_item(stored).get(name)
    if name == "version":
        return type(value) is int and 0 < value < VERSION_MAX
    try:
        return isinstance(value, str) and stamp(unstamp(value)) == value < stamp(now + LAKE_LAG)
    except ValueError:
        return False


def _without(names: Collection[str], item: Item) -> Item:
    return {name: value for name, value in item.items() if name not in names}


def is_moved(item: Item) -> bool:
    """Whether an item only says under which hash a person's stats are."""
    return "moved_to" in item and item.keys() <= MOVED_ATTRIBUTES


def hashes_of(fingerprint_hash: str, item: Item | None) -> list[str]:
    """Return all hashes under which a person has answered, the given one first. item: the stats, if any."""
    older = decode_item(item).get("older_hashes", []) if item else []
    if not isinstance(older, list):
        older = []
    return [fingerprint_hash, *(older_hash for older_hash in older if isinstance(older_hash, str))]
