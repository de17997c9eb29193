"""Everything under /v1/questions, /v1/agents, /v1/subscriptions and /v1/stats, and a user's own answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import clock, settings
from adapters.book.book_store import BookStore
from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from adapters.logs import Logger
from adapters.platform.aws import client
from adapters.platform.fencing.turn import fenced
from adapters.platform.shared_counters import HeldPlaces, SharedCounters
from adapters.privacy.tombstones import Tombstones, tombstones_of
from adapters.questions.answer_awards import AnswerAwards
from adapters.questions.answer_line import AnswerLine
from adapters.questions.fingerprints import Fingerprints
from adapters.questions.question_lists import QuestionLists
from adapters.questions.question_store import QuestionStore
from adapters.questions.response_store import ResponseStore
from adapters.questions.user_stats_store import UserStatsStore
from adapters.questions.waiting_answers import WaitingAnswers
from adapters.settings.questions import QuestionsApiSettings
from ingest.questions import subscriptions
from ingest.questions.answers import AnswerLimits, Answers
from ingest.questions.asking import Asking
from ingest.questions.own_answers import OwnAnswers
from ingest.questions.question_schemas import ANSWER, QUESTION
from ingest.questions.question_views import Questions, question_view
from ingest.questions.stats_view import AnswerStats
from ingest.web.caller import ApiError, Caller, caller_of
from ingest.web.erased import refuse_erased
from ingest.web.http import answer, json_body, resolver
from ingest.web.json_schema import USER_ID
from ingest.web.paging import integer
from ingest.web.rate_limit import Limits, RateLimit
from ingest.web.validate import first_problem

LEADERS_DEFAULT, LEADERS_MAX = 10, 100
RELAYED_BLOCK = 20

logger = Logger(service="questions-api")
app: APIGatewayHttpResolver = resolver(logger)
app.include_router(subscriptions.router)


@dataclass(frozen=True, slots=True)
class _Parts:
    questions: Questions
    answers: Answers
    stats: AnswerStats
    own: OwnAnswers
    asking: Asking
    asked: RateLimit
    erased: Tombstones


@cache
def _parts() -> _Parts:
    config, dynamodb = settings.read(QuestionsApiSettings), fenced(client("dynamodb"))
    responses = ResponseStore(dynamodb, config.responses_table)
    store = QuestionStore(dynamodb, config.questions_table)
    line = AnswerLine(
        dynamodb,
        store,
        responses,
        AnswerAwards(config.idempotency_keys_table, config.bp_events_table),
        WaitingAnswers(dynamodb, config.answer_lines_table),
    )
    accounts = AccountStore(dynamodb, config.user_streaks_table, "", LedgerStore(dynamodb, ""), 1)
    books = BookStore(dynamodb, config.rule_books_table)
    places = HeldPlaces(dynamodb, config.limits_table)
    lists = QuestionLists(dynamodb, config.questions_table)
    questions = Questions(store, lists)
    fingerprints = Fingerprints(lambda: client("secretsmanager"), config.fingerprint_secret_arn)
    cache, shared = EngagementCache(config.redis_url), SharedCounters(dynamodb, config.limits_table)
    limits, alone = Limits(cache, shared), Limits(cache, None)
    stats = UserStatsStore(dynamodb, config.user_stats_table, config.stats_shards)
    answer_limits = AnswerLimits(
        # A person answers a question once, so what one process counts is enough.
        own=alone.of("answers", config.rate_limit_per_minute),
        relayed=limits.of("relayed answers", config.rate_limit_per_minute, RELAYED_BLOCK),
    )
    return _Parts(
        questions,
        Answers(questions, line, responses, fingerprints, answer_limits, books, accounts),
        AnswerStats(stats, fingerprints),
        OwnAnswers(responses, stats, fingerprints),
        Asking(questions, responses, places, config.open_questions_max),
        limits.of("questions", config.commands_per_minute),
        tombstones_of(config),
    )


refuse_erased(app, lambda: _parts().erased)


def _caller() -> Caller:
    return caller_of(app.current_event.raw_event)


def _query() -> Mapping[str, str]:
    return app.current_event.query_string_parameters or {}


@app.post("/v1/questions")
def post_question() -> Response[str]:
    """Ask a question."""
    caller = _caller()
    caller.check_agent()
    _parts().asked.check(caller.user_id, 1, clock.now())
    body = json_body(app.current_event.raw_event, QUESTION)
    return answer(*_parts().asking.create(body, caller, clock.now()))


@app.get("/v1/questions")
def get_questions() -> Response[str]:
    """Questions, newest first."""
    return answer(200, _parts().questions.listed(_query(), _caller(), clock.now()))


@app.get("/v1/questions/<question_id>")
def get_question(question_id: str) -> Response[str]:
    """A question."""
    return answer(200, question_view(_parts().questions.visible(question_id, _caller()), clock.now()))


@app.get("/v1/agents/<agent_id>/questions")
def get_agent_questions(agent_id: str) -> Response[str]:
    """An agent's own questions, newest first."""
    caller = _caller()
    if problem := first_problem({"type": "string", "pattern": USER_ID}, agent_id):
        raise ApiError(400, "invalid_parameter", f"agent_id {problem[1]}")
    return answer(200, _parts().questions.of_agent(agent_id, _query(), caller, clock.now()))


@app.post("/v1/questions/<question_id>/responses")
def post_response(question_id: str) -> Response[str]:
    """Answer a question."""
    caller = _caller()
    body = json_body(app.current_event.raw_event, ANSWER)
    return answer(201, _parts().answers.answer(question_id, body, caller))


@app.get("/v1/users/<user_id>/answers")
def get_own_answers(user_id: str) -> Response[str]:
    """A user's own answers, newest first."""
    caller = _caller()
    if problem := first_problem({"type": "string", "pattern": USER_ID}, user_id):
        raise ApiError(400, "invalid_parameter", f"user_id {problem[1]}")
    return answer(200, _parts().own.recent(user_id, _query(), caller, clock.now()))


@app.get("/v1/stats")
def get_leaders() -> Response[str]:
    """The best by points."""
    caller, limit = _caller(), integer(_query(), "limit", LEADERS_DEFAULT, LEADERS_MAX)
    return answer(200, _parts().stats.leaders(limit, caller))


@app.get("/v1/stats/<fingerprint>")
def get_stats(fingerprint: str) -> Response[str]:
    """A person's stats."""
    return answer(200, _parts().stats.view_of(fingerprint, _caller(), clock.now()))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an HTTP API request, payload format 2.0."""
    answered = app.resolve(event, context)
    logger.info("answered", extra={"route": event.get("routeKey"), "status": answered["statusCode"]})
    return answered
