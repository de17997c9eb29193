"""A DynamoDB client that counts."""

from typing import Any

from tests.support.dying import Killed


class Counting:
    """A DynamoDB client that counts calls and items read, and dies before a call if it is told to."""

    def __init__(self, dynamodb: Any) -> None:
        self._dynamodb, self.exceptions = dynamodb, dynamodb.exceptions
        self.calls: dict[str, int] = {}
        self.read = 0
        self.strong: list[str] = []
        self.left: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        def call(**request: Any) -> Any:
            if not self.left.get(name, 1):
                self.left = dict.fromkeys(dir(self._dynamodb), 0)
                raise Killed
            if name in self.left:
                self.left[name] -= 1
            self.calls[name] = self.calls.get(name, 0) + 1
            if request.get("ConsistentRead"):
                self.strong.append(name)
            answer = getattr(self._dynamodb, name)(**request)
            self.read += len(answer.get("Items", ())) if name == "query" else 0
            self.read += (
                sum(map(len, answer.get("Responses", {}).values())) if name == "batch_get_item" else 0
            )
            return answer

        return call
