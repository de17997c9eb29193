"""What a function behind a custom resource answers CloudFormation. Without an answer the stack would hang."""

import json
import urllib.request
from collections.abc import Mapping
from typing import Any

REASON_CHARACTERS_MAX = 1000
ANSWER_SECONDS_MAX = 10


def send_response(
    event: Mapping[str, Any], resource_id: str, data: Mapping[str, str], failed: str = ""
) -> None:
    """Answer a request. data: the resource's attributes. failed: why the deployment must not go on.

    Raises OSError if CloudFormation cannot be reached.
    """
    answer = {
        "Status": "FAILED" if failed else "SUCCESS",
        "PhysicalResourceId": resource_id,
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
        **({"Reason": failed[:REASON_CHARACTERS_MAX]} if failed else {"Data": data}),
    }
    # CloudFormation has signed the URL for an empty content type.
    request = urllib.request.Request(  # noqa: S310 (CloudFormation's own)
        event["ResponseURL"], json.dumps(answer).encode(), {"Content-Type": ""}, method="PUT"
    )
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS_MAX):  # noqa: S310 (likewise)
        pass
