"""Which function calls which action of AWS on what: noted whenever a test runs code below a function's handler.

tests/infra/calls.json has all of these calls. A test of tests/integration that sees another one fails, and names it;
tests/infra/test_calls.py holds each against the function's role and network, as deployments of all sizes have them.
A resource is named by the variable that the function has it from:

    dynamodb:Query RESPONSES_TABLE/index/ByFingerprint
    dynamodb:PutItem ERASURES_TABLE[journal]                leading keys, where the role has a condition on them
    s3:PutObject LAKE_BUCKET/runs/*/without_raw/*           a part of a key that no policy names is *
    sqs:SendMessage FAILURE_QUEUE_URL|SHIPMENT_QUEUE_URL    one of these: the test gives both one value
    dynamodb:PutItem TABLES.BPEvents                        of JSON, the value under this name
    redshift-data:DescribeStatement                         nothing narrower

CALLS=write adds what it sees to the file: `CALLS=write pytest tests/integration`. Empty it first to forget what is gone.
"""

import fcntl
import json
import os
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from typing import Any

import botocore

from adapters.platform.objects import FolderObjects
from tests.support.declared import FUNCTIONS, listed, logical_ids, properties, statements
from tests.support.dynamodb_engine import CONSTANTS
from tests.support.template import ROOT, resources, template

FILE = ROOT / "tests" / "infra" / "calls.json"
HANDLERS = {each["Properties"]["Handler"].rpartition(".")[0]: name for name, each in FUNCTIONS.items()}
# The parameter of a call that names the resource, and how the variables end that such a name comes from.
NAMES = {
    "DatabaseName": ("GLUE_DATABASE",),
    "TableName": ("_TABLE", "TABLES", "REGION_REGISTER"),
    "Bucket": ("_BUCKET",),
    "QueueUrl": ("_QUEUE_URL", "QUEUE_URLS"),
    "TopicArn": ("_TOPIC_ARN",),
    "PlatformApplicationArn": ("PLATFORM_APPLICATION_ARN",),
    "SecretId": ("_SECRET_ARN", "_SECRET_PREFIX", "_URL"),
    "DeliveryStreamName": ("_DELIVERY_STREAM",),
    "FunctionName": ("_FUNCTION",),
    "EventBusName": ("EVENT_BUS_NAME",),
    "resourceArn": ("IDENTITY_URL", "WAREHOUSE_WORKGROUP_ARN"),
    "WorkgroupName": ("WAREHOUSE_URL",),
}
# Calls for which AWS asks for another permission than their own name.
ACTIONS = {
    "HeadObject": "GetObject",
    "ListObjectsV2": "ListBucket",
    "ListObjectVersions": "ListBucketVersions",
    "ListMultipartUploads": "ListBucketMultipartUploads",
    "DeleteObjects": "DeleteObject",
    "Invoke": "InvokeFunction",
    "PublishBatch": "Publish",
    "SendMessageBatch": "SendMessage",
    "DeleteMessageBatch": "DeleteMessage",
}
ANYWHERE = -1
TRANSACTED = {"ConditionCheck": "ConditionCheckItem"}  # others: Put is PutItem
PARTIQL = re.compile(r'\s*(INSERT|UPDATE|DELETE|SELECT)\b.*?"(\w[\w.-]*)"', re.DOTALL)
FOLDER_ACTIONS = {
    **dict.fromkeys(("list", "below"), ("ListBucket",)),
    **dict.fromkeys(("get", "save", "link", "tail", "part", "etag"), ("GetObject",)),
    "put": ("PutObject",),
    "put_if": ("PutObject", "GetObject"),
    "delete": ("DeleteObject",),
    "delete_if": ("DeleteObject", "GetObject"),
}
Asked = tuple[str, str, str, str]  # service:Action, parameter, the resource's name in it, what follows that

# What has been noted already, as it was asked: most calls are repeated.
_past: set[tuple[str, str, str, str]] = set()
_seen: dict[str, set[str]] = defaultdict(set)
_thread = threading.local()


def known() -> dict[str, list[str]]:
    """The calls of the file, by function."""
    with FILE.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        found: dict[str, list[str]] = json.load(file)
    return found


def seen() -> dict[str, set[str]]:
    """What has been called since the last time, by function."""
    found = dict(_seen)
    _seen.clear()
    _past.clear()
    return found


