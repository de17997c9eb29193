"""Removes the words of answers from Responses, some time after their question has closed (rule 22)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from adapters.platform.item_tables import AgedItems
from adapters.platform.items import Item, encode_item
from adapters.platform.tables import query_all
from analytics.retention import ItemRow, PartRetention, RemovalCounts, RetentionRule
from rules.days import key_of_stamp, stamp

# An answer may be stored a moment after its question has closed. 90 days later its agent may ask another
# question under the same key, whose answers are younger than this.
STORED_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class AnswerTexts(RetentionRule):
    """Removes the words of answers from Responses. Their length stays, which the lake has, too."""

    setting = "AnswerTextRetentionDays"
    name, entity, age = "answer_texts", "questions", "closes_at"

    def remove(self, rows: Sequence[ItemRow]) -> RemovalCounts:
        """Put the length in the place of the words, in the answers to these questions."""
        answers = list(
            chain.from_iterable(self._answers_of(row["question_id"], row["closes_at"]) for row in rows)
        )
        lengths = [("answer_characters", {"N": str(len(answer["answer"]["S"]))}) for answer in answers]
        changed = self.items.remove(answers, "answer", lengths)
        return RemovalCounts(len(answers) - changed, changed)

    def _answers_of(self, question_id: str, closes_at: datetime) -> list[Item]:
        answers = query_all(
            self.items.dynamodb,
            TableName=self.items.table,
            KeyConditionExpression="question_id = :question",
            ExpressionAttributeValues=encode_item({":question": question_id}),
            ConsistentRead=True,
        )
        until = key_of_stamp(stamp(closes_at + STORED_AFTER))
        return [item for item in answers if "answer" in item and item["created_at"]["S"] <= until]


def rules(config: Any, dynamodb: Any) -> Iterator[RetentionRule]:
    """Yield the rule, unless the deployment leaves questions out."""
    if config.responses_table:
        answers = AgedItems(dynamodb, config.responses_table, ("question_id", "response_id"))
        yield AnswerTexts(answers, config.answer_text_retention_days)


RETENTION = PartRetention({"responses_table": str, "answer_text_retention_days": int}, rules)
