"""The daily limit of Redshift Serverless: CloudFormation has no resource for it, so the nightly run sets it."""

from typing import Any

KIND = "serverless-compute"  # measured in RPU hours
WANTED = {"breachAction": "deactivate"}  # refuse further queries, rather than only say so


def ensure_daily_limit(redshift: Any, workgroup_arn: str, rpu_hours: int) -> bool:
    """Make rpu_hours the workgroup's limit of a day; returns whether anything had to change.

    redshift: a botocore client of redshift-serverless. Raises what botocore raises.
    """
    answer = redshift.list_usage_limits(resourceArn=workgroup_arn, usageType=KIND)
    daily = [each for each in answer["usageLimits"] if each["period"] == "daily"]
    if not daily:
        redshift.create_usage_limit(
            resourceArn=workgroup_arn, usageType=KIND, amount=rpu_hours, period="daily", **WANTED
        )
        return True
    if daily[0]["amount"] == rpu_hours and daily[0]["breachAction"] == WANTED["breachAction"]:
        return False
    redshift.update_usage_limit(usageLimitId=daily[0]["usageLimitId"], amount=rpu_hours, **WANTED)
    return True
