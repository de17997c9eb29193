"""A question is asked once, answered exactly as often as required, and counted."""

from typing import Any

from adapters.platform.items import item
from local.smoke.asking import ask, must
from local.smoke.steps import SmokeStep
from local.smoke.subject import Subject
from rules.questions.questions import question_ids

OPTION, TEXT = 1, "smoke"


def asked_id(subject: Subject) -> str:
    """Return the question's id, which follows from agent and key."""
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
    seen = {each["question_id"] for each in (first, again)}
    must(seen == {asked_id(subject)}, f"the question {asked_id(subject)}, twice", seen)
    return f"question {first['question_id']} asked, once"


def answer(subject: Subject) -> str:
    """One answer closes the question; a second is refused; the agent reads it; stats count it."""
    path = f"/v1/questions/{asked_id(subject)}/responses"
    given = {"selected_option": OPTION, "confidence": 5, "response_time_ms": 1500}
    receipt = ask(subject, "POST", path, {**given, "fingerprint": subject.name}, 201)
    must(receipt["status"] == "CLOSED", "a question that is closed by its one answer", receipt)
    refused = ask(subject, "POST", path, {**given, "fingerprint": f"{subject.name}-second"}, 409)
    must(refused["error"]["code"] == "question_closed", "the code question_closed", refused)
    listed = ask(subject, "GET", path, None, 200)["responses"]
    must([each["selected_option"] for each in listed] == [OPTION], f"one answer: option {OPTION}", listed)
    person = next(iter(people(subject)), None)
    must(person is not None, "one response in the table", [])
    stats = subject.until(lambda: _stats(subject, str(person)), "the answer is counted", subject.waits.effect)
    return f"one answer taken, the second refused; {stats['total_points']} points counted"


def people(subject: Subject) -> list[str]:
    """Return the fingerprint_hash of everybody who answered."""
    rows = subject.meter.client.query(
        TableName=subject.stack.tables["Responses"],
        KeyConditionExpression="question_id = :question",
        ExpressionAttributeValues=item({":question": asked_id(subject)}),
        ConsistentRead=True,
    )["Items"]
    return [str(each["response_id"]["S"]) for each in rows]


def _stats(subject: Subject, person: str) -> tuple[dict[str, Any] | None, Any]:
    status, told = subject.signed_in().call("GET", f"/v1/stats/{person}")
    return (told if status == 200 and told["total_answers"] == 1 else None), (status, told)


STEPS = (SmokeStep("question", question, ("sign-in",)), SmokeStep("answer", answer, ("question",)))
