"""Computes totals of each person's curated responses: their number, and a digest of them.

Responses of the last two hours are left out, because their copies come in any order (LAKE_LAG).

Totals of several partitions can be added up. So the totals of older partitions are stored (settled_table.py),
and a night reads only the later ones. The comparison of stats uses the totals
(analytics/questions/reconcile_answers.py).
"""

import hashlib
from datetime import date, datetime, timedelta

import pyarrow as pa

from adapters.platform.objects import Objects, StoredObject
from analytics.lake.curated_files import arrow_table, cursor, files_between, query, reader
from analytics.lake.layout import SETTLED_ANSWERS, curated_files
from analytics.recompute.settled_table import SettledFile, SettledTable
from rules.book.book import USUAL_OFFLINE
from rules.engagement.reconciliation import DIGEST_BITS, LAKE_LAG, SEPARATOR
from rules.smoke_names import PATTERN

# Answers arrive up to 72 hours late, and those of a device that was offline up to a fortnight (rule 16).
SETTLED_AFTER = timedelta(days=USUAL_OFFLINE.days_max + 3)
TOTALS = pa.schema(
    [
        ("person", pa.string()),  # "" for rows without one, which somebody has changed by hand
        ("answers", pa.int64()),
        ("digest", pa.uint64()),
        ("question_id", pa.string()),  # one of the questions that the person has answered
    ]
)
# The values of a response that rules.questions.answer_doubts.digest_of hashes, in the same order.
HASHED_VALUES = (
    *("question_id", "epoch_us(created_at)", "agent_id", "question_type", "category", "number"),
    *("selected_option", "answer_characters", "confidence", "response_time_ms", "points", "activity_date"),
    *("is_signed_in", "day_points_max"),
)
HASHED_COLUMNS = {"created_at" if "created_at" in value else value for value in HASHED_VALUES}
READ_COLUMNS = ("person", *sorted(HASHED_COLUMNS))
HASHED_TEXTS = f", chr({ord(SEPARATOR)}), ".join(f"{value}::VARCHAR" for value in HASHED_VALUES)
# Adds up the totals of the rows of `responses` from before $until and those of the table `settled`. Responses
# of smoke tests are left out. The digest is a sum of hashes, so the order of the responses does not matter.
SUMMED_TOTALS = f"""
WITH parts AS (
  SELECT coalesce(person, '') AS person, count(*) AS answers,
    sum(md5_number_lower(concat({HASHED_TEXTS}))::HUGEINT) AS digest, min(question_id) AS question_id
  FROM responses
  WHERE coalesce(created_at < $until, true) AND NOT regexp_full_match(agent_id, '{PATTERN}')
  GROUP BY coalesce(person, '')
  UNION ALL SELECT person, answers, digest, question_id FROM settled
)
SELECT person, sum(answers)::BIGINT AS answers, (sum(digest) % {1 << DIGEST_BITS})::UBIGINT AS digest,
  min(question_id) AS question_id
FROM parts GROUP BY person ORDER BY person
"""  # noqa: S608 (no input)


def answer_totals(objects: Objects, now: datetime) -> pa.Table:
    """Return a row for each person with an answer (TOTALS), and settle partitions that are old enough."""
    files, until = curated_files(objects, "responses"), now.date() - SETTLED_AFTER
    statement_digest = hashlib.sha256(f"{SUMMED_TOTALS}\0{TOTALS}".encode()).hexdigest()
    state_file = SettledFile(objects, SETTLED_ANSWERS, TOTALS, {"made_by": statement_digest})
    settled = state_file.load({"responses": files})
    if settled.until is None or settled.until < until:
        settled = SettledTable(_add_later(objects, settled, files, until, now), until)
        state_file.save(settled.rows, {"responses": files}, until)
    return _add_later(objects, settled, files, None, now)


def _add_later(
    objects: Objects, settled: SettledTable, files: list[StoredObject], until: date | None, now: datetime
) -> pa.Table:
    """Return the settled totals with those of later partitions, up to a date. None: with all of them."""
    later_files = files_between(files, settled.until, until)
    db = cursor()
    with (
        arrow_table(db, "settled", settled.rows),
        arrow_table(db, "responses", reader(objects, "responses", READ_COLUMNS, files=later_files)),
    ):
        return query(db, SUMMED_TOTALS, {"until": now - LAKE_LAG}).cast(TOTALS)
