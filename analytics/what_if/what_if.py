"""Predicts what another book would have led to: what a fresh stack would show after the same history.

The ledger is read once, and written in parts of whole users. Each part is replayed by the rules, in as many
processes as there are cores. Their figures are added up. Only temporary files are written.
"""

import json
import multiprocessing
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from adapters.platform.objects import Objects
from adapters.platform.schema_check import first_problem
from analytics.lake.curated_files import arrow_table, query, table_of
from analytics.lake.user_rows import part_source, parts_of, rows_of_users, small_database, write_parts
from analytics.recompute.lake_books import lake_books
from analytics.what_if.counted_users import CountedUsers, PartAnswer, Replay
from analytics.what_if.figures import Figures, ImpossibleAct
from analytics.what_if.goals import Goals
from analytics.what_if.timeline import Timeline
from analytics.what_if.user_history import Row, UserSettings, user_settings
from rules.book.book import Book, Books
from rules.engagement.ledger import EntryKind
from rules.privacy.tombstones import SafeToLog

# ruff: noqa: S608 (no input but names of a book, and instants that are written as stamps)
EXPIRIES = (
    "SELECT DISTINCT rules_version, expiry FROM events WHERE expiry IS NOT NULL AND rules_version IS NOT NULL"
)
# The columns of user_history.Row but for `properties`, which the events have (SENT)
ENTRIES = f"""
SELECT account_id AS user_id, kind, event_type, coalesce(rules_version, 0)::INTEGER AS version, cap,
  coalesce(is_passive, false) AS is_passive, {{segment}} AS segment, broken_id IS NOT NULL AS is_broken,
  epoch_us(created_at) AS created_at, seq, points, event_id, activity_date AS day, expires_on, held_at,
  reverses, "freeze", freeze_date, reward_id, measures
FROM ledger
LEFT JOIN (SELECT DISTINCT user_id AS broken_user, event_id AS broken_id FROM broken)
  ON broken_user = account_id AND broken_id = event_id
WHERE kind <> '{EntryKind.OPEN}'
  AND (kind <> '{EntryKind.EARN}' OR (activity_date IS NOT NULL AND event_id IS NOT NULL))
"""
SENT = """SELECT user_id, event_id, properties FROM events
WHERE properties IS NOT NULL AND event_type IN (SELECT event_type FROM summed)"""
ROWS = """SELECT entries.*, {properties} AS properties FROM {source} AS entries {join}
ORDER BY user_id, created_at, seq"""
JOIN_SENT = """LEFT JOIN (
  SELECT user_id, event_id, any_value(properties) AS properties FROM {sent} GROUP BY ALL
) AS sent USING (user_id, event_id)"""
EVENTS = pa.schema([("user_id", pa.string()), ("event_id", pa.string())])
PROPERTIES = """SELECT DISTINCT event_type, properties FROM events
WHERE event_type IN (SELECT event_type FROM contracts)"""
REFUSED_EVENTS = """SELECT user_id, event_id FROM events SEMI JOIN refused
ON refused.event_type = events.event_type AND refused.properties IS NOT DISTINCT FROM events.properties"""


class ProcessDied(SafeToLog, RuntimeError):
    """One of the processes that replay users has died."""


@dataclass(frozen=True, slots=True)
class WhatIfQuestion:
    """A question to the lake."""

    book: Book | None  # the candidate; None: the real versions judge, so the prediction must change nothing
    now: datetime  # the prediction is as of this instant: expired points, and each user's date
    since: datetime | None = None  # since, until: when the candidate is in force
    until: datetime | None = None


@dataclass(slots=True)
class WhatIfAnswer:
    """The prediction."""

    question: WhatIfQuestion
    users: pa.Table  # a row for each user (figures.USERS)
    figures: Figures
    largest_changes: list[dict[str, Any]] = field(default_factory=list)  # the users, and why they change


def what_if(objects: Objects, question: WhatIfQuestion) -> WhatIfAnswer:
    """Return what the question's book would have led to. Raises ProcessDied."""
    timeline = Timeline(lake_books(objects), question.book, question.since, question.until)
    if question.book and timeline.is_partial:
        timeline.expiries.update(_expiries(objects, timeline.real))
    settings, todays = user_settings(objects, timeline, question.now)
    broken = broken_contracts(objects, question.book)
    replay = Replay(timeline, settings, todays, question.now)
    summed = Goals(timeline, question.now, Figures()).summed_types
    with TemporaryDirectory() as name:
        parts = _write_history(objects, Path(name), replay, broken, summed)
        total = replayed(replay, Path(name), parts)
    total.figures.impossible += _impossible_pauses(settings)
    users = total.users.combine_chunks().sort_by("user_id")
    for change in total.largest_changes:
        del change["score"]
    return WhatIfAnswer(question, users, total.figures, total.largest_changes)


