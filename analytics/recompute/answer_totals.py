"""Computes totals of each person's curated responses: their number, and a digest of them.

Totals of several partitions can be added up. So the totals of older partitions are stored (settled_table.py),
and a night reads the later partitions. `answer_totals` is called by the comparison of stats
(analytics/reconcile/reconcile_answers.py).
"""

import hashlib
from datetime import date, timedelta

import pyarrow as pa

from adapters.platform.objects import Objects, StoredObject
from analytics.lake.curated_files import arrow_table, connect, files_between, query, reader
from analytics.lake.layout import SETTLED_ANSWERS, curated_files
from analytics.recompute.settled_table import SettledFile, SettledTable
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


def answer_totals(objects: Objects, today: date) -> pa.Table:
    """Return a row for each person with an answer, with the columns TOTALS, and settle older partitions.

    question_id is one of the questions that the person has answered.
    """
    files, until = curated_files(objects, "responses"), today - SETTLED_AFTER
    statement_digest = hashlib.sha256(f"{SUMMED_TOTALS}\0{TOTALS}".encode()).hexdigest()
    state_file = SettledFile(objects, SETTLED_ANSWERS, TOTALS, {"made_by": statement_digest})
    settled = state_file.load({"responses": files})
    if settled.until is None or settled.until < until:
        settled = SettledTable(_add_later(objects, settled, files, until), until)
        state_file.save(settled.rows, {"responses": files}, until)
    return _add_later(objects, settled, files, None)


def _add_later(
    objects: Objects, settled: SettledTable, files: list[StoredObject], until: date | None
) -> pa.Table:
    """Return the settled totals with those of later partitions, up to a date. None: with all of them."""
    later_files = files_between(files, settled.until, until)
    db = connect()
    with (
        arrow_table(db, "settled", settled.rows),
        arrow_table(db, "responses", reader(objects, "responses", COLUMNS, files=later_files)),
    ):
        return query(db, SUMMED_TOTALS).cast(TOTALS)
