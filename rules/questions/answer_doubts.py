"""Whether a person's responses and their copies in the lake are the same answers, as rule 7 asks of a ledger.

A response never changes, but for the mark that it is counted. So table and lake must hold the same ones.
Where they do not, nobody knows which is right, and the person's stats are left as they are.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.engagement.reconciliation import DIGEST_BITS, LAKE_LAG, LAKE_LOST, SEPARATOR, Doubt
from rules.questions.responses import Response


@dataclass(frozen=True, slots=True)
class LakeAnswers:
    """The sums of the lake's copies of a person's responses."""

    answers: int = 0  # how many
    digest: int = 0  # digest_of of all

    def plus(self, other: "LakeAnswers") -> "LakeAnswers":
        """Return the sums of both together."""
        return LakeAnswers(self.answers + other.answers, (self.digest + other.digest) % (1 << DIGEST_BITS))


def digest_of(responses: Sequence[Response]) -> int:
    """Return a number of 64 bits that distinguishes sets of responses: the sum of their hashes.

    The SQL of analytics/recompute/answer_totals.py gives the same for the lake's rows.
    """
    return sum(map(_hash, responses)) % (1 << DIGEST_BITS)


def _hash(response: Response) -> int:
    values = (
        *(response.question_id, (unstamp(response.created_at) - EPOCH) // MICROSECOND, response.agent_id),
        *(response.type.value, response.category, response.number, response.selected_option),
        *(response.length, response.confidence),
        *(response.response_time_ms, response.points, response.activity_date),
        *("true" if response.is_signed_in else "false", response.day_points_max),
    )
    text = SEPARATOR.join("" if value is None else str(value) for value in values)
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[8:], "little")


def doubt_of(responses: Sequence[Response], lake: LakeAnswers, now: datetime) -> tuple[Doubt, str]:
    """Return what speaks against a person's responses, and in which way lake and table differ, in words.

    responses: all that the table has of the person. Those of the last two hours may not be in the lake yet.
    """
    oldest_first = sorted(responses, key=lambda response: response.created_at)
    if len(oldest_first) < lake.answers:
        surplus = lake.answers - len(oldest_first)
        return Doubt.CONTRADICTED, f"the lake has {surplus} answers that the table lacks"
    due = _count_before(oldest_first, stamp(now - LAKE_LAG))  # that many must be in the lake by now
    if due > lake.answers:
        is_lost = _count_before(oldest_first, stamp(now - LAKE_LOST)) > lake.answers
        return (Doubt.LACKING if is_lost else Doubt.LATE), f"the lake lacks {due - lake.answers} answers"
    # Answers come into the lake in their order, as a rule. So it has the oldest ones.
    if lake.digest == digest_of(oldest_first[: lake.answers]):
        return Doubt.NONE, ""
    # Exceptions to the rule are among the newest answers, while some of them are not in the lake yet.
    if due < lake.answers < len(oldest_first):
        return Doubt.LATE, "answers of the last hours are in the lake in another order"
    return Doubt.CONTRADICTED, "answers differ in the lake"


def _count_before(responses: Sequence[Response], instant: str) -> int:
    return sum(response.created_at < instant for response in responses)
