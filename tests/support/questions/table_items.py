"""Items of questions' tables (tests/support/table_items.py)."""

from datetime import datetime, timedelta
from random import Random

from rules.days import stamp
from tests.support.drawn_values import WORDS, Item, new_id, some


def question(chance: Random, moment: datetime) -> Item:
    is_open = chance.random() < 0.5
    over = {"current_responses": 3, "closed_at": stamp(moment + timedelta(hours=1))}
    return {
        "question_id": new_id(chance),
        "created_at": stamp(moment),
        "agent_id": f"agent-{chance.randrange(50)}",
        "type": "multiple_choice",
        "category": "general",
        "prompt": chance.choice(WORDS) * chance.randrange(1, 9) or "?",
        "options": [chance.choice(WORDS) for _ in range(chance.randrange(4))],
        "audience": ",".join(chance.sample(("de", "it", "new"), chance.randrange(3))),
        "required_responses": 3,
        "closes_at": stamp(moment + timedelta(days=1)),
        "status": "OPEN" if is_open else "CLOSED",
    } | ({} if is_open else over)


def response(chance: Random, moment: datetime) -> Item:
    return {
        "question_id": new_id(chance),
        "fingerprint_hash": f"{chance.getrandbits(128):032x}",
        "created_at": stamp(moment),
        "agent_id": f"agent-{chance.randrange(50)}",
        "type": "text",
        "category": "general",
        "number": chance.randrange(1, 9),
        "points": 10,
        "day_points_max": 150,
        "activity_date": f"{moment:%Y-%m-%d}",
        "is_signed_in": chance.random() < 0.5,
    } | some(
        chance,
        selected_option=chance.randrange(4),
        answer=chance.choice(WORDS),
        confidence=chance.randrange(1, 6),
        response_time_ms=chance.randrange(10**5),
    )


def stats(chance: Random, moment: datetime) -> Item:
    return {
        "fingerprint_hash": f"{chance.getrandbits(128):032x}",
        "version": chance.randrange(10**6),
        "updated_at": stamp(moment),
    } | some(
        chance,
        0.8,
        total_answers=chance.randrange(1000),
        total_points=chance.randrange(1000),
        streak_days=chance.randrange(99),
        longest_streak_days=chance.randrange(99),
        streak_last_date=f"{moment:%Y-%m-%d}",
        badges=["first", "week"],
        answers_by_category={"general": 5, "größe": 2},
        created_at=stamp(moment - timedelta(days=9)),
        newest_at=stamp(moment),
    )


def notification(chance: Random, moment: datetime) -> Item:
    message = chance.choice((f"question={new_id(chance)}", f"reminder={moment:%Y-%m-%d}"))
    return {
        "subscription_id": f"{new_id(chance)}#sent#{message}",
        "claimed_at": stamp(moment),
        "outcome": chance.choice(("sent", "dead")),
    } | some(chance, settled_at=stamp(moment))


ITEMS = {
    "questions": question,
    "responses": response,
    "answer_stats": stats,
    "notifications": notification,
}
