"""What a cancelled DynamoDB transaction says of each of its actions."""

from typing import Any

from adapters.platform.aws import THROTTLES

REFUSED = "ConditionalCheckFailed"


def reasons_of(error: Any, actions: int) -> list[dict[str, Any]]:
    """Return a reason for each action: its Code and, if its condition was refused, the old Item.

    Raises the error itself if neither a refused condition nor a throttle is the cause: no attempt would help.
    """
    reasons: list[dict[str, Any]] = error.response.get("CancellationReasons", [])
    codes = {each.get("Code") for each in reasons}
    if len(reasons) != actions or not codes & {REFUSED, *THROTTLES}:
        raise error
    return reasons
