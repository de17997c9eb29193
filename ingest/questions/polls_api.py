"""GET /v1/questions/{question_id}/responses, which may wait for an answer.

A function of its own: however many agents wait, they take no room from people who answer.
"""

from functools import cache
from typing import Any

from adapters import settings
from adapters.platform.aws import client
from adapters.platform.limits import OwnerSemaphore
from adapters.platform.region_clients import fence_writer
from adapters.questions.question_store import QuestionLists, QuestionStore
from adapters.questions.response_store import ResponseStore
from adapters.settings.questions import PollsApiSettings
from ingest.questions.polls import LEASE_SECONDS, POLLS_MAX, Polls
from ingest.questions.question_schemas import QUESTION_ID, RESPONSES_VIEW
from ingest.questions.questions import Questions
from ingest.web.api import Api
from ingest.web.routes import in_query, limit_to, text_matching

POLL = [
    in_query("wait", {"type": "integer", "minimum": 0, "maximum": 20, "description": "seconds"}),
    in_query("after", {"type": "integer", "minimum": 0, "maximum": 1000, "description": "a cursor"}),
    limit_to(100),
]

app = Api("PollsApi", {"question_id": text_matching(QUESTION_ID)})
handler = app.handler


@cache
def _parts() -> Polls:
    config, dynamodb = settings.read_settings(PollsApiSettings), fence_writer(client("dynamodb"))
    responses = ResponseStore(dynamodb, config.responses_table)
    store = QuestionStore(dynamodb, config.questions_table)
    questions = Questions(store, QuestionLists(dynamodb, config.questions_table))
    return Polls(
        questions, responses, OwnerSemaphore(dynamodb, config.limits_table, POLLS_MAX, LEASE_SECONDS)
    )


@app.route("GET /v1/questions/{question_id}/responses", POLL, answer=RESPONSES_VIEW)
def get_responses(question_id: str) -> dict[str, Any]:
    """Answers, in order (the agent who asked)."""
    return _parts().newer(question_id, app.query, app.caller())
