"""Computes totals of each person's curated responses: their number, and a digest of them.

Totals of several partitions can be added up. So the totals of older partitions are stored, as recompute.py
does for users, and a night reads the later partitions.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import date, timedelta
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import NoObject, Objects, StoredObject
from analytics.lake import curated_files
from analytics.lake.curated_files import (
    arrow_table,
    connect,
    etags_digest,
    files_between,
    parquet_bytes,
    query,
)
from analytics.lake.layout import SETTLED_ANSWERS
from analytics.lake.layout import curated_files as files_of
from rules.book.book import USUAL_OFFLINE
from rules.engagement.reconciliation import DIGEST_BITS, SEPARATOR
from rules.smoke_names import PATTERN

# The values of a response that rules.questions.answer_doubts.digest_of hashes, in the same order.
HASHED = (
    *("question_id", "epoch_us(created_at)", "agent_id", "question_type", "category", "number"),
    *("selected_option", "answer_characters", "confidence", "response_time_ms", "points", "activity_date"),
    *("is_signed_in", "day_points_max"),
)
# Answers arrive up to 72 hours late, and those of a device that was offline up to a fortnight (rule 16).
SETTLED_AFTER = timedelta(days=USUAL_OFFLINE.days_max + 3)
COLUMNS = ("person", "created_at", *(name for name in HASHED if "(" not in name))
_TEXTS = f", chr({ord(SEPARATOR)}), ".join(f"{name}::VARCHAR" for name in HASHED)
TOTALS = pa.schema(
    [
        ("person", pa.string()),
        ("answers", pa.int64()),
        ("digest", pa.uint64()),
        ("newest", pa.timestamp("us", "UTC")),
        ("question_id", pa.string()),
    ]
)
SUMMED_TOTALS = f"""
WITH parts AS (
  SELECT coalesce(person, '') AS person, count(*) AS answers,
    sum(md5_number_lower(concat({_TEXTS}))::HUGEINT) AS digest,
    max(created_at) AS newest, min(question_id) AS question_id
  FROM responses WHERE NOT regexp_full_match(agent_id, '{PATTERN}') GROUP BY coalesce(person, '')
  UNION ALL SELECT person, answers, digest, newest, question_id FROM settled
)
SELECT person, sum(answers)::BIGINT AS answers, (sum(digest) % {1 << DIGEST_BITS})::UBIGINT AS digest,
  max(newest) AS newest, min(question_id) AS question_id
FROM parts GROUP BY person ORDER BY person
"""  # noqa: S608 (no input)


@dataclass(frozen=True, slots=True)
class SettledAnswers:
    """The totals of all partitions up to a date."""

    table: pa.Table  # with the columns TOTALS
    until: date | None = None  # None: no partition is settled


def answer_totals(objects: Objects, today: date) -> pa.Table:
    """Return a row for each person with an answer, with the columns TOTALS, and settle older partitions.

    question_id is one of the questions that the person has answered.
    """
    files = files_of(objects, "responses")
    settled, until = _load(objects, files), today - SETTLED_AFTER
    if settled.until is None or settled.until < until:
        settled = SettledAnswers(_add_later(objects, settled, files, until), until)
        _save(objects, settled.table, files, until)
    return _add_later(objects, settled, files, None)


def _add_later(
    objects: Objects, settled: SettledAnswers, files: list[StoredObject], until: date | None
) -> pa.Table:
    later = files_between(files, settled.until, until)
    rows = curated_files.reader(objects, "responses", COLUMNS, files=later)
    db = connect()
    with arrow_table(db, "settled", settled.table), arrow_table(db, "responses", rows):
        return query(db, SUMMED_TOTALS).cast(TOTALS)


def _load(objects: Objects, files: list[StoredObject]) -> SettledAnswers:
    """Return the stored totals. They are empty if none are stored, or if they were made from other files."""
    try:
        table = pq.read_table(BytesIO(objects.get(SETTLED_ANSWERS)))
    except NoObject:
        return SettledAnswers(TOTALS.empty_table())
    metadata = json.loads(table.schema.metadata[b"settled"])
    until = date.fromisoformat(metadata["until"])
    if metadata != _metadata(files, until):
        return SettledAnswers(TOTALS.empty_table())
    return SettledAnswers(table.replace_schema_metadata(None), until)


def _save(objects: Objects, table: pa.Table, files: list[StoredObject], until: date) -> None:
    metadata = json.dumps(_metadata(files, until)).encode()
    objects.put(SETTLED_ANSWERS, parquet_bytes(table.replace_schema_metadata({b"settled": metadata})))


def _metadata(files: list[StoredObject], until: date) -> dict[str, str]:
    """Return the origin of the settled totals: the files up to a date, and the statement."""
    made_by = hashlib.sha256(f"{SUMMED_TOTALS}\0{TOTALS}".encode()).hexdigest()
    return {
        "until": until.isoformat(),
        "files": etags_digest({"responses": files}, until),
        "made_by": made_by,
    }
