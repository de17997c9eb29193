"""The routes under /v1/questions, /v1/agents, /v1/subscriptions and /v1/stats, and a user's own answers."""

from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock
from adapters.book_store import BookStore
from adapters.bootstrap import ClientOf, bootstrap
from adapters.engagement.event_store import ZoneStore
from adapters.platform.keyed_hash import Fingerprints
from adapters.platform.limits import OwnerQuota, SharedCounters
from adapters.platform.redis_cache import RedisCache
from adapters.privacy.tombstones import Tombstones, tombstones_of
from adapters.questions.push import SnsPush
from adapters.questions.question_store import QuestionStore
from adapters.questions.response_store import AnswerWriter, ResponseStore
from adapters.questions.subscription_store import SubscriptionStore
from adapters.questions.user_stats_store import UserStatsStore
from ingest.questions.answers import Answers, AnswerStats, OwnAnswers
from ingest.questions.question_schemas import (
    ANSWER,
    ANSWER_RECEIPT,
    LEADERS,
    OWN_ANSWERS,
    QUESTION,
    QUESTION_VIEW,
    QUESTIONS_VIEW,
    STATS_VIEW,
    SUBSCRIPTION,
    SUBSCRIPTION_VIEW,
    UUID,
)
from ingest.questions.questions import QuestionCreator, Questions, question_view
from ingest.questions.subscriptions import Subscriptions
from ingest.web.api import SECURITY_HEADERS, Allowance, Api, json_response, refuse_erased
from ingest.web.json_schema import TEXT, text, user_id
from ingest.web.paging import integer
from ingest.web.rate_limit import CHEAP_STEP, RateLimit
from ingest.web.routes import CURSOR, SPAN, in_query, limit_to
from rules.parts import Part
from rules.privacy.tombstones import user_subject
from rules.questions.questions import QuestionStatus

LEADERS_DEFAULT, LEADERS_MAX = 10, 100
STATUS = in_query("status", {"type": "string", "enum": [status.value for status in QuestionStatus]})
LIMIT = limit_to(LEADERS_MAX)
AUDIENCE = in_query("audience", TEXT | {"description": "some of the caller's tags, divided by commas"})

app = Api(
    "QuestionsApi",
    {
        "question_id": text(pattern=UUID),
        "agent_id": user_id(),
        "user_id": user_id(),
        "fingerprint": text(pattern=r"^(me|[0-9a-f]{32})$"),
        "subscription_id": text(pattern=UUID),
    },
    part=Part.QUESTIONS,
)
handler = app.handler


@dataclass(frozen=True, slots=True)
class QuestionsApiSettings(Allowance):
    """Settings of this function."""

    questions_table: str
    responses_table: str
    subscriptions_table: str
    user_stats_table: str
    stats_shards: int
    bp_events_table: str  # the table BPEvents: users' events, which earn points
    idempotency_keys_table: str
    user_streaks_table: str
    fingerprint_secret_arn: str  # the secret with the keys of the fingerprints' hash (rules/key_ring.py)
    redis_url: str
    rate_limit_per_minute: int  # answers of one caller
    commands_per_minute: int
    open_questions_max: int
    subscriptions_max: int
    rule_books_table: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class _Parts:
    questions: Questions
    answers: Answers
    stats: AnswerStats
    own_answers: OwnAnswers
    creator: QuestionCreator
    questions_limit: RateLimit  # questions that an agent asks, a minute
    subscriptions: Subscriptions
    subscriptions_limit: RateLimit  # registrations of a person, a minute
    tombstones: Tombstones


