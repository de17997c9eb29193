"""Reads the parameter Settings at each deployment, and a new stack's name (a custom resource).

The template takes each function's settings from the attributes of this resource. A value that is not allowed
fails the deployment with a sentence. The resource's id is a digest of all parameters and of what template and
layers are made of: infra/app/release.yaml says what for.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from adapters.logs import Logger
from adapters.platform.custom_resources import send_response
from adapters.settings.choices import SettingRefused, attributes_of, settings_of

logger = Logger(service="release")
# Names of a stack's resources begin with its own. A cache's has 40 characters at most, and we add `-cache`. A
# proxy of RDS takes no two hyphens in a row. A bucket is in small letters, and a role finds it by that name.
STACK_NAME, STACK_NAME_MAX = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*"), 34


class StackNameRefused(ValueError):
    """A stack cannot have this name; the message says why."""


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> None:
    """Lambda entry: a CloudFormation request. It always sends an answer."""
    properties = event["ResourceProperties"]
    data: dict[str, str] = {}
    failed = ""
    try:
        if event["RequestType"] != "Delete":  # whatever they are, they must not hinder it
            data = attributes_of(settings_of(properties["Parameters"]["Settings"]))
        if event["RequestType"] == "Create":
            check_stack_name(event["StackId"].split("/")[1])
    except (SettingRefused, StackNameRefused) as refusal:
        logger.warning("refused", extra={"reason": str(refusal)})
        failed = str(refusal)
    send_response(event, digest(properties), data, failed)


def check_stack_name(name: str) -> None:
    """Raise StackNameRefused if a name would follow that AWS or a role of ours does not take."""
    if len(name) > STACK_NAME_MAX or not STACK_NAME.fullmatch(name):
        raise StackNameRefused(
            f"the stack's name {name} must be of small letters, digits and single hyphens between them, "
            f"at most {STACK_NAME_MAX} characters: names of its resources begin with it"
        )


def digest(properties: Mapping[str, Any]) -> str:
    """Return a digest of a resource's properties, whatever their order."""
    return hashlib.sha256(json.dumps(properties, sort_keys=True).encode()).hexdigest()
