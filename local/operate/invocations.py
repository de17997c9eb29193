"""Invokes a function of the stack, and says why it failed."""

import base64
import json
from dataclasses import dataclass
from typing import Any

from local.stack import Stack

TEXT_MAX = 400
LEVELS = ("ERROR", "WARNING", "CRITICAL")


@dataclass(frozen=True, slots=True)
class Invocation:
    """What a function answered. error: that the function itself failed. log: the end of its log."""

    answer: Any
    error: str = ""
    log: str = ""

    def failure(self) -> str | None:
        """Return why a consumer did not take its records; None if it took them all.

        The consumer says it of poison; what may come again says it in its log.
        """
        if self.error:
            return f"{self.error}: {_shown(self.answer)}"
        failed = self.answer.get("batchItemFailures") if isinstance(self.answer, dict) else None
        if failed is None:
            return f"the answer is not a consumer's: {_shown(self.answer)}"
        reasons = dict.fromkeys(each["reason"] for each in failed if each.get("reason"))
        if not failed:
            return None
        return ("; ".join(reasons) or last_trouble(self.log) or "the function's log says why")[:TEXT_MAX]


def invoke(stack: Stack, function: str, payload: Any) -> Invocation:
    """Invoke a function and wait for its answer. Raises what botocore raises."""
    answer = stack.client("lambda").invoke(
        FunctionName=function, Payload=json.dumps(payload).encode(), LogType="Tail"
    )
    text: str = answer["Payload"].read().decode(errors="replace")
    log = base64.b64decode(answer.get("LogResult") or "").decode(errors="replace")
    try:
        found = json.loads(text or "null")
    except ValueError:
        found = text
    return Invocation(found, answer.get("FunctionError", ""), log)


def last_trouble(log: str) -> str:
    """Return the last warning or error of a function's log; "" if there is none."""
    for line in reversed(log.splitlines()):
        try:
            told = json.loads(line[line.index("{") :])
        except ValueError:
            continue
        if isinstance(told, dict) and told.get("level") in LEVELS:
            raised = str(told.get("exception") or "").strip().splitlines()
            return ": ".join(dict.fromkeys(each for each in (str(told.get("message")), *raised[-1:]) if each))
    return ""


def _shown(answer: Any) -> str:
    told = answer.get("errorMessage") if isinstance(answer, dict) else None
    return str(told or json.dumps(answer))[:TEXT_MAX]
