"""template.yaml as data: so that tests demand of it what the design does, and make tables from it."""

from functools import cache
from typing import Any

from infra.intrinsics import REGION
from infra.stacks import ACCOUNT, PARTITION, Stack, resolve_stacks
from infra.template_text import ROOT, parse
from rules.parts import parameters_of
from tests.support.dynamodb_engine import app_template, table_definition
from tests.support.parts import modules_of_parts

__all__ = ["DEPLOYMENTS", "ROOT", "resources", "stacks_of", "table_definition", "template"]


@cache
def template(name: str = "template.yaml") -> dict[str, Any]:
    """Return a parsed template."""
    return app_template() if name == "template.yaml" else parse((ROOT / name).read_text())


def resources(kind: str) -> dict[str, dict[str, Any]]:
    """Return the resources of a type, by logical id."""
    found = template()["Resources"].items()
    return {name: each for name, each in found if each["Type"] == kind}


# Parameters of what a part may have.
OF_PARTS = {
    name: value for module in modules_of_parts("deployment") for name, value in module.PARAMETERS.items()
}
# The sizes, with what a parameter turns on; two regions; what somebody has who brings all that may be brought; and
# what is left without the parts that may be left out.
DEPLOYMENTS: dict[str, dict[str, str]] = {
    "small": {},
    "standard": {"Size": "standard", **OF_PARTS, "OutgoingWebhooks": "true"},
    "large": {"Size": "large", **OF_PARTS, "OutgoingWebhooks": "told"},
    "two regions": {
        "Size": "standard",
        "Role": "active",
        "PeerRegion": "us-west-2",
        "WitnessRegion": "us-east-2",
        "PeerBuckets": "payloads,lake",
        "OwnDomain": f"api.example.com,Z0123,arn:aws:acm:{REGION}:{ACCOUNT}:certificate/1",
    },
    "own": {
        "OwnVpc": "vpc-0123456789abcdef0/sg-0123456789abcdef0/subnet-0123456789abcdef0,subnet-0123456789abcdef1",
        "RedisUrl": "rediss://cache.example.com:6379",
        "IdentityUrl": f"arn:{PARTITION}:secretsmanager:{REGION}:{ACCOUNT}:secret:leads-a1b2c3",
        "OwnWarehouse": f"redshift://mine/dev,arn:aws:redshift-serverless:{REGION}:{ACCOUNT}:workgroup/mine,"
        f"arn:aws:iam::{ACCOUNT}:role/copy",
        "JwtIssuer": "https://id.example.com/",
        "JwtAudience": "api",
        "SignInClientId": "page",
        "AllowedOrigins": "https://app.example.com",
        "AlarmTopicArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:alarms",
        "MonthlyBudgetDollars": "50",
    },
    "without leads and questions": parameters_of(()),
}


@cache
def stacks_of(deployment: str) -> dict[str, Stack]:
    """Return the stacks of one of the deployments."""
    return resolve_stacks(DEPLOYMENTS[deployment])
