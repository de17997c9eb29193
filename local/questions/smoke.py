"""The steps of a smoke test that ask a question, answer it, and remove both."""

from collections.abc import Callable, Iterator
from typing import Any

from adapters.platform.items import Item, decode_item, encode_item
from local.smoke.steps import SmokePart, SmokeStep, Subject, ask, must
from rules.parts import Part
from rules.questions.notice_kinds import question_holder
from rules.questions.questions import open_questions_counter, question_ids

OPTION, TEXT = 1, "smoke"


def question_id(subject: Subject) -> str:
    """Return the id of the test's question, which follows from agent and key."""
    return next(question_ids(subject.agent, subject.name))


def question(subject: Subject) -> str:
    """Asking again asks once."""
    body = {
        "idempotency_key": subject.name,
        "type": "multiple_choice",
        "prompt": "A smoke test asks, and removes this at once: does it work?",
        "options": ["no", "yes"],
        "audience": [TEXT],
        "category": TEXT,
        "required_responses": 1,
    }
    first = ask(subject, "POST", "/v1/questions", body, 201)
    again = ask(subject, "POST", "/v1/questions", body, 200)
    seen = {first["question_id"], again["question_id"]}
    must(seen == {question_id(subject)}, f"the question {question_id(subject)}, twice", seen)
    return f"question {first['question_id']} asked, once"


def answer(subject: Subject) -> str:
    """One answer closes the question; a second is refused; the agent reads it; stats count it."""
    path = f"/v1/questions/{question_id(subject)}/responses"
    body = {"selected_option": OPTION, "confidence": 5, "response_time_ms": 1500}
    receipt = ask(subject, "POST", path, {**body, "fingerprint": subject.name}, 201)
    must(receipt["status"] == "CLOSED", "a question that is closed by its one answer", receipt)
    refused = ask(subject, "POST", path, {**body, "fingerprint": f"{subject.name}-second"}, 409)
    must(refused["error"]["code"] == "question_closed", "the code question_closed", refused)
    listed = ask(subject, "GET", path, None, 200)["responses"]
    must(
        [response["selected_option"] for response in listed] == [OPTION],
        f"one answer: option {OPTION}",
        listed,
    )
    person = next(iter(people(subject)), None)
    must(person is not None, "one response in the table", [])
    stats = subject.until(lambda: _stats(subject, str(person)), "the answer is counted")
    return f"one answer taken, the second refused; {stats['total_points']} points counted"


def people(subject: Subject) -> list[str]:
    """Return the fingerprint_hash of everybody who answered."""
    rows = subject.stack.client("dynamodb").query(
        TableName=subject.stack.tables["Responses"],
        KeyConditionExpression="question_id = :question",
        ExpressionAttributeValues=encode_item({":question": question_id(subject)}),
        ConsistentRead=True,
    )["Items"]
    return [str(row["response_id"]["S"]) for row in rows]


def _stats(subject: Subject, person: str) -> tuple[dict[str, Any] | None, Any]:
    status, stats = subject.signed_in().call("GET", f"/v1/stats/{person}")
    return (stats if status == 200 and stats["total_answers"] == 1 else None), (status, stats)


def partitions(subject: Subject, items: Callable[[str, str], list[Item]]) -> Iterator[tuple[str, str]]:
    """Yield each partition that the steps may have written to, as SmokePart has it."""
    asked = question_id(subject)
    fingerprints: set[str] = set()
    for response in map(decode_item, items("Responses", asked)):
        fingerprints |= {response["response_id"], *response.get("older_hashes", ())}
    yield from (("UserStats", fingerprint) for fingerprint in sorted(fingerprints))
    yield "Notifications", question_holder(asked)
    yield from (("Questions", asked), ("Responses", asked))
    yield "Limits", open_questions_counter(subject.agent)  # the counters of minutes expire by themselves


SMOKE = SmokePart(
    Part.QUESTIONS,
    (
        SmokeStep("question", question, ("sign-in",), Part.QUESTIONS),
        SmokeStep("answer", answer, ("question",), Part.QUESTIONS),
    ),
    {
        "Questions": ("question_id",),
        "Responses": ("question_id", "response_id"),
        "UserStats": ("fingerprint_hash",),
    },
    partitions,
)
