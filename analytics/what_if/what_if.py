"""Predicts what another book would have led to: what a fresh stack would show after the same history.

`what_if` is called by analytics/steps/what_if_function.py, and by local/what_if on a laptop. The ledger is
written to temporary files in parts of whole users (history_parts.py). The rules replay each part, in as many
processes as there are cores (counted_users.py, user_replay.py). Their figures are added up (figures.py).

The book *refuses* an event if it lacks the event's type, or if the type's contract does not fit the event's
properties. A user is *doubtful* if the dates of the user's events contradict each other (rule 8).
"""

import json
import multiprocessing
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from adapters.platform.objects import Objects
from adapters.platform.schema_check import first_problem
from analytics.lake.curated_files import arrow_table, query, table_of
from analytics.lake.user_rows import rows_of_users
from analytics.recompute.lake_books import lake_books
from analytics.what_if.counted_users import NO_SETTINGS, CountedUsers, ReplayInputs
from analytics.what_if.figures import ImpossibleAct, WhatIfAnswer, WhatIfQuestion
from analytics.what_if.goals import summed_types
from analytics.what_if.history_parts import part_source, parts_of, small_database, write_parts
from analytics.what_if.timeline import Timeline
from analytics.what_if.user_history import LedgerRow, UserSettings, user_settings
from rules.book.book import Book, Books
from rules.engagement.ledger import EntryKind
from rules.privacy.tombstones import SafeToLog

# ruff: noqa: S608 (no input but names of a book, and instants that are written as stamps)

DATES_KEPT = (
    "This cannot say what another start of the day would have led to: every event keeps the date that it has."
)

BONUSES_KEPT = "This cannot say what achievements would have paid: bonuses stay as they were paid."


def what_if(objects: Objects, question: WhatIfQuestion) -> WhatIfAnswer:
    """Return what the question's book would have led to. Raises ProcessDied."""
    timeline = _timeline(objects, question)
    refused_events = events_with_refused_properties(objects, question.book)
    settings, other_dates = _settings_with_doubts(objects, question, timeline, refused_events)
    inputs = ReplayInputs(question, timeline, settings, other_dates)
    with TemporaryDirectory() as name:
        parts = _write_history(objects, Path(name), inputs, refused_events)
        answer = replay_history(inputs, Path(name), parts)
    _finish_answer(answer, settings)
    if timeline.moves_dates:
        answer.limits.append(DATES_KEPT)
    if answer.figures.bonuses or (question.book and question.book.paying):
        answer.limits.append(BONUSES_KEPT)
    return answer


def _timeline(objects: Objects, question: WhatIfQuestion) -> Timeline:
    timeline = Timeline(lake_books(objects), question.book, question.since, question.until)
    if question.book and timeline.is_partial:
        timeline.expiries.update(_expiries(objects, timeline.real))
    return timeline


def _expiries(objects: Objects, real: Books) -> dict[int, str]:
    """Return the rule by which the points of a version's events expire, by version, of events and books."""
    sql = """SELECT DISTINCT rules_version, expiry FROM events
    WHERE expiry IS NOT NULL AND rules_version IS NOT NULL"""
    with table_of(db := small_database(), "events", objects, "events"):
        of_events = {row["rules_version"]: row["expiry"] for row in query(db, sql).to_pylist()}
    of_books = {version.number: version.book.expiry for version in real.versions if version.book.expiry}
    return of_books | of_events


EVENTS = pa.schema([("user_id", pa.string()), ("event_id", pa.string())])
PROPERTIES = """SELECT DISTINCT event_type, properties FROM events
WHERE event_type IN (SELECT event_type FROM contracts)"""
REFUSED_EVENTS = """SELECT user_id, event_id FROM events SEMI JOIN refused
ON refused.event_type = events.event_type AND refused.properties IS NOT DISTINCT FROM events.properties"""


