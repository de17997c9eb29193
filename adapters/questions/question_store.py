"""The Questions table."""

from datetime import datetime
from typing import Any

from adapters.platform.items import item, plain
from rules.questions.questions import Question, from_item, to_item


class QuestionStore:
    """Questions of all agents."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self.table = dynamodb, table

    def create(self, question: Question, now: datetime) -> Question:
        """Put a question unless its id is taken; returns the one that is stored."""
        try:
            self._dynamodb.put_item(
                TableName=self.table,
                Item=item(to_item(question)),
                ConditionExpression="attribute_not_exists(question_id) OR expires_at <= :now",
                ExpressionAttributeValues={":now": {"N": str(int(now.timestamp()))}},
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return self.get(question.question_id) or question
        return question

    def get(self, question_id: str) -> Question | None:
        """Return one question, strongly consistent: one request."""
        key = item({"question_id": question_id})
        answer = self._dynamodb.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        return from_item(plain(answer["Item"])) if "Item" in answer else None
