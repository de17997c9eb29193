"""Questions in the world of tests/support/smoke_world.py."""

from collections.abc import Callable
from typing import Any

from rules.questions.notice_kinds import question_holder
from rules.questions.questions import open_questions_counter, question_ids
from tests.support.smoke_faults import Answer, becomes, with_

PERSON, FORMER_HASH = "f" * 32, "e" * 32
NAMES = (PERSON, FORMER_HASH)  # nothing of them may stay
TABLES = ("Questions", "Responses", "UserStats")


FAULTS = [
    ("question", "POST /v1/questions", becomes(403)),
    ("question", "POST /v1/questions", with_(question_id="another")),
    ("answer", "POST /v1/questions", with_(status="OPEN")),
    ("answer", "POST /v1/questions", becomes(201, {"status": "CLOSED"})),
    ("answer", "GET /v1/questions", with_(responses=[])),
    ("answer", "GET /v1/stats", with_(total_answers=0)),
    ("answer", "GET /v1/stats", becomes(404)),
]


class SmokePartWorld:
    """Its routes, which write to the tables of the world."""

    def __init__(self, world: Any) -> None:
        self.world, self.answered, self.asked = world, 0, False

    def routes(self) -> list[tuple[str, Callable[..., Answer]]]:
        return [
            (r"POST /v1/questions", self._ask),
            (r"POST /v1/questions/([^/]+)/responses", self._respond),
            (
                r"GET /v1/questions/([^/]+)/responses",
                lambda *_: (200, {"responses": [{"selected_option": 1}]}),
            ),
            (
                r"GET /v1/stats/([^/]+)",
                lambda *_: (200, {"total_answers": self.answered, "total_points": 15}),
            ),
        ]

    def _ask(self, body: Any, _: str) -> Answer:
        key, items = body["idempotency_key"], self.world.items
        status, self.asked = (200 if self.asked else 201), True
        identifier = next(question_ids(key, key))
        items["Questions"] = [{"question_id": {"S": identifier}}]
        items["Limits"] = [{"counter": {"S": open_questions_counter(key)}}]
        self.world.notify(question_holder(identifier))
        return status, {"question_id": identifier}

    def _respond(self, _: Any, __: str, question: str) -> Answer:
        if self.answered:
            return 409, {"error": {"code": "question_closed"}}
        self.answered = 1
        row = {"question_id": {"S": question}, "response_id": {"S": PERSON}}
        self.world.items["Responses"].append(row | {"older_hashes": {"L": [{"S": FORMER_HASH}]}})
        self.world.items["UserStats"] += [{"fingerprint_hash": {"S": each}} for each in (PERSON, FORMER_HASH)]
        return 201, {"status": "CLOSED"}