def _expiries(objects: Objects, real: Books) -> dict[int, str]:
    """Return the rule by which the points of a version's events expire, by version, of events and books."""
    with table_of(db := small_database(), "events", objects, "events"):
        of_events = {row["rules_version"]: row["expiry"] for row in query(db, EXPIRIES).to_pylist()}
    of_books = {version.number: version.book.expiry for version in real.versions if version.book.expiry}
    return of_books | of_events


def _write_history(
    objects: Objects, folder: Path, replay: Replay, broken: pa.Table, summed: Collection[str]
) -> int:
    """Write the ledger's entries, and the properties of events that need them; returns how many parts.

    broken: events whose properties the candidate refuses. summed: the event types of which streaks and
    achievements sum a property.
    """
    stamps = replay.timeline.stamps
    segment = " + ".join(f"(coalesce(event_id, '') >= '{stamp}')::INTEGER" for stamp in stamps) or "0"
    parts = parts_of(objects, "ledger")
    with table_of(db := small_database(), "ledger", objects, "ledger"), arrow_table(db, "broken", broken):
        write_parts(db, ENTRIES.format(segment=segment), folder / "ledger", parts)
    if summed:
        with table_of(db := small_database(), "events", objects, "events"):
            db.register("summed", pa.table({"event_type": pa.array(sorted(summed), pa.string())}))
            write_parts(db, SENT, folder / "sent", parts)
    return parts


def replayed(replay: Replay, folder: Path, parts: int) -> PartAnswer:
    """Return the answer of all parts. Each process replays its own share of them. Raises ProcessDied."""
    count = min(os.cpu_count() or 1, parts)
    shares = [range(first, parts, count) for first in range(count)]
    if count == 1:
        return replay_parts(replay, folder, shares[0])
    # Spawned, because a forked process would inherit locks held by threads of DuckDB or Arrow. With pipes,
    # because a pool needs semaphores, which Lambda does not have (it has no shared memory).
    context = multiprocessing.get_context("spawn")
    receivers, processes = list[Connection](), []
    try:
        for share in shares:
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_send_answer, args=(sender, replay, folder, share))
            process.start()
            sender.close()  # so that the pipe ends with the process
            receivers.append(receiver)
            processes.append(process)
        total, *others = map(_received_answer, receivers)
    finally:
        for process in processes:
            process.terminate()
            process.join()
    for other in others:
        total.add(other)
    return total


def _send_answer(sender: Connection, replay: Replay, folder: Path, parts: Iterable[int]) -> None:
    sender.send(replay_parts(replay, folder, parts))


def _received_answer(receiver: Connection) -> PartAnswer:
    try:
        answer: PartAnswer = receiver.recv()
    except EOFError:
        raise ProcessDied("a process that replays users has died, perhaps for want of memory") from None
    return answer


def replay_parts(replay: Replay, folder: Path, parts: Iterable[int]) -> PartAnswer:
    """Return the answer of some parts."""
    counted = CountedUsers(replay)
    for part in parts:
        if (source := part_source(folder / "ledger", part)) is None:
            continue
        sent = part_source(folder / "sent", part)
        join = JOIN_SENT.format(sent=sent) if sent else ""
        sql = ROWS.format(properties="sent.properties" if sent else "NULL", source=source, join=join)
        for _, rows in rows_of_users(small_database(), sql, Row._make):
            counted.add(rows)
    return counted.answer()


def _impossible_pauses(settings: dict[str, UserSettings]) -> Iterator[ImpossibleAct]:
    for user, user_setting in settings.items():
        for first, last in user_setting.pauses:
            if (first, last) not in user_setting.pauses_after:
                why = f"it would have been one of too many dates up to {last}"
                yield ImpossibleAct(user, "pause", first.isoformat(), 0, 0, why)


def broken_contracts(objects: Objects, book: Book | None) -> pa.Table:
    """Return the events whose properties a book refuses, as a table with the columns EVENTS.

    Equal properties are checked once.
    """
    types = book.event_types.items() if book else ()
    contracts = {name: rule.properties for name, rule in types if rule.properties}
    if not contracts:
        return EVENTS.empty_table()
    with table_of(db := small_database(), "events", objects, "events"):
        with arrow_table(db, "contracts", pa.table({"event_type": list(contracts)})):
            texts = query(db, PROPERTIES).to_pylist()
        refused = []
        for text in texts:
            contract = {"type": "object", **contracts[text["event_type"]]}
            if first_problem(contract, _read_json(text["properties"])):
                refused.append(text)
        schema = pa.schema([("event_type", pa.string()), ("properties", pa.string())])
        with arrow_table(db, "refused", pa.Table.from_pylist(refused, schema)):
            return query(db, REFUSED_EVENTS).cast(EVENTS)


def _read_json(text: str | None) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return {}
