"""What the emulator cannot do with a built template is done beforehand.

It expands SAM's resources with the defaults of parameters, whatever values are given. Its conditions know no
pseudo parameter, no mapping and no Fn::Join.
"""

import json
import re
from collections.abc import Mapping

from infra.assembly.short_forms import parse
from infra.lint import refusals
from infra.lint.intrinsics import Scope, holds, spelled

ACCOUNT = "000000000000"
GRADUAL = re.compile(r"(  GradualDeployment:\n    Type: String\n    Default: )'true'")
CONDITIONS = re.compile(r"(?m)^Conditions:\n(?: .*\n)+")


def taken(built: str, given: Mapping[str, str]) -> str:
    """Return a built template as the emulator takes it. given: parameters, by name.

    Raises RuntimeError if what it changes is not found, infra.lint's Refused for parameters that the template
    does not take.
    """
    at_once, defaults = GRADUAL.subn(r"\g<1>'false'", built)  # it refuses resources of CodeDeploy
    told = json.dumps({"Conditions": conditions(built, given)})
    changed, sections = CONDITIONS.subn(told[1:-1].replace('"Conditions":', "Conditions:", 1) + "\n", at_once)
    if (defaults, sections) != (1, 1):
        raise RuntimeError("the built template has no default of GradualDeployment, or no conditions")
    return changed


def conditions(built: str, given: Mapping[str, str]) -> dict[str, object]:
    """Return the template's conditions, each as a comparison that tells how it turns out."""
    template = parse(built)
    values = refusals.values(template["Parameters"], given)
    scope = Scope({**values, "AWS::AccountId": ACCOUNT}, template.get("Mappings", {}), template["Conditions"])
    return {name: {"Fn::Equals": ["true", spelled(holds(name, scope))]} for name in scope.conditions}
