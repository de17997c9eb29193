"""GET /v1/questions/{question_id}/responses, which may wait for an answer.

A function of its own: however many agents wait, they take no room from people who answer.
"""

from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import settings
from adapters.logs import Logger
from adapters.platform.aws import client
from adapters.platform.fencing.turn import fenced
from adapters.platform.places import Places
from adapters.questions.question_lists import QuestionLists
from adapters.questions.question_store import QuestionStore
from adapters.questions.response_store import ResponseStore
from adapters.settings.questions import PollsApiSettings
from ingest.questions.polls import HELD_SECONDS_MAX, PLACES, Polls
from ingest.questions.question_views import Questions
from ingest.web.caller import caller_of
from ingest.web.http import answer, resolver

logger = Logger(service="polls-api")
app: APIGatewayHttpResolver = resolver(logger)


@cache
def _parts() -> Polls:
    config, dynamodb = settings.read(PollsApiSettings), fenced(client("dynamodb"))
    responses = ResponseStore(dynamodb, config.responses_table)
    store = QuestionStore(dynamodb, config.questions_table)
    questions = Questions(store, QuestionLists(dynamodb, config.questions_table))
    return Polls(questions, responses, Places(dynamodb, config.limits_table, PLACES, HELD_SECONDS_MAX))


@app.get("/v1/questions/<question_id>/responses")
def get_responses(question_id: str) -> Response[str]:
    """Answers, in order. Waits for one if the query says how long."""
    caller = caller_of(app.current_event.raw_event)
    return answer(200, _parts().newer(question_id, app.current_event.query_string_parameters or {}, caller))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an HTTP API request, payload format 2.0."""
    answered = app.resolve(event, context)
    logger.info("answered", extra={"route": event.get("routeKey"), "status": answered["statusCode"]})
    return answered
