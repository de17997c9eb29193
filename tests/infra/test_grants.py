"""A function may call what its code calls: no client without a statement, no setting that nothing is allowed on."""

from typing import Any

import pytest

from tests.support.grants import actions, referred, services_in, services_of, statements
from tests.support.template import resources, template

FUNCTIONS = resources("AWS::Serverless::Function")
STORES = (
    *("AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::S3::Bucket"),
    *("AWS::SecretsManager::Secret", "AWS::KinesisFirehose::DeliveryStream"),
)
# Settings that only name a resource: nothing is called on it.
NAMED_ONLY = {
    ("PublisherFunction", "_TABLE"): "tells by the table's name whose stream a record came from",
}


def prefixes(function: dict[str, Any]) -> set[str]:
    return {
        action.partition(":")[0]
        for each in statements(function["Properties"].get("Policies", []))
        for action in actions(each)
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_may_call_every_service_that_its_code_has_a_client_of(name: str) -> None:
    module = FUNCTIONS[name]["Properties"]["Handler"].rpartition(".")[0]
    allowed = prefixes(FUNCTIONS[name])
    missing = {service: at for service, at in services_of(module).items() if service not in allowed}
    assert not missing, f"{name}: no statement of its Policies (infra/app) allows {missing}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_may_do_something_with_every_resource_that_its_settings_name(name: str) -> None:
    properties, known = FUNCTIONS[name]["Properties"], template()["Resources"]
    granted = {
        each
        for statement in statements(properties.get("Policies", []))
        for each in referred(statement["Resource"])
    }
    for variable, value in properties["Environment"]["Variables"].items():
        if any(name == function and variable.endswith(end) for function, end in NAMED_ONLY):
            continue
        stores = {each for each in referred(value) if known.get(each, {}).get("Type") in STORES}
        assert stores <= granted, (
            f"{name}: {variable} names {sorted(stores - granted)}, and no statement of its Policies (infra/app)"
            " allows anything on it"
        )


def test_a_client_is_found_in_code() -> None:
    assert services_in(
        'def f():\n    return X(lambda: client("secretsmanager"), client("sns", attempts=1))'
    ) == {
        "secretsmanager",
        "sns",
    }


def test_what_is_reached_has_the_subscription_routes_pushes() -> None:
    assert services_of("ingest.questions.questions_api")["sns"] == "ingest.questions.subscriptions"
