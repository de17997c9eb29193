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
    """What the lake's copies of a person's responses come to."""

    answers: int = 0
    digest: int = 0  # see digest_of

    def plus(self, other: "LakeAnswers") -> "LakeAnswers":
        """Return what both come to together."""
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
    ordered = sorted(responses, key=lambda response: response.created_at)
    if len(ordered) < lake.answers:
        return Doubt.CONTRADICTED, f"the lake has {lake.answers - len(ordered)} answers that the table lacks"
    due = _older_responses(ordered, stamp(now - LAKE_LAG))
    if len(due) > lake.answers:
        is_lost = len(_older_responses(ordered, stamp(now - LAKE_LOST))) > lake.answers
        lacks = f"the lake lacks {len(due) - lake.answers} answers"
        return (Doubt.LACKING if is_lost else Doubt.LATE), lacks
    # Whichever of the newest answers the lake has already, in one of these two cases it has just these.
    if lake.digest in (digest_of(ordered[: lake.answers]), digest_of(ordered)):
        return Doubt.NONE, ""
    if lake.answers > len(due) and lake.answers < len(ordered):
        return Doubt.LATE, "answers of the last hours are in the lake in another order"
    return Doubt.CONTRADICTED, "answers differ in the lake"


def _older_responses(ordered: Sequence[Response], instant: str) -> Sequence[Response]:
    return [response for response in ordered if response.created_at < instant]
