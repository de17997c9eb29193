"""What answers earn in the stats of who answers (docs/rules.md, rule 5): a section of the book of rules.

The events that answers are (QUESTION_ANSWERED) are a type of the book like any other, and not spoken of here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# A date's points are kept in two digits of base 36 (rules/questions/answer_stats.py).
DAY_POINTS_LIMIT = 36**2 - 1
TOOK_MS_MAX = 86_400_000  # as the door takes it
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Timing:
    """points: of an answer that took from from_ms to to_ms milliseconds, both included.

    A faster one was given without reading, a slower one was left lying.
    """

    points: int
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """points: of each answer. confidence_points: further ones, if it says how sure the person is.

    day_points_max: the most that a person's answers of one date earn.
    """

    points: int
    day_points_max: int
    confidence_points: int = 0
    timing: Timing | None = None

    @property
    def most(self) -> int:
        """What one answer can earn."""
        return self.points + self.confidence_points + (self.timing.points if self.timing else 0)


# A book without the section caps nothing either: so the date on which a first one comes is no lost one.
NO_ANSWERS = AnswerRules(0, DAY_POINTS_LIMIT)


def _whole(least: int, most: int, description: str) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


ANSWERS: Schema = {
    "type": "object",
    "required": ["points", "day_points_max"],
    "properties": {
        "points": _whole(0, DAY_POINTS_LIMIT, "of each answer"),
        "confidence_points": _whole(
            0, DAY_POINTS_LIMIT, "more, if the answer says how sure the person is; left out: none"
        ),
        "timing": {
            "type": "object",
            "required": ["points", "from_ms", "to_ms"],
            "properties": {
                "points": _whole(0, DAY_POINTS_LIMIT, "more, if the answer took so long"),
                "from_ms": _whole(0, TOOK_MS_MAX, "milliseconds, included"),
                "to_ms": _whole(0, TOOK_MS_MAX, "milliseconds, included"),
            },
            "additionalProperties": False,
            "description": "for answers that were neither hasty nor left lying; left out: no such points",
        },
        "day_points_max": _whole(
            1,
            DAY_POINTS_LIMIT,
            "the most that a person's answers of one date earn: by the version in force when the date begins",
        ),
    },
    "additionalProperties": False,
    "description": "what answers to questions earn in their own stats; left out: nothing",
}


def read_answers(document: Mapping[str, Any]) -> AnswerRules:
    """Return the rules of a document that satisfies the schema."""
    if (said := document.get("answers")) is None:
        return NO_ANSWERS
    timing = Timing(**said["timing"]) if "timing" in said else None
    return AnswerRules(**{**said, "timing": timing})


def answer_faults(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what makes no sense in the section: where, and why."""
    rules = read_answers(document)
    if rules.timing and rules.timing.from_ms > rules.timing.to_ms:
        yield ("answers", "timing", "from_ms"), "is more than to_ms"
    if rules.day_points_max < rules.most:
        yield ("answers", "day_points_max"), f"is below the {rules.most} points that one answer can earn"