def unknown(found: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """What of these calls the file does not have. It is added there if CALLS=write."""
    listed_calls = known() if found else {}
    lacking = {
        name: sorted(call for call in calls if not _covers(listed_calls.get(name, ()), call))
        for name, calls in found.items()
    }
    lacking = {name: calls for name, calls in lacking.items() if calls}
    if lacking and os.environ.get("CALLS") == "write":
        _add(lacking)
        return {}
    return lacking


def _covers(calls: Iterable[str], call: str) -> bool:
    """Whether a call is among others, or is of an object below a folder of which one of them reads any object.

    Whether an object lies there at that moment depends on what else the process has tested. A role that allows the
    folder's any object allows this one: the * of a policy goes over slashes.
    """
    return any(call == each or (each.endswith("/*") and call.startswith(each[:-1])) for each in calls)


def _add(found: Mapping[str, Iterable[str]]) -> None:
    """Other processes of the same run add theirs."""
    with FILE.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = json.load(file)
        names = sorted({*before, *found})
        after = {name: sorted({*before.get(name, ()), *found.get(name, ())}) for name in names}
        file.seek(0)
        file.truncate()
        file.write(json.dumps(after, indent=2) + "\n")


def record_calls() -> None:
    """Note the calls of all clients that this process makes from now on, and of folders that stand for buckets."""
    botocore.register_initializer(lambda session: session.register("provide-client-params", _note_call))
    for name, actions in FOLDER_ACTIONS.items():
        setattr(FolderObjects, name, _noted(getattr(FolderObjects, name), actions))
    submit = ThreadPoolExecutor.submit

    def submitted(self: Any, work: Any, /, *args: Any, **more: Any) -> Any:
        function = _function()

        def run() -> Any:
            _thread.function = function
            return work(*args, **more)

        return submit(self, run)

    setattr(ThreadPoolExecutor, "submit", submitted)  # noqa: B010 (a method is replaced)


def _function() -> str:
    """The function whose code is being run; "" if there is none, or if a test's own code is in between."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module in HANDLERS:
            return HANDLERS[module]
        if module.startswith("tests.") and module != __name__:
            return ""
        frame = frame.f_back  # type: ignore[assignment]  # None is the end
    return getattr(_thread, "function", "")


def _note_call(**event: Any) -> None:
    if function := _function():
        model, params = event["model"], event["params"]
        for each in asked(model.service_model.signing_name, model.name, params):
            _note(function, *each)


def _noted(method: Any, actions: Iterable[str]) -> Any:
    @wraps(method)
    def noted(self: FolderObjects, key: Any, *args: Any) -> Any:
        if function := _function():
            key = key if isinstance(key, str) else list(key)
            bucket = "ROOTS_BUCKET" if self.root.name == "roots" else "LAKE_BUCKET"
            for action in actions:
                for each in ("",) if action == "ListBucket" else listed(key):
                    _note(function, f"s3:{action}", "Bucket", CONSTANTS[bucket], f"/{each}" if each else "")
        return method(self, key, *args)

    return noted


def asked(service: str, operation: str, params: Mapping[str, Any]) -> Iterator[Asked]:
    """Give what a call needs to be allowed."""
    action = f"{service}:{ACTIONS.get(operation, operation)}"
    if operation == "CreateSecret":
        params = {"SecretId": params["Name"]}
    elif operation == "CreateDatabase":
        params = {"DatabaseName": params["DatabaseInput"]["Name"]}
    if service == "dynamodb":
        yield from _of_tables(operation, params)
    elif service == "s3":
        yield from _of_objects(action, params)
    elif "TargetArn" in params or "EndpointArn" in params:  # of a phone; SNS asks about its application
        yield action, "", "", "app/*"
        yield action, "", "", "endpoint/*"
    else:
        for each in params["Entries"] if service == "events" else [params]:
            parameter = next((name for name in NAMES if name in each), "")
            yield action, parameter, each.get(parameter, ""), ""
        if secret := params.get("secretArn") or params.get("SecretArn"):  # a Data API reads it for the caller
            yield "secretsmanager:GetSecretValue", "SecretId", secret, ""


def _of_objects(action: str, params: Mapping[str, Any]) -> Iterator[Asked]:
    bucket, objects = (
        params["Bucket"],
        [params] if "Key" in params else params.get("Delete", {}).get("Objects", ()),
    )
    for each in objects:
        yield action + "Version" * ("VersionId" in each), "Bucket", bucket, f"/{each['Key']}"
        if params.get("IfMatch"):  # S3 reads what is there
            yield "s3:GetObject", "Bucket", bucket, f"/{each['Key']}"
    if not objects:
        yield action, "Bucket", bucket, ""


def _of_tables(operation: str, params: Mapping[str, Any]) -> Iterator[Asked]:
    for each in params.get("TransactItems", ()):
        ((kind, inner),) = each.items()
        table, leading = (
            inner["TableName"],
            _leading(inner["TableName"], inner.get("Item") or inner.get("Key") or {}),
        )
        yield f"dynamodb:{TRANSACTED.get(kind, f'{kind}Item')}", "TableName", table, leading
    texts = (
        [params] if "Statement" in params else params.get("Statements", params.get("TransactStatements", ()))
    )
    for each in texts:
        found = PARTIQL.match(each["Statement"])
        assert found, f"which table is it? {each['Statement']}"
        yield f"dynamodb:PartiQL{found[1].capitalize()}", "TableName", found[2], ""
    for table, some in params.get("RequestItems", {}).items():
        for each in some["Keys"] if isinstance(some, dict) else some:
            item = each if isinstance(some, dict) else next(iter(each.values()))
            leading = _leading(table, item.get("Item") or item.get("Key") or item)
            yield f"dynamodb:{operation}", "TableName", table, leading
    if table := params.get("TableName"):
        leading = _leading(table, params.get("Item") or params.get("Key") or {})
        more = f"/index/{params['IndexName']}" if "IndexName" in params else leading
        yield f"dynamodb:{operation}", "TableName", table, more


def _leading(table: str, item: Mapping[str, Any]) -> str:
    """The kind of an item's leading key: [hook#*] of hook#7, [journal] of journal."""
    name = _partition_keys().get(table, "")
    value = next(iter(item[name].values())) if name in item else ""
    head, mark, _ = str(value).partition("#")
    return f"[{head}{mark}{'*' if mark else ''}]" if value else ""


def _note(function: str, call: str, parameter: str, name: str, more: str) -> None:
    if (function, call, name, more) in _past:
        return
    _past.add((function, call, name, more))
    if more.startswith("[") and (function, call, name) not in _conditioned():
        more = ""
    elif parameter == "Bucket" and more:
        places = enumerate(more[1:].split("/"))
        parts = [each if {(place, each), (ANYWHERE, each)} & _words() else "*" for place, each in places]
        more = "/" + re.sub(r"\*(/\*)+", "*", "/".join(parts))
    named = _variables(function, parameter, name) if name else ""
    _seen[function].add(f"{call} {named}{more}".rstrip())


def _variables(function: str, parameter: str, name: str) -> str:
    """The function's variables that hold a name, with | between. A table that none of them names stays as it is.

    Of any other name, which a test has made up, all variables that may hold such a one. Tests name further tables
    Boards-1 or Boards2.
    """
    endings = NAMES[parameter]
    own = sorted(each for each in declared(function) if each.endswith(endings))
    for one in (name, re.sub(r"\W?\d.*|-.*", "", name)):
        if found := {named for each in own for text in _values(each) if (named := _named(each, text, one))}:
            return "|".join(sorted(found))
    of_kind = next(filter(None, ([each for each in own if each.endswith(end)] for end in endings)), [name])
    return name if parameter == "TableName" else "|".join(of_kind)


def declared(function: str) -> set[str]:
    """The variables that the template gives a function."""
    of_all = template()["Globals"]["Function"]["Environment"]["Variables"]
    return {*of_all, *properties(function)["Environment"]["Variables"]}


def _values(variable: str) -> set[str]:
    return {os.environ.get(variable, ""), CONSTANTS.get(variable, "")} - {""}


def _named(variable: str, text: str, name: str) -> str:
    """The variable, if its value is a name, a text with it (a URL, JSON), or what the name begins with; else ""."""
    if text.startswith("{"):
        return next((f"{variable}.{key}" for key, value in json.loads(text).items() if value == name), "")
    is_text = variable.endswith("_URL")
    holds = (
        name == text or (is_text and name in text) or (variable.endswith("_PREFIX") and name.startswith(text))
    )
    return variable if holds else ""


@cache
def _partition_keys() -> dict[str, str]:
    """Return the name of the partition key of each table of the template."""
    return {
        table: key["AttributeName"]
        for table, each in resources("AWS::DynamoDB::Table").items()
        for key in each["Properties"]["KeySchema"]
        if key["KeyType"] == "HASH"
    }


@cache
def _conditioned() -> set[tuple[str, str, str]]:
    """Function, action and table of each statement that allows some leading keys only."""
    return {
        (function, action, table)
        for function in FUNCTIONS
        for each, _ in statements(function)
        if "LeadingKeys" in json.dumps(each.get("Condition", {}))
        for action in listed(each["Action"])
        for table in logical_ids(each["Resource"])
    }


@cache
def _words() -> set[tuple[int, str]]:
    """The parts of keys that policies of functions name, each with its place in the key.

    A part behind a * may stand ANYWHERE: the * of a policy goes over slashes.
    """
    texts = re.findall(r"Bucket\.Arn\}/([^\"]*)", json.dumps([list(statements(name)) for name in FUNCTIONS]))
    return {
        (ANYWHERE if "*" in parts[:place] else place, each)
        for parts in (text.split("/") for text in texts)
        for place, each in enumerate(parts)
        if each not in {"*", ""}
    }
