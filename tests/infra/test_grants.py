"""A function may call what its code calls: no client without a statement, no secret in the settings without one."""

import pytest

from infra.layer.slim import SERVICES
from tests.support.declared import FUNCTIONS, listed, logical_ids, properties, statements
from tests.support.module_graph import services_of
from tests.support.template import template

SECRETS = {"AWS::SecretsManager::Secret", "AWS::SNS::Topic", "AWS::KinesisFirehose::DeliveryStream"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_layers_have_the_models_of_every_service_that_a_function_has_a_client_of(name: str) -> None:
    used = services_of(properties(name)["Handler"].rpartition(".")[0])
    assert set(used) <= SERVICES, "infra/layer/slim.py leaves it out of the layers"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_may_use_every_secret_topic_and_delivery_stream_that_its_settings_name(name: str) -> None:
    """Tables, queues and buckets: test_permissions.py."""
    known = template()["Resources"]
    granted = set().union(*(logical_ids(listed(each["Resource"])) for each, _ in statements(name)))
    for variable, value in properties(name)["Environment"]["Variables"].items():
        named = {each for each in logical_ids(value) if known.get(each, {}).get("Type") in SECRETS}
        assert named <= granted, (
            f"{name}: {variable} names {sorted(named - granted)}, and no statement of its Policies (infra/app)"
            " allows anything on it"
        )
