"""Functions of the stack: their names, and the answer of one that is invoked."""

import base64
import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local.stack import Stack

TEXT_MAX = 400
LEVELS = ("ERROR", "WARNING", "CRITICAL")
FUNCTION = "FunctionName"  # how an output ends that names a function
MISSING = "ResourceNotFoundException"  # the code for a function or a log group that is not there


def functions(stack: Stack) -> dict[str, str]:
    """Return the physical names of a stack's functions, by the names that the template gives them."""
    return {
        name.removesuffix(FUNCTION): physical
        for name, physical in sorted(stack.outputs.items())
        if name.endswith(FUNCTION)
    }


@dataclass(frozen=True, slots=True)
class Invocation:
    """The outcome of an invocation."""

    answer: Any  # of the function; a text if it is no JSON
    error: str = ""  # Lambda's word for an error of the function itself; "": there is none
    log: str = ""  # the end of the function's log

    def failure(self) -> str:
        """Return why a consumer did not take its records; "" if it took them all.

        The consumer's answer has the reason of a record that it can never take; its log has that of a record
        that may succeed later.
        """
        if self.error:
            return f"{self.error}: {_answer_text(self.answer)}"
        failed = self.answer.get("batchItemFailures") if isinstance(self.answer, dict) else None
        if failed is None:
            return f"the answer is not a consumer's: {_answer_text(self.answer)}"
        if not failed:
            return ""
        reasons = dict.fromkeys(failure["reason"] for failure in failed if failure.get("reason"))
        return ("; ".join(reasons) or last_trouble(self.log) or "the function's log says why")[:TEXT_MAX]


def invoke(stack: Stack, function: str, payload: Any) -> Invocation:
    """Invoke a function and wait for its answer. Raises what botocore raises."""
    answer = stack.client("lambda").invoke(
        FunctionName=function, Payload=json.dumps(payload).encode(), LogType="Tail"
    )
    text: str = answer["Payload"].read().decode(errors="replace")
    log = base64.b64decode(answer.get("LogResult") or "").decode(errors="replace")
    try:
        payload_answer = json.loads(text or "null")
    except ValueError:
        payload_answer = text
    return Invocation(payload_answer, answer.get("FunctionError", ""), log)


def last_trouble(log: str) -> str:
    """Return the last warning or error of a function's log; "" if there is none."""
    for line in reversed(log.splitlines()):
        try:
            line_fields = json.loads(line[line.index("{") :])
        except ValueError:
            continue
        if isinstance(line_fields, dict) and line_fields.get("level") in LEVELS:
            traceback = str(line_fields.get("exception") or "").strip().splitlines()
            sentences = (str(line_fields.get("message")), *traceback[-1:])
            return ": ".join(dict.fromkeys(filter(None, sentences)))
    return ""


def name_of_spelling(typed: str, spellings: Mapping[str, str], what: str) -> str:
    """Return the name that a spelling stands for. Case, hyphens and underscores do not matter.

    spellings: spelling -> name. what: a word for the sentence, such as "failure queue". Raises RuntimeError,
    with the names that are near or else with all, if there is no such spelling.
    """
    names = {_plain(spelling): name for spelling, name in spellings.items()}
    if name := names.get(_plain(typed)):
        return name
    near = dict.fromkeys(names[spelling] for spelling in difflib.get_close_matches(_plain(typed), names))
    hint = (
        f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted({*names.values()}))}"
    )
    raise RuntimeError(f"there is no {what} {typed}: {hint}")


def _answer_text(answer: Any) -> str:
    message = answer.get("errorMessage") if isinstance(answer, dict) else None
    return str(message or json.dumps(answer))[:TEXT_MAX]


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))