@bootstrap(QuestionsApiSettings)
def _parts(config: QuestionsApiSettings, client: ClientOf) -> _Parts:
    dynamodb = client("dynamodb")
    responses = ResponseStore(dynamodb, config.responses_table)
    questions = Questions(QuestionStore(dynamodb, config.questions_table))
    claims_table, events_table = config.idempotency_keys_table, config.bp_events_table
    writer = AnswerWriter(dynamodb, questions.store, responses, claims_table, events_table)
    zones = ZoneStore(dynamodb, config.user_streaks_table)
    books = BookStore(dynamodb, config.rule_books_table)
    quota = OwnerQuota(dynamodb, config.limits_table)
    fingerprints = Fingerprints(lambda: client("secretsmanager"), config.fingerprint_secret_arn)
    counters, redis = SharedCounters(lambda: dynamodb, config.limits_table), RedisCache(config.redis_url)
    phones = SubscriptionStore(dynamodb, config.subscriptions_table)
    stats = UserStatsStore(dynamodb, config.user_stats_table, config.stats_shards)
    limit = config.rate_limit_per_minute
    own = RateLimit(counters, "answers", limit, step=CHEAP_STEP, redis=redis)
    relayed = RateLimit(counters, "relayed answers", limit, step=CHEAP_STEP, redis=redis)
    return _Parts(
        questions,
        Answers(questions, writer, fingerprints, own, relayed, books, zones),
        AnswerStats(stats, fingerprints, books),
        OwnAnswers(responses, stats, fingerprints),
        QuestionCreator(questions.store, responses, quota, config.open_questions_max),
        RateLimit(counters, "questions", config.commands_per_minute, redis=redis),
        Subscriptions(phones, lambda: SnsPush(client("sns")), quota, config.subscriptions_max),
        RateLimit(counters, "subscriptions", config.commands_per_minute, redis=redis),
        tombstones_of(config, client),
    )


refuse_erased(app, lambda user: _parts().tombstones.stands(user_subject(user)))


@app.route("POST /v1/questions", body=QUESTION, status=201, answer=QUESTION_VIEW, may_repeat=True)
def post_question() -> Response[str]:
    """Ask a question (agents)."""
    caller = app.caller()
    caller.check_agent()
    _parts().questions_limit.check(caller.user_id, 1, clock.now())
    return json_response(*_parts().creator.create(app.body(), caller.user_id, clock.now()))


@app.route("GET /v1/questions", [AUDIENCE, STATUS, LIMIT, CURSOR], answer=QUESTIONS_VIEW)
def get_questions() -> dict[str, Any]:
    """Questions for the caller, newest first."""
    return _parts().questions.page_by_status(app.query, app.caller(), clock.now())


@app.route("GET /v1/questions/{question_id}", answer=QUESTION_VIEW)
def get_question(question_id: str) -> dict[str, Any]:
    """A question."""
    return question_view(_parts().questions.find_visible(question_id, app.caller()), clock.now())


@app.route("GET /v1/agents/{agent_id}/questions", [STATUS, LIMIT, CURSOR], answer=QUESTIONS_VIEW)
def get_agent_questions(agent_id: str) -> dict[str, Any]:
    """An agent's own questions, newest first."""
    caller = app.caller()
    app.check_path("agent_id", agent_id)
    return _parts().questions.page_of_agent(agent_id, app.query, caller, clock.now())


@app.route("POST /v1/questions/{question_id}/responses", body=ANSWER, status=201, answer=ANSWER_RECEIPT)
def post_response(question_id: str) -> dict[str, Any]:
    """Answer a question, once."""
    caller = app.caller()
    body = app.body()
    return _parts().answers.answer(question_id, body, caller)


@app.route("GET /v1/users/{user_id}/answers", [*SPAN, LIMIT, CURSOR], answer=OWN_ANSWERS)
def get_user_answers(user_id: str) -> dict[str, Any]:
    """A user's own answers, newest first; by default those of 30 days."""
    caller = app.caller()
    app.check_path("user_id", user_id)
    return _parts().own_answers.recent(user_id, app.query, caller, clock.now())


@app.route("GET /v1/stats", [LIMIT], answer=LEADERS)
def get_stats_board() -> dict[str, Any]:
    """The best by points."""
    caller, limit = app.caller(), integer(app.query, "limit", LEADERS_DEFAULT, LEADERS_MAX)
    return _parts().stats.leaders(limit, caller)


@app.route("GET /v1/stats/{fingerprint}", answer=STATS_VIEW)
def get_stats(fingerprint: str) -> dict[str, Any]:
    """A person's stats."""
    return _parts().stats.view_of(fingerprint, app.caller(), clock.now())


@app.route("POST /v1/subscriptions", body=SUBSCRIPTION, status=201, answer=SUBSCRIPTION_VIEW, may_repeat=True)
def post_subscription() -> Response[str]:
    """Be told of questions on a phone."""
    caller, now = app.caller(), clock.now()
    _parts().subscriptions_limit.check(caller.user_id, 1, now)
    return json_response(*_parts().subscriptions.subscribe(caller, app.body(), now))


@app.route("DELETE /v1/subscriptions/{subscription_id}", status=204)
def delete_subscription(subscription_id: str) -> Response[str]:
    """Be told nothing more there."""
    _parts().subscriptions.remove(app.caller(), subscription_id)
    return Response(204, body="", headers=dict(SECURITY_HEADERS))
