"""Reads the parameter Settings when the stack is created or updated (a custom resource).

The template takes each function's settings from the attributes of this resource. A value that is not allowed
fails the deployment with a sentence. The resource's id is a digest of all parameters and of what template and
layers are made of: infra/app/release.yaml says what for.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from adapters.logs import Logger
from adapters.platform.custom_resources import send_response
from adapters.settings.choices import SettingRefused, attributes_of, settings_of

logger = Logger(service="release")


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> None:
    """Lambda entry: a CloudFormation request. It always sends an answer."""
    properties = event["ResourceProperties"]
    data: dict[str, str] = {}
    failed = ""
    try:
        if event["RequestType"] != "Delete":  # whatever they are, they must not hinder it
            data = attributes_of(settings_of(properties["Parameters"]["Settings"]))
    except SettingRefused as refusal:
        logger.warning("refused", extra={"reason": str(refusal)})
        failed = str(refusal)
    send_response(event, digest(properties), data, failed)


def digest(properties: Mapping[str, Any]) -> str:
    """Return a digest of a resource's properties, whatever their order."""
    return hashlib.sha256(json.dumps(properties, sort_keys=True).encode()).hexdigest()
