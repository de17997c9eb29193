"""Names that bodies and items had before: still read, and still written beside the new ones, for one version.

While a version is deployed, functions of the one before run beside it, and both count the same questions.
`kind` (text, choice) is now `type` (text, multiple_choice); `option_index` is `selected_option`;
`answers_count` is `current_responses`; `answers` of stats is `total_answers`.
"""

from collections.abc import Mapping
from typing import Any

CHOICE, MULTIPLE_CHOICE = "choice", "multiple_choice"
FORMER = {
    "kind": "type",
    "option_index": "selected_option",
    "answers_count": "current_responses",
}


def renamed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body or an item under the new names. Where it has both, the new name counts."""
    found = {FORMER.get(name, name): value for name, value in given.items() if FORMER.get(name) not in given}
    if found.get("type") == CHOICE:
        found["type"] = MULTIPLE_CHOICE
    return found


def with_former(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown, with the former names beside the new ones."""
    former = {old: shown[new] for old, new in FORMER.items() if new in shown}
    if "kind" in former:
        former["kind"] = old_type(former["kind"])
    return {**shown, **former}


def old_type(name: str) -> str:
    """Return what a question's type was called."""
    return CHOICE if name == MULTIPLE_CHOICE else name
