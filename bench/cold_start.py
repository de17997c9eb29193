"""CPU of a fresh process that imports a handler and makes its clients, compared with a stock boto3.

Ours: the dependency layer and the function as `sam build` makes them for this Python, with .pyc files. Stock:
boto3 of the locked version as an installer leaves it, compiled. The interpreter's own start is not counted
for either. Variants take turns, and a ratio is that of one round: a machine that is slow for a while is so
for both.
"""

import compileall
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from bench.figure import Figure, ratio, shown
from local.cloud.processes import uv
from local.paths import ROOT
from tests.support.dynamodb_engine import Engine

ROUNDS = int(os.environ.get("REPEATS", "11"))
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
MACHINE = "aarch64" if os.uname().machine in ("arm64", "aarch64") else "x86_64"
STREAMS = {
    "EngagementFunction": "processors.engagement",
    "EventsStreamFunction": "ingest.engagement.events_stream",
}
APIS = {
    "EventsApiFunction": "ingest.engagement.events_api",
    "UsersApiFunction": "ingest.engagement.users_api",
}
BUDGETS = dict.fromkeys(STREAMS.values(), 1.0) | dict.fromkeys(APIS.values(), 1.6)
STOCK = "import boto3; boto3.client('dynamodb')"
# Prints CPU milliseconds. -I -S keep this environment's packages and Python variables out.
CHILD = (
    "import sys, time; sys.path[:0] = {path!r}; started = time.process_time(); {code}; "
    "print((time.process_time() - started) * 1000)"
)
# The variables that a function has on AWS. The benchmark calls none of these addresses.
ENVIRONMENT = {
    **Engine("", "https://sqs.us-east-1.amazonaws.com/000000000000/failures").environment(
        "redis://cache.internal:6379/0"
    ),
    "AWS_SESSION_TOKEN": "bench",
    "AWS_REGION": "us-east-1",
    "AWS_LAMBDA_FUNCTION_NAME": "bench",
    "PYTHONTZPATH": "",
    "POWERTOOLS_LOG_LEVEL": "INFO",
}
del ENVIRONMENT["AWS_ENDPOINT_URL"]
Variant = tuple[str, Sequence[Path]]  # code, and where it finds its modules


def run() -> Iterator[Figure]:
    """Yield the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        variants = _variants(Path(folder))
        for variant in variants.values():
            _cpu(variant)
        rounds = [{name: _cpu(each) for name, each in variants.items()} for _ in range(ROUNDS)]
    cost = {name: [each[name] for each in rounds] for name in variants}
    for module, budget in BUDGETS.items():
        detail = f"{shown(cost[module], 0)} against {shown(cost['stock'], 0)} ms"
        yield ratio(f"cold start of {module}", cost[module], cost["stock"], "<=", budget, detail)


def _variants(folder: Path) -> dict[str, Variant]:
    """Build the two variants."""
    _stock(folder / "stock")
    _make("DependenciesLayer", folder / "layer")
    variants: dict[str, Variant] = {"stock": (STOCK, [folder / "stock"])}
    for name, module in {**STREAMS, **APIS}.items():
        _make(name, folder / name)
        path = [folder / name, folder / "layer" / "python"]
        variants[module] = (f"import {module}; {module}._parts()", path)
    return variants


def _stock(target: Path) -> None:
    packages = [f"{name}=={version(name)}" for name in ("boto3", "botocore")]
    command = [uv(), "pip", "install", "--quiet", "--python", sys.executable, "--target", str(target)]
    subprocess.run([*command, *packages], check=True)
    compileall.compile_dir(target, quiet=2, workers=2)


def _make(name: str, target: Path) -> None:
    """Build one function or layer as `sam build` does."""
    target.mkdir()
    tools = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    env = {"PATH": tools, "LAYER_PYTHON": PYTHON, "LAYER_PLATFORM": f"{MACHINE}-manylinux_2_28"}
    command = ["make", "--silent", f"build-{name}", f"ARTIFACTS_DIR={target}"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, check=True)


def _cpu(variant: Variant, environment: Mapping[str, str] = ENVIRONMENT) -> float:
    """Return the CPU milliseconds of one fresh process."""
    code, path = variant
    child = CHILD.format(code=code, path=[str(each) for each in path])
    command = [sys.executable, "-I", "-S", "-c", child]
    done = subprocess.run(command, env=dict(environment), stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)
