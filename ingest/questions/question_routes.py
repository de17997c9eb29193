"""The question routes for the OpenAPI document."""

from typing import Any

from ingest.engagement.engagement_schemas import USER_ID
from ingest.questions import question_schemas as shapes
from rules.questions.questions import Status

Parameter = dict[str, Any]


def _path(name: str, pattern: str) -> Parameter:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": pattern}}


def _query(name: str, schema: dict[str, Any]) -> Parameter:
    return {"name": name, "in": "query", "required": False, "schema": schema}


QUESTION = _path("question_id", shapes.QUESTION_ID)
AGENT = _path("agent_id", USER_ID)
FINGERPRINT = _path("fingerprint", r"^(me|[0-9a-f]{32})$")
LIMIT = _query("limit", {"type": "integer", "minimum": 1, "maximum": 100})
PAGE = [
    _query("status", {"type": "string", "enum": [each.value for each in Status]}),
    LIMIT,
    _query("cursor", {"type": "string"}),
]
AUDIENCE = _query("audience", {"type": "string", "description": "a person's tags, divided by commas"})
POLL = [
    _query("wait", {"type": "integer", "minimum": 0, "maximum": 20, "description": "seconds"}),
    _query("after", {"type": "integer", "minimum": 0, "maximum": 1000, "description": "a cursor"}),
    LIMIT,
]
# (method, path, what it does, parameters, body, success status, answer), as in ingest.openapi
QUESTION_ROUTES: list[Any] = [
    ("post", "/v1/questions", "Ask a question (agents)", [], shapes.QUESTION, 201, shapes.QUESTION_VIEW),
    ("get", "/v1/questions", "Questions, newest first", [AUDIENCE, *PAGE], None, 200, shapes.QUESTIONS_VIEW),
    ("get", "/v1/questions/{question_id}", "A question", [QUESTION], None, 200, shapes.QUESTION_VIEW),
    (
        *("get", "/v1/agents/{agent_id}/questions", "An agent's own questions, newest first"),
        *([AGENT, *PAGE], None, 200, shapes.QUESTIONS_VIEW),
    ),
    (
        *("post", "/v1/questions/{question_id}/responses", "Answer a question, once"),
        *([QUESTION], shapes.ANSWER, 201, shapes.ANSWERED),
    ),
    (
        *("get", "/v1/questions/{question_id}/responses", "Answers, in order (the agent who asked)"),
        *([QUESTION, *POLL], None, 200, shapes.RESPONSES_VIEW),
    ),
    ("get", "/v1/stats", "The best by points", [LIMIT], None, 200, shapes.LEADERS),
    ("get", "/v1/stats/{fingerprint}", "A person's stats", [FINGERPRINT], None, 200, shapes.STATS_VIEW),
]
