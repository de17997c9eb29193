"""Questions in the demo: its person asks, and readers answer. What is asked is invented."""

from collections.abc import Mapping

from ingest.web.caller import AGENTS
from local.api import Api
from local.demo_input import PERSON
from local.event_sources import Body
from local.part_demo import PartDemo, Post
from local.stack import Stack
from rules.parts import Part

READERS = [f"reader-{number}" for number in range(1, 6)]  # who answer her two questions, CHOICE and TEXT
CHOICE = {
    "type": "multiple_choice",
    "prompt": "What keeps you coming back?",
    "options": ["The streak", "The points", "What I learn", "My friends"],
    "required_responses": 20,
    "category": "research",
}
TEXT = {
    "type": "text",
    "prompt": "What should we build next?",
    "required_responses": 20,
    "category": "ideas",
}
IDEAS = (  # the readers' answers to TEXT
    "A duel with a friend",
    "Lessons without a network",
    "A dark theme",
    "Shorter lessons",
    "A tree a month",
)


def ask_questions(stack: Stack, post: Post) -> None:
    """Let the demo's person ask two questions, and readers answer them."""
    choices = dict(zip((*READERS, PERSON), (0, 2, 0, 1, 2, 2), strict=True))
    ideas = dict(zip(READERS, IDEAS, strict=True))
    _ask(
        stack, post, "choice", CHOICE, {user: {"selected_option": option} for user, option in choices.items()}
    )
    _ask(stack, post, "text", TEXT, {user: {"answer": idea} for user, idea in ideas.items()})
    print(f"She asked {len(READERS)} readers two questions, and they have answered.")


def _ask(stack: Stack, post: Post, name: str, question: Body, answers: Mapping[str, Body]) -> None:
    """Ask a question as the person, and answer it. answers: by user, in their order."""
    asker = Api(stack, PERSON, group=AGENTS)
    asked = post(asker, "/v1/questions", question | {"idempotency_key": f"demo-{name}"})
    path = f"/v1/questions/{asked['question_id']}/responses"
    for number, (user, answer) in enumerate(answers.items()):
        details = {"confidence": 3 + number % 3, "response_time_ms": 4000}
        post(Api(stack, user, admin=False), path, answer | details)


DEMO = PartDemo(Part.QUESTIONS, ask_questions)