def events_with_refused_properties(objects: Objects, book: Book | None) -> pa.Table:
    """Return the events whose properties a book's contracts refuse, as a table with the columns EVENTS.

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


def _settings_with_doubts(
    objects: Objects, question: WhatIfQuestion, timeline: Timeline, refused_events: pa.Table
) -> tuple[dict[str, UserSettings], dict[str, date]]:
    """Return the settings and dates of `user_settings`. Doubtful users are marked if active dates may change.

    Only then are the events of doubtful users placed on dates anew.
    """
    settings, other_dates = user_settings(objects, timeline, question.now)
    if refused_events.num_rows or (question.book and _changes_activity(objects, question.book)):
        # Dates that a flight skips follow from the dates of events, and may change with them.
        with_skipped = {user for user, user_setting in settings.items() if user_setting.skipped}
        for user in doubtful_users(objects) | with_skipped:
            settings[user] = replace(settings.get(user, NO_SETTINGS), is_doubtful=True)
    return settings, other_dates


def _changes_activity(objects: Objects, book: Book) -> bool:
    """Whether a book may change which dates are active: it refuses types, or other types keep a streak."""
    sql = f"""SELECT DISTINCT event_type, coalesce(is_passive, false) AS is_passive FROM ledger
    WHERE kind = '{EntryKind.EARN}'"""
    with table_of(db := small_database(), "ledger", objects, "ledger"):
        kinds = db.execute(sql).fetchall()
    return any(
        kind not in book.event_types or book.event_types[kind].keeps_streak == is_passive
        for kind, is_passive in kinds
    )


PART_EVENTS = 5_000_000  # events of suspects in one part of them, so that the part fits into memory
# In one calendar without clock changes, all events come within 24 hours of the same time of their dates. Only
# users whose events do not are looked at.
SUSPECTS = """
CREATE TABLE suspects AS
SELECT user_id, count(*) AS events
FROM (SELECT user_id, epoch_us(occurred_at) - epoch_us(activity_date) AS since_midnight FROM events)
GROUP BY user_id HAVING max(since_midnight) - min(since_midnight) >= epoch_us(INTERVAL 1 DAY)
"""
# In one calendar, dates rise with instants, and two dates with another one between them are over a day apart.
# Users whose events break that are doubtful.
DOUBTFUL_USERS = """
WITH dates AS (
  SELECT user_id, activity_date AS day, min(occurred_at) AS first, max(occurred_at) AS last
  FROM events SEMI JOIN suspects USING (user_id)
  WHERE hash(user_id) % ? = ? GROUP BY user_id, activity_date
), beside AS (
  SELECT user_id, day, last, lead(day) OVER per_user AS next_day, lead(first) OVER per_user AS next_first,
    lead(day, 2) OVER per_user AS third_day, lead(first, 2) OVER per_user AS third_first
  FROM dates WINDOW per_user AS (PARTITION BY user_id ORDER BY day)
)
SELECT DISTINCT user_id FROM beside
WHERE next_first <= last OR (next_day >= day + 2 AND next_first < last + INTERVAL 1 DAY)
  OR third_first < last + INTERVAL 1 DAY
"""


def doubtful_users(objects: Objects) -> set[str]:
    """Return users whose events have dates that no single calendar gives: after a flight, or by wrong zones.

    One part of the suspects is read after the other, because the dates of all may not fit into memory.
    """
    users: set[str] = set()
    with table_of(db := small_database(), "events", objects, "events"):
        db.execute(SUSPECTS)
        [(events,)] = db.execute("SELECT coalesce(sum(events), 0) FROM suspects").fetchall()
        parts = int(events) // PART_EVENTS + 1
        for part in range(parts):
            users |= set(query(db, DOUBTFUL_USERS, [parts, part])["user_id"].to_pylist())
    return users


# The rows of LEDGER_ROWS have the columns of user_history.LedgerRow that come from the ledger. Those of
# EVENT_ROWS have the columns that come from the events, of the events that need them.
LEDGER_ROWS = f"""
SELECT account_id AS user_id, kind, event_type, coalesce(rules_version, 0)::INTEGER AS version, cap,
  coalesce(is_passive, false) AS is_passive, {{segment}} AS segment,
  refused_id IS NOT NULL AS breaks_contract, epoch_us(created_at) AS created_at, seq, points, event_id,
  activity_date AS day, expires_on, held_at, reverses, "freeze", freeze_date, reward_id, measures
FROM ledger
LEFT JOIN (SELECT DISTINCT user_id AS refused_user, event_id AS refused_id FROM refused)
  ON refused_user = account_id AND refused_id = event_id
WHERE kind NOT IN ('{EntryKind.OPEN}', '{EntryKind.SETTING}')
  AND (kind <> '{EntryKind.EARN}' OR (activity_date IS NOT NULL AND event_id IS NOT NULL))
"""
EVENT_ROWS = """
SELECT user_id, event_id, CASE WHEN is_doubtful THEN activity_date END AS claimed,
  CASE WHEN is_doubtful THEN zone END AS zone, CASE WHEN is_summed THEN properties END AS properties
FROM (SELECT *, user_id IN (SELECT user_id FROM doubtful) AS is_doubtful,
  properties IS NOT NULL AND event_type IN (SELECT event_type FROM summed) AS is_summed FROM events)
