"""Every five minutes: stores questions whose time is over as expired, so that they leave the list of open
ones.

Readers see EXPIRED from the moment of closing, whatever is stored. This job keeps the list of open questions
short, so that reading it costs no more than the open ones.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.questions.question_store import QuestionStore
from processors.questions.messages import stop_at

logger = Logger(service="expire-questions")


@dataclass(frozen=True, slots=True)
class ExpireQuestionsSettings:
    """The table of questions."""

    questions_table: str


def expire(questions: QuestionStore, now: datetime, until: datetime | None = None) -> int:
    """Expire every question whose time is over; returns how many. until: when to stop."""
    expired = 0
    for question_id in questions.expirable(now):
        if until and clock.now() >= until:
            break
        expired += questions.expire(question_id, now)
    return expired


@bootstrap(ExpireQuestionsSettings)
def _parts(config: ExpireQuestionsSettings, client: ClientOf) -> QuestionStore:
    return QuestionStore(client("dynamodb"), config.questions_table)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a schedule."""
    now = clock.now()
    expired = expire(_parts(), now, stop_at(now, context))
    logger.info("expired", extra={"questions": expired})
    return {"expired": expired}
