"""Whether table and lake have the same responses of a person, as rule 7 demands of a ledger.

A response never changes, except for the mark that it is counted. So both must have the same ones. If they
differ, nobody knows which is right, and the person's stats are not repaired.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.engagement.reconciliation import DIGEST_BITS, LAKE_LAG, LAKE_LOST, Doubt, digest_of_rows
from rules.questions.responses import Response


@dataclass(frozen=True, slots=True)
class LakeAnswers:
    """The sums of the lake's copies of a person's responses, without those of the last two hours."""

    answers: int = 0  # how many
    digest: int = 0  # digest_of of all

    def plus(self, other: "LakeAnswers") -> "LakeAnswers":
        """Return the sums of both together."""
        return LakeAnswers(self.answers + other.answers, (self.digest + other.digest) % (1 << DIGEST_BITS))


def digest_of(responses: Sequence[Response]) -> int:
    """Return a number of 64 bits by which sets of responses differ (digest_of_rows).

    The SQL of analytics/questions/answer_totals.py gives the same for the lake's rows.
    """
    return digest_of_rows(map(_values, responses))


def _values(response: Response) -> tuple[object, ...]:
    return (
        *(response.question_id, (unstamp(response.created_at) - EPOCH) // MICROSECOND, response.agent_id),
        *(response.type.value, response.category, response.number, response.selected_option),
        *(response.length, response.confidence),
        *(response.response_time_ms, response.points, response.activity_date),
        *("true" if response.is_signed_in else "false", response.day_points_max),
    )


def doubt_of(responses: Sequence[Response], lake: LakeAnswers, now: datetime) -> tuple[Doubt, str]:
    """Return the doubt about a person's responses, and how lake and table differ, in words.

    responses: all of the person in the table. Those of the last two hours may not be in the lake yet, and
    neither side counts them.
    """
    due = [response for response in responses if response.created_at < stamp(now - LAKE_LAG)]
    missing = len(due) - lake.answers
    if missing < 0:
        return Doubt.CONTRADICTED, f"the lake has {-missing} answers that the table lacks"
    if missing:
        old = sum(response.created_at < stamp(now - LAKE_LOST) for response in due)
        return (Doubt.LACKING if old > lake.answers else Doubt.LATE), f"the lake lacks {missing} answers"
    if lake.digest != digest_of(due):
        return Doubt.CONTRADICTED, "answers differ in the lake"
    return Doubt.NONE, ""
