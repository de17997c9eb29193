"""The whole API in the process, on an engine: environment, queues, secret, and no memory of other tests."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from tests.support.engine import Engine
from tests.support.exports import made_in_process
from tests.support.gateway import CLOSED
from tests.support.memory import forget
from tests.support.parts import modules_of_parts


@contextmanager
def stack(engine: Engine, redis_url: str, **settings: str) -> Iterator[None]:
    """Let every function of the gateway and the pipeline run with the engine's settings."""
    secret = engine.client("secretsmanager").create_secret(Name=f"key-{uuid4()}", SecretString="k" * 32)
    queues = {"EngagementFailures": engine.queue_url, "AnswersFailures": engine.queue_url}
    environment = {
        **engine.environment(redis_url),
        "FINGERPRINT_SECRET_ARN": secret["ARN"],
        "RECEIPT_SECRET_ARN": secret["ARN"],
        "QUEUE_URLS": json.dumps(queues),
        "OIDC_AUTHORITY": "",
        "OIDC_CLIENT_ID": "",
        "OIDC_ORIGINS": "",
        **settings,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        for module in modules_of_parts("site"):
            module.prepare(patch)
        made_in_process(patch)
        forget()
        CLOSED.clear()
        yield
        CLOSED.set()
    forget()
