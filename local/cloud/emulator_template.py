"""What the emulator cannot do with a built template is done beforehand.

It expands SAM's resources with the defaults of parameters, whatever values are given. Its conditions know no
pseudo parameter, no mapping and no Fn::Join.
"""

import json
from collections.abc import Mapping
from typing import Any

from infra.assembly.short_forms import parse
from infra.lint import refusals
from infra.lint.intrinsics import Scope, holds, spelled

ACCOUNT = "000000000000"


def taken(built: str, given: Mapping[str, str]) -> str:
    """Return a built template as the emulator takes it, as JSON. given: parameters, by name.

    Raises RuntimeError if what it changes is not found, infra.lint's Refused for parameters that the template
    does not take.
    """
    template = parse(built)
    try:
        template["Parameters"]["GradualDeployment"]["Default"] = "false"  # it refuses resources of CodeDeploy
        template["Conditions"] = conditions(template, given)
    except KeyError as missing:
        raise RuntimeError(f"the built template has no {missing}") from missing
    return json.dumps(template)


def as_json(built: str) -> str:
    """Return a template as JSON: the SAM CLI reads it dozens of times, and YAML takes it seconds each."""
    return json.dumps(parse(built))


def allowed_to_pages(template: str) -> dict[str, Any]:
    """Return what the API allows to pages of other origins, if it allows any: its CorsConfiguration."""
    _, allowed, _ = parse(template)["Resources"]["Api"]["Properties"]["CorsConfiguration"]["Fn::If"]
    return {name: value for name, value in allowed.items() if name != "AllowOrigins"}


def conditions(template: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, object]:
    """Return the template's conditions, each as a comparison that tells how it turns out."""
    values = refusals.values(template["Parameters"], given)
    scope = Scope({**values, "AWS::AccountId": ACCOUNT}, template.get("Mappings", {}), template["Conditions"])
    return {name: {"Fn::Equals": ["true", spelled(holds(name, scope))]} for name in scope.conditions}
