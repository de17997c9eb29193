"""What the nightly run sets up in Redshift: the daily limit of a workgroup, the role of analysts."""

from typing import Any

import botocore.session
import pytest
from botocore.stub import Stubber

from analytics.warehouse.warehouse import ensure_daily_limit, grant_analysts

ARN = "arn:aws:redshift-serverless:eu-west-1:123456789012:workgroup/5f7c"
ASKED = {"resourceArn": ARN, "usageType": "serverless-compute"}


def daily(amount: int, action: str = "deactivate") -> dict[str, Any]:
    return {"usageLimitId": "u-1", "period": "daily", "amount": amount, "breachAction": action}


MONTHLY = {"usageLimitId": "u-2", "period": "monthly", "amount": 1, "breachAction": "log"}


@pytest.mark.parametrize(
    ("found", "call", "sent"),
    [
        ([], "create_usage_limit", {**ASKED, "amount": 4, "period": "daily", "breachAction": "deactivate"}),
        (
            [MONTHLY],
            "create_usage_limit",
            {**ASKED, "amount": 4, "period": "daily", "breachAction": "deactivate"},
        ),
        (
            [daily(9)],
            "update_usage_limit",
            {"usageLimitId": "u-1", "amount": 4, "breachAction": "deactivate"},
        ),
        (
            [MONTHLY, daily(4, "log")],
            "update_usage_limit",
            {"usageLimitId": "u-1", "amount": 4, "breachAction": "deactivate"},
        ),
        ([daily(4), MONTHLY], "", {}),
    ],
)
def test_the_daily_limit_is_made_changed_or_left(
    found: list[dict[str, Any]], call: str, sent: dict[str, Any]
) -> None:
    client = botocore.session.get_session().create_client(
        "redshift-serverless", "eu-west-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    with Stubber(client) as stubber:  # it also holds each call against the service's own model
        stubber.add_response("list_usage_limits", {"usageLimits": found} if found else {}, ASKED)
        if call:
            stubber.add_response(call, {"usageLimit": daily(4)}, sent)
        assert ensure_daily_limit(client, ARN, 4) is bool(call)
        stubber.assert_no_pending_responses()


class RecordingWarehouse:
    """A warehouse that knows some roles and records the statements that it runs."""

    def __init__(self, roles: list[str]) -> None:
        self.roles, self.ran = roles, list[str]()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [{"role_name": each} for each in self.roles if f"'{each}'" in sql]

    def run(self, statements: list[str]) -> None:
        self.ran += statements


@pytest.mark.parametrize(("roles", "created"), [([], 1), (["streakline_analysts"], 0), (["others"], 1)])
def test_analysts_may_read_what_the_models_make_now_and_later(roles: list[str], created: int) -> None:
    warehouse: Any = RecordingWarehouse(roles)
    grant_analysts(warehouse)
    assert sum(each.startswith("CREATE ROLE") for each in warehouse.ran) == created
    grants = warehouse.ran[created:]
    assert [each.split(" ON ")[0] for each in grants] == [
        "GRANT USAGE",
        "GRANT SELECT",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA marts, dimensions, facts GRANT SELECT",
    ]
    assert all(each.endswith("TO ROLE streakline_analysts") for each in grants)
