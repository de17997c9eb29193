"""CPU of a fresh process that imports a handler and makes its clients, against one that makes boto3's client.

Both import from this environment, with compiled files. Variants take turns, and a ratio is that of one round.
"""

import os
import subprocess
import sys
from collections.abc import Iterator

from bench.deployed import handler_modules
from bench.figure import Figure, ratio, shown
from local.paths import ROOT
from tests.support.dynamodb_engine import Engine

ROUNDS = int(os.environ.get("REPEATS", "5"))
BUDGETS = {"EngagementFunction": 1.0, "EventsApiFunction": 1.6, "UsersApiFunction": 1.6}
CHILD = "import time; started = time.process_time(); {code}; print((time.process_time() - started) * 1000)"
STOCK = "import boto3; boto3.client('dynamodb')"


def _cpu(code: str) -> float:
    """Return the CPU milliseconds of one fresh process."""
    environment = Engine("", "https://sqs.us-east-1.amazonaws.com/000000000000/failures").environment()
    del environment["AWS_ENDPOINT_URL"]
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(code=code)],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout)


def run() -> Iterator[Figure]:
    """Yield the ratios."""
    modules = {name: handler_modules()[name] for name in BUDGETS}
    ways = {name: f"import {each}; {each}._parts()" for name, each in modules.items()} | {"stock": STOCK}
    rounds = [{name: _cpu(code) for name, code in ways.items()} for _ in range(ROUNDS + 1)][1:]
    cost = {name: [each[name] for each in rounds] for name in ways}
    for name, budget in BUDGETS.items():
        detail = f"{shown(cost[name], 0)} against {shown(cost['stock'], 0)} ms"
        yield ratio(f"cold start of {modules[name]}", cost[name], cost["stock"], "<=", budget, detail)
