"""What a cancelled DynamoDB transaction says of each of its actions."""

from typing import Any

from adapters.platform.aws import THROTTLES

REFUSED = "ConditionalCheckFailed"


def reasons_of(error: Any, actions: int) -> list[dict[str, Any]]:
    """Return one reason an action, each with its Code and, for a refused condition, the old Item.

    Raises the error itself if nothing was refused and no later attempt can help.
    """
    reasons: list[dict[str, Any]] = error.response.get("CancellationReasons", [])
    codes = {each.get("Code") for each in reasons}
    if len(reasons) != actions or not codes & {REFUSED, *THROTTLES}:
        raise error
    return reasons
