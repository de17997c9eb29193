"""Lists of questions by status: in which partitions of the indexes a question is.

The indexes have keys alone. An answer changes no key, except the last one, so it writes to no index. A
question is in the list OPEN until its last answer moves it to CLOSED, or until a job moves it to EXPIRED.
"""

import zlib
from typing import Any

from rules.questions.questions import Question, QuestionStatus, to_item

# Each list is cut into so many partitions, because one partition takes 1,000 writes a second.
SHARDS = 4


def status_shard(status: QuestionStatus, question_id: str) -> str:
    """Return the partition of a list that a question is in. Example: `OPEN#2`."""
    return f"{status.value}#{_shard(question_id)}"


def status_shards(status: QuestionStatus) -> list[str]:
    """Return all partitions of a list."""
    return [f"{status.value}#{shard}" for shard in range(SHARDS)]


def closing_shards() -> list[str]:
    """Return all partitions of the questions whose closing is waited for."""
    return [f"closing#{shard}" for shard in range(SHARDS)]


def partitions_to_read(asked: QuestionStatus) -> list[str]:
    """Return the partitions that together have all questions that show a status.

    A question that has just expired is in OPEN still.
    """
    if asked is QuestionStatus.EXPIRED:
        return status_shards(QuestionStatus.OPEN) + status_shards(QuestionStatus.EXPIRED)
    return status_shards(QuestionStatus.CLOSED if asked is QuestionStatus.CLOSED else QuestionStatus.OPEN)


def listed_item(question: Question) -> dict[str, Any]:
    """Return a question as table attributes, with the keys of its indexes."""
    waits = question.status is QuestionStatus.OPEN
    return to_item(question) | {
        "status_shard": status_shard(question.status, question.question_id),
        "closing_shard": f"closing#{_shard(question.question_id)}" if waits else None,
    }


def _shard(question_id: str) -> int:
    return zlib.crc32(question_id.encode()) % SHARDS
