"""The Responses table: one answer of a person to a question, kept for good."""

from collections.abc import Iterable, Iterator
from typing import Any

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import get_all, query_all
from rules.questions.responses import Response, from_item, to_item

# The mark of a response that UserStats has counted; written in the transaction that counts it.
COUNTED = "counted_at"
Key = tuple[str, str]  # question_id, response_id


class AlreadyAnswered(Exception):
    """This person has answered this question before."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.question_id)
        self.response = response  # the answer that is stored


class ResponseStore:
    """Responses of all questions."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def get(self, question_id: str, *hashes: str) -> Response | None:
        """Return a person's answer, strongly consistent: one request. hashes: all that they may have."""
        if len(hashes) > 1:
            return next(iter(self.all_of((question_id, person) for person in hashes)), None)
        key = encode_item(_key((question_id, hashes[0])))
        answer = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return from_item(decode_item(answer["Item"])) if "Item" in answer else None

    def all_of(self, keys: Iterable[Key]) -> list[Response]:
        """Return the answers of these keys that exist, strongly consistent."""
        items = get_all(self._dynamodb, self._table, map(_key, sorted(set(keys))))
        return [from_item(decode_item(item)) for item in items]

    def of_question(self, question_id: str) -> Iterator[Response]:
        """Yield a question's answers, strongly consistent."""
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="question_id = :question",
            ExpressionAttributeValues=encode_item({":question": question_id}),
            ConsistentRead=True,
        )
        return (from_item(decode_item(item)) for item in items)

    def has_any(self, question_id: str) -> bool:
        """Whether a question has answers; eventually consistent: half a read unit where it has none."""
        answer = self._dynamodb.query(
            TableName=self._table,
            KeyConditionExpression="question_id = :question",
            ExpressionAttributeValues=encode_item({":question": question_id}),
            Limit=1,
        )
        return bool(answer["Items"])

    def of_person(self, hashes: Iterable[str]) -> list[tuple[Item, bool]]:
        """Return a person's answers as stored items, and whether each is in the stats.

        The index gives their keys, and the table the items. An answer of the last moments may be missing,
        because the index follows the table.
        """
        keys: list[dict[str, str]] = []
        for person in hashes:
            index_items = query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName="ByFingerprint",
                KeyConditionExpression="fingerprint_hash = :person",
                ExpressionAttributeValues=encode_item({":person": person}),
                ProjectionExpression="question_id, response_id",
            )
            keys += map(decode_item, index_items)
        return [(item, COUNTED in item) for item in get_all(self._dynamodb, self._table, keys)]

    def recent(
        self, hashes: Iterable[str], span: tuple[str, str], after: Key | None, limit: int
    ) -> list[Response]:
        """Return at most `limit` of a person's answers, newest first.

        span: stamps, both included. after: (created_at, question_id) of the last one that is known already.
        """
        keys: list[tuple[str, Key]] = []
        for person in hashes:
            keys += self._recent(person, span, after, limit)
        newest = sorted(keys, reverse=True)[:limit]
        responses = self.all_of(key for _, key in newest)
        return sorted(
            responses, key=lambda response: (response.created_at, response.question_id), reverse=True
        )

    def _recent(
        self, fingerprint_hash: str, span: tuple[str, str], after: Key | None, limit: int
    ) -> list[tuple[str, Key]]:
        """Return created_at and key of the answers under one hash."""
        start = after and {
            "fingerprint_hash": fingerprint_hash,
            "created_at": after[0],
            **_key((after[1], fingerprint_hash)),
        }
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="ByFingerprint",
            KeyConditionExpression="fingerprint_hash = :person AND created_at BETWEEN :since AND :until",
            ExpressionAttributeValues=encode_item(
                {":person": fingerprint_hash, ":since": span[0], ":until": span[1]}
            ),
            ScanIndexForward=False,
            Limit=limit,
            **({"ExclusiveStartKey": encode_item(start)} if start else {}),
        )
        rows = map(decode_item, answer["Items"])
        return [(row["created_at"], (row["question_id"], row["response_id"])) for row in rows]

    def counted(self, keys: Iterable[Key]) -> set[Key]:
        """Return the keys that need no counting: their responses are in the stats, or no longer there."""
        keys = set(keys)
        items = get_all(self._dynamodb, self._table, map(_key, sorted(keys)))
        uncounted = [item for item in items if COUNTED not in item]
        return keys - {(item["question_id"]["S"], item["response_id"]["S"]) for item in uncounted}

    def put_action(self, response: Response) -> dict[str, Any]:
        """Return a transaction's action: put an answer unless the person has answered."""
        return {
            "Put": {
                "TableName": self._table,
                "Item": encode_item(to_item(response)),
                "ConditionExpression": "attribute_not_exists(question_id)",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        }

    def mark_action(self, response: Response, at: str) -> dict[str, Any]:
        """Return a transaction's action: note that an answer is in the stats, unless it is noted."""
        return {
            "Update": {
                "TableName": self._table,
                "Key": encode_item(_key(response.key)),
                "UpdateExpression": f"SET {COUNTED} = :at",
                "ConditionExpression": f"attribute_exists(question_id) AND attribute_not_exists({COUNTED})",
                "ExpressionAttributeValues": encode_item({":at": at}),
            }
        }

    def stored_response(self, reason: dict[str, Any], response: Response) -> Response:
        """Return the answer that is stored: it comes with the refusal to put another one, or is read."""
        if reason.get("Item"):
            return from_item(decode_item(reason["Item"]))
        return self.get(*response.key) or response


def _key(key: Key) -> dict[str, str]:
    question_id, response_id = key
    return {"question_id": question_id, "response_id": response_id}
