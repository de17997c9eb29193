"""What questions cost (local/plan)."""

from local.plan.part_traffic import PartTraffic
from rules.parts import Part

ANSWERS = 10  # to a question
TRAFFIC = PartTraffic(
    Part.QUESTIONS,
    "questions",
    "questions",
    "questions a day, each with ten answers",
    ANSWERS,
    {"question.asked": 1, "question.answered": ANSWERS, "question.polled": 1},
)
