"""Requests of an integration to the leads API."""

from typing import Any


def context(method: str, path: str, scope: str) -> dict[str, Any]:
    claims = {"sub": "crm", "cognito:groups": f"[{scope}]"}
    return {
        "http": {"method": method, "path": path},
        "stage": "$default",
        "authorizer": {"jwt": {"claims": claims}},
    }
