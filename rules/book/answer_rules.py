"""The section `answers` of a book of rules: its values, its JSON Schema, and how it is read and checked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# A date's points are kept in two digits of base 36 (adapters/questions/user_stats_store.py).
DAY_POINTS_LIMIT = 36**2 - 1
TOOK_MS_MAX = 86_400_000  # the longest response_time_ms that the API takes
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Timing:
    """Points for answers that took neither too short nor too long a time.

    A person who answers faster has not read the question. One who answers slower has put it aside.
    """

    points: int  # of an answer that took from from_ms to to_ms milliseconds, both included
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """What answers earn in the stats of the person who answers (docs/rules.md, rule 5).

    Each answer is an event too. What that event earns follows from its type QUESTION_ANSWERED, not from here.
    """

    points: int  # of each answer
    day_points_max: int  # the most that a person's answers of one date earn
    confidence_points: int = 0  # of an answer that says how sure the person is, besides `points`
    timing: Timing | None = None  # None: how long an answer took earns nothing

    @property
    def most(self) -> int:
        """The most points that one answer can earn."""
        return self.points + self.confidence_points + (self.timing.points if self.timing else 0)


# The rules of a book without the section: answers earn nothing, and there is no cap. The cap is not 0,
# because a date keeps the cap that was in force when it began. With 0, answers would earn nothing on the date
# on which a section is first published.
NO_ANSWERS = AnswerRules(0, DAY_POINTS_LIMIT)


def _whole(least: int, most: int, description: str) -> Schema:
    """Return the schema of a whole number."""
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
                "points": _whole(0, DAY_POINTS_LIMIT, "more, if the answer took this long"),
                "from_ms": _whole(0, TOOK_MS_MAX, "from so many milliseconds on"),
                "to_ms": _whole(0, TOOK_MS_MAX, "to so many milliseconds, inclusive"),
            },
            "additionalProperties": False,
            "description": "for answers given neither hastily nor late; left out: no such points",
        },
        "day_points_max": _whole(
            1,
            DAY_POINTS_LIMIT,
            "the most that a person's answers of a date earn, by the version in force when the date begins",
        ),
    },
    "additionalProperties": False,
    "description": "what answers to questions earn in their own stats; left out: nothing",
}


def read_answers(document: Mapping[str, Any]) -> AnswerRules:
    """Return the section's values. document: a book that satisfies the schema."""
    if (section := document.get("answers")) is None:
        return NO_ANSWERS
    timing = Timing(**section["timing"]) if "timing" in section else None
    return AnswerRules(**{**section, "timing": timing})


def answer_faults(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield (path of the field, reason) for each value that the schema allows and that makes no sense."""
    rules = read_answers(document)
    if rules.timing and rules.timing.from_ms > rules.timing.to_ms:
        yield ("answers", "timing", "from_ms"), "is more than to_ms"
    if rules.day_points_max < rules.most:
        yield ("answers", "day_points_max"), f"is below the {rules.most} points that one answer can earn"
