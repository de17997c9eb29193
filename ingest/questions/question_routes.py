"""The routes of questions, answers and stats."""

from ingest.questions.question_schemas import ANSWER, QUESTION, QUESTION_ID
from ingest.questions.view_schemas import (
    ANSWERED,
    LEADERS,
    OWN_ANSWERS,
    QUESTION_VIEW,
    QUESTIONS_VIEW,
    RESPONSES_VIEW,
    STATS_VIEW,
)
from ingest.web.json_schema import USER_ID
from ingest.web.routes import SPAN, TEXT, Route, in_path, in_query, matching
from rules.questions.questions import QuestionStatus

QUESTIONS_API = "QuestionsApi"
QUESTION_PATH = in_path("question_id", matching(QUESTION_ID))
AGENT = in_path("agent_id", matching(USER_ID))
USER = in_path("user_id", matching(USER_ID))
FINGERPRINT = in_path("fingerprint", matching(r"^(me|[0-9a-f]{32})$"))
LIMIT = in_query("limit", {"type": "integer", "minimum": 1, "maximum": 100})
LISTED = [
    in_query("status", {"type": "string", "enum": [each.value for each in QuestionStatus]}),
    LIMIT,
    in_query("cursor", TEXT),
]
AUDIENCE = in_query("audience", TEXT | {"description": "some of the caller's tags, divided by commas"})
POLL = [
    in_query("wait", {"type": "integer", "minimum": 0, "maximum": 20, "description": "seconds"}),
    in_query("after", {"type": "integer", "minimum": 0, "maximum": 1000, "description": "a cursor"}),
    LIMIT,
]

QUESTION_ROUTES = [
    Route(
        "PostQuestion",
        QUESTIONS_API,
        "post",
        "/v1/questions",
        "Ask a question (agents)",
        body=QUESTION,
        status=201,
        answer=QUESTION_VIEW,
        may_repeat=True,
    ),
    Route(
        "GetQuestions",
        QUESTIONS_API,
        "get",
        "/v1/questions",
        "Questions for the caller, newest first",
        [AUDIENCE, *LISTED],
        answer=QUESTIONS_VIEW,
    ),
    Route(
        "GetQuestion",
        QUESTIONS_API,
        "get",
        "/v1/questions/{question_id}",
        "A question",
        [QUESTION_PATH],
        answer=QUESTION_VIEW,
    ),
    Route(
        "GetAgentQuestions",
        QUESTIONS_API,
        "get",
        "/v1/agents/{agent_id}/questions",
        "An agent's own questions, newest first",
        [AGENT, *LISTED],
        answer=QUESTIONS_VIEW,
    ),
    Route(
        "PostResponse",
        QUESTIONS_API,
        "post",
        "/v1/questions/{question_id}/responses",
        "Answer a question, once",
        [QUESTION_PATH],
        body=ANSWER,
        status=201,
        answer=ANSWERED,
    ),
    Route(
        "GetResponses",
        "PollsApi",
        "get",
        "/v1/questions/{question_id}/responses",
        "Answers, in order (the agent who asked)",
        [QUESTION_PATH, *POLL],
        answer=RESPONSES_VIEW,
    ),
    Route(
        "GetUserAnswers",
        QUESTIONS_API,
        "get",
        "/v1/users/{user_id}/answers",
        "A user's own answers, newest first; by default those of 30 days",
        [USER, *SPAN, LIMIT, in_query("cursor", TEXT)],
        answer=OWN_ANSWERS,
    ),
    Route(
        "GetStatsBoard",
        QUESTIONS_API,
        "get",
        "/v1/stats",
        "The best by points",
        [LIMIT],
        answer=LEADERS,
    ),
    Route(
        "GetStats",
        QUESTIONS_API,
        "get",
        "/v1/stats/{fingerprint}",
        "A person's stats",
        [FINGERPRINT],
        answer=STATS_VIEW,
    ),
]
