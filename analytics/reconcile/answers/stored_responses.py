"""Responses that contradict themselves or each other: changed by hand in what the lake has no copy of."""

from collections.abc import Sequence

from adapters.platform.items import Item, item
from adapters.questions.response_store import COUNTED
from rules.questions.responses import Response, to_item


def contradiction(found: Sequence[tuple[Item, Response]]) -> str:
    """Return what is wrong with all answers of one person, in words; "" if nothing is."""
    for stored, response in found:
        if wrong := _changed(stored, response):
            return f"{' and '.join(wrong)} is not as it was written, in the answer to {response.question_id}"
    return ""


def _changed(stored: Item, response: Response) -> list[str]:
    """Return the attributes that no process writes so."""
    expected = item(to_item(response))
    names = stored.keys() | expected.keys()
    wrong = sorted(name for name in names - {COUNTED} if stored.get(name) != expected.get(name))
    # An answer without a zone of its own counts by UTC, also for whoever has set a zone (rule 1).
    return [*wrong, *(["zone"] if response.zone != (response.timezone or "UTC") else [])]
