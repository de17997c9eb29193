"""What the nightly run sets up in Redshift: the daily limit of our workgroup, and what analysts may read.

CloudFormation has no resource for the limit. Grants are set each night because each night builds tables anew,
and a dropped table takes its grants with it.
"""

from typing import Any

from analytics.warehouse.warehouse import Warehouse

ROLE = "streakline_analysts"
READABLE = "marts, dimensions, facts"
_FIND_ROLE = f"SELECT role_name FROM svv_roles WHERE role_name = '{ROLE}'"  # noqa: S608 (a constant)
COMPUTE = "serverless-compute"  # measured in RPU hours
REFUSE = "deactivate"  # beyond the limit, refuse queries rather than only say so


def ensure_daily_limit(redshift: Any, workgroup_arn: str, rpu_hours: int) -> bool:
    """Make rpu_hours the workgroup's limit of a day; returns whether anything had to change.

    redshift: a botocore client of redshift-serverless. Raises what botocore raises.
    """
    asked = {"resourceArn": workgroup_arn, "usageType": COMPUTE}
    limits = redshift.list_usage_limits(**asked).get("usageLimits", [])
    daily = [each for each in limits if each["period"] == "daily"]
    if not daily:
        redshift.create_usage_limit(**asked, amount=rpu_hours, period="daily", breachAction=REFUSE)
        return True
    if (daily[0]["amount"], daily[0]["breachAction"]) == (rpu_hours, REFUSE):
        return False
    redshift.update_usage_limit(usageLimitId=daily[0]["usageLimitId"], amount=rpu_hours, breachAction=REFUSE)
    return True


def grant_analysts(warehouse: Warehouse) -> None:
    """Make the role of analysts and let it read what the models make, now and in the nights to come.

    warehouse: of Redshift; the user who runs this also builds the models, because default privileges are of
    the user who creates a table. An admin gives the role to people (sql/README.md).
    Running it again changes nothing. Raises StatementFailed.
    """
    create = [] if warehouse.rows(_FIND_ROLE) else [f"CREATE ROLE {ROLE}"]
    warehouse.run(
        [
            *create,
            f"GRANT USAGE ON SCHEMA {READABLE} TO ROLE {ROLE}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {READABLE} TO ROLE {ROLE}",
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA {READABLE} GRANT SELECT ON TABLES TO ROLE {ROLE}",
        ]
    )
