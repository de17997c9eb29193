"""Compares the CPU of a fresh process that imports a handler and makes its clients with boto3's client alone.

Both import from this environment, with compiled files. The variants run in turn; each round gives a ratio.
"""

import os
import subprocess
import sys
from collections.abc import Iterator

from bench.deployed import handler_modules
from bench.figure import Figure, median_text, ratio
from local.paths import ROOT
from tests.support.dynamodb_engine import Engine

ROUNDS = int(os.environ.get("REPEATS", "5"))
# Above 1, because a function makes its dataclasses when it begins: the processor 56, in a fifth of the time
# that its import takes, the API of users 118. The door of events shows profiles, too, to whom it answers at
# once: with levels, achievements and repairs. That is a tenth of a second of CPU, once a process.
BUDGETS = {"EngagementFunction": 1.3, "EventsApiFunction": 1.8, "UsersApiFunction": 1.95}
CHILD = "import time; started = time.process_time(); {code}; print((time.process_time() - started) * 1000)"
BOTO3_ALONE = "import boto3; boto3.client('dynamodb')"


def run() -> Iterator[Figure]:
    """Yield one ratio for each handler."""
    modules = {function: handler_modules()[function] for function in BUDGETS}
    code_by_variant = {function: f"import {name}; {name}._parts()" for function, name in modules.items()}
    code_by_variant["boto3"] = BOTO3_ALONE
    rounds = [
        {variant: _cpu_milliseconds(code) for variant, code in code_by_variant.items()}
        for _ in range(ROUNDS + 1)
    ]
    del rounds[0]  # it fills the caches of files
    times = {variant: [each[variant] for each in rounds] for variant in code_by_variant}
    for function, budget in BUDGETS.items():
        detail = f"{median_text(times[function], 0)} against {median_text(times['boto3'], 0)} ms"
        claim = f"cold start of {modules[function]}"
        yield ratio(claim, times[function], times["boto3"], "<=", budget, detail)


def _cpu_milliseconds(code: str) -> float:
    engine = Engine("", "https://sqs.us-east-1.amazonaws.com/000000000000/failures")
    environment = {**os.environ, **engine.environment()}
    del environment["AWS_ENDPOINT_URL"]  # clients are made as on AWS; none of them sends a request
    # Images of Python set it: then what is compared would be the compiler.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    child = subprocess.run(
        [sys.executable, "-c", CHILD.format(code=code)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(child.stdout)
