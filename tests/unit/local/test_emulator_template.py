"""The emulator is told how each condition turns out, as CloudFormation would find it."""

import pytest

from infra.assembly.short_forms import parse
from infra.lint.refusals import Refused
from infra.lint.resolved import resolved
from local.cloud.emulator_template import ACCOUNT, conditions, taken
from tests.support.template import ROOT

TEMPLATE = (ROOT / "template.yaml").read_text()
BUILT = TEMPLATE.replace(  # as `sam build` writes it
    '  GradualDeployment:\n    Type: String\n    Default: "true"',
    "  GradualDeployment:\n    Type: String\n    Default: 'true'",
)
PARAMETERS: tuple[dict[str, str], ...] = (
    {},
    {"Size": "large"},
    {"CreateStreamDoor": "true", "RedisUrl": "redis://x", "IdentityUrl": "postgresql://x", "Settings": "A=1"},
    {"AvailabilityZones": "a,b,c", "WarehouseUrl": "none"},
)


@pytest.mark.parametrize("given", PARAMETERS)
def test_conditions_are_those_of_the_emulator_s_account(given: dict[str, str]) -> None:
    held = resolved({**given, "AWS::AccountId": ACCOUNT})["/"].conditions
    assert not held["OnAws"]
    assert conditions(TEMPLATE, given) == {
        name: {"Fn::Equals": ["true", "true" if each else "false"]} for name, each in held.items()
    }


def test_nothing_else_but_the_gradual_deployment_is_changed() -> None:
    before, after = parse(BUILT), parse(taken(BUILT, {"Size": "large"}))
    assert after.pop("Conditions") == conditions(BUILT, {"Size": "large"})
    assert before.pop("Conditions").keys() == conditions(BUILT, {}).keys()
    assert after["Parameters"]["GradualDeployment"]["Default"] == "false"
    before["Parameters"]["GradualDeployment"]["Default"] = "false"
    assert after == before


def test_what_is_to_be_changed_must_be_there() -> None:
    with pytest.raises(RuntimeError, match="no default of GradualDeployment"):
        taken(BUILT.replace("  GradualDeployment:", "  Gradual:"), {})


def test_what_the_template_does_not_take_is_refused_as_cloudformation_does() -> None:
    with pytest.raises(Refused, match="there is no parameter OnAws"):
        taken(BUILT, {"OnAws": "false"})