WHERE is_doubtful OR is_summed
"""


def _write_history(objects: Objects, folder: Path, inputs: ReplayInputs, refused_events: pa.Table) -> int:
    """Write LEDGER_ROWS to `folder / "ledger"`, and EVENT_ROWS, if needed, to `folder / "events"`.

    Returns the number of parts. refused_events: those whose properties the question's book refuses.
    """
    bounds = inputs.timeline.id_bounds
    segment = " + ".join(f"(coalesce(event_id, '') >= '{bound}')::INTEGER" for bound in bounds) or "0"
    parts = parts_of(objects, "ledger")
    with (
        table_of(db := small_database(), "ledger", objects, "ledger"),
        arrow_table(db, "refused", refused_events),
    ):
        write_parts(db, LEDGER_ROWS.format(segment=segment), folder / "ledger", parts)
    doubtful = [user for user, settings in inputs.settings.items() if settings.is_doubtful]
    summed = sorted(summed_types(inputs.timeline, inputs.question.now))
    if doubtful or summed:
        with table_of(db := small_database(), "events", objects, "events"):
            db.register("doubtful", pa.table({"user_id": pa.array(doubtful, pa.string())}))
            db.register("summed", pa.table({"event_type": pa.array(summed, pa.string())}))
            write_parts(db, EVENT_ROWS, folder / "events", parts)
    return parts


class ProcessDied(SafeToLog, RuntimeError):
    """One of the processes that replay users has died."""


def replay_history(inputs: ReplayInputs, folder: Path, parts: int) -> WhatIfAnswer:
    """Return the answer of all parts. Each process replays its own share of them. Raises ProcessDied."""
    count = min(os.cpu_count() or 1, parts)
    shares = [range(first, parts, count) for first in range(count)]
    if count == 1:
        return replay_parts(inputs, folder, shares[0])
    # Spawned, because a forked process would inherit locks held by threads of DuckDB or Arrow. With pipes,
    # because a pool needs semaphores, which Lambda does not have (it has no shared memory).
    context = multiprocessing.get_context("spawn")
    receivers, processes = list[Connection](), []
    try:
        for share in shares:
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_send_answer, args=(sender, inputs, folder, share))
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


def _send_answer(sender: Connection, inputs: ReplayInputs, folder: Path, parts: Iterable[int]) -> None:
    sender.send(replay_parts(inputs, folder, parts))


def _received_answer(receiver: Connection) -> WhatIfAnswer:
    try:
        answer: WhatIfAnswer = receiver.recv()
    except EOFError:
        raise ProcessDied("a process that replays users has died, perhaps for want of memory") from None
    return answer


ROWS = f"""SELECT {", ".join(f'"{name}"' for name in LedgerRow._fields)}
FROM (SELECT entries.*, {{event_columns}} FROM {{ledger}} AS entries {{join}})
ORDER BY user_id, created_at, seq"""
NO_EVENT_COLUMNS = "NULL AS claimed, NULL AS zone, NULL AS properties"
JOIN_EVENTS = """LEFT JOIN (SELECT user_id, event_id, any_value(claimed) AS claimed, any_value(zone) AS zone,
    any_value(properties) AS properties FROM {events} GROUP BY ALL) AS events USING (user_id, event_id)"""


def replay_parts(inputs: ReplayInputs, folder: Path, parts: Iterable[int]) -> WhatIfAnswer:
    """Return the answer of some parts."""
    counted = CountedUsers(inputs)
    for part in parts:
        if (ledger := part_source(folder / "ledger", part)) is None:
            continue
        events = part_source(folder / "events", part)
        event_columns = "claimed, zone, properties" if events else NO_EVENT_COLUMNS
        join = JOIN_EVENTS.format(events=events) if events else ""
        sql = ROWS.format(event_columns=event_columns, ledger=ledger, join=join)
        for _, rows in rows_of_users(small_database(), sql, tuple):
            counted.add([LedgerRow._make(values) for values in rows])
    return counted.answer()


def _finish_answer(answer: WhatIfAnswer, settings: dict[str, UserSettings]) -> None:
    """Add the refused pauses to an answer, sort its users, and remove the scores."""
    answer.figures.impossible += _impossible_pauses(settings)
    answer.users = answer.users.combine_chunks().sort_by("user_id")
    for change in answer.largest_changes:
        del change["score"]  # only the choice of the largest changes needed it


def _impossible_pauses(settings: dict[str, UserSettings]) -> Iterator[ImpossibleAct]:
    for user, user_setting in settings.items():
        for first, last in user_setting.pauses:
            if (first, last) not in user_setting.pauses_after:
                why = f"it would have been one of too many dates up to {last}"
                yield ImpossibleAct(user, "pause", first.isoformat(), 0, 0, why)
