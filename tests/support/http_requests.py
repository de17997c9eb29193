"""Requests as API Gateway hands them to a function, and what the tests of the HTTP API have in common."""

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import strategies as st

from ingest.web.caller import ApiError

VALID = {"idempotency_key": "k", "event_type": "CHECK_IN", "occurred_at": "2026-06-01T12:00:00Z"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
near_events = st.fixed_dictionaries({}, optional=dict.fromkeys([*VALID, "timezone", "user_id"], json_values))


def sent(text: str) -> dict[str, Any]:
    return {"body": text}


def query_refusal(read: Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as refused:
        read()
    return refused.value.status, refused.value.code


BAD_PARAMETER = (400, "invalid_parameter")


def cursor(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


def called(app_handler: Any, method: str, path: str, **more: Any) -> dict[str, Any]:
    event = {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {},
        "requestContext": {
            "http": {"method": method, "path": path},
            "stage": "$default",
            "authorizer": {"jwt": {"claims": {"sub": "u"}}},
        },
        **more,
    }
    context = SimpleNamespace(
        function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
    )
    answer: dict[str, Any] = app_handler(event, context)
    return answer
