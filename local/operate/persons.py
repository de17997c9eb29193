"""`streakline erase`, `export`, `certificate` and `who`: what is known of a person (rule 10)."""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from ingest.web.caller import LEADS
from local.api import Api
from local.operate.functions import invoke
from local.stack import Stack
from rules.json_values import DoubledKey, parse_json, unique_keys
from rules.privacy.erasures import PersonKind, nightly_plan_of, problem_of
from rules.privacy.tombstones import digest_of, lead_subject, name_in_logs, user_subject

POLL_SECONDS = 1.0
# On AWS the second sweep comes 20 minutes after the first one.
WAIT_SECONDS_MAX = 45 * 60
NIGHTLY = {store.name for kind in PersonKind for store in nightly_plan_of(kind)}


def erase(arguments: argparse.Namespace, stack: Stack) -> dict[str, Any]:
    """Erase a person and wait until the nights alone are awaited; or lift the tombstone.

    Returns what the API says. Asked again after these nights, it has the certificate, and writes it to `out`.
    Raises RuntimeError for what it refuses, and if online stores are still awaited after 45 minutes.
    """
    api, path = _api(arguments, stack), _path(arguments)
    if arguments.lift:
        return _asked(api, "POST", f"{path}/lift", 200)
    told = _asked(api, "DELETE", path, 202)
    until = time.monotonic() + WAIT_SECONDS_MAX
    while is_online(told) and time.monotonic() < until:
        # The schedule would go on with it within five minutes.
        invoke(stack, stack.output("ErasureFunctionName", "erasures"), {})
        told = _asked(api, "GET", f"/v1/erasures/{told['erasure_id']}", 200)
        if is_online(told):
            time.sleep(POLL_SECONDS if stack.is_laptop else 60 * POLL_SECONDS)
    if is_online(told):
        raise RuntimeError(
            f"erasure {told['erasure_id']} is still open: the alarm ErasureErrors would say why"
        )
    if told["status"] == "open":
        # If the last night was just now, the certificate need not wait for the schedule.
        invoke(stack, stack.output("ErasureFunctionName", "erasures"), {})
        told = _asked(api, "GET", f"/v1/erasures/{told['erasure_id']}", 200)
    if arguments.out and "certificate" in told:
        arguments.out.write_text(json.dumps(told["certificate"], indent=2) + "\n")
    return told


def is_online(told: dict[str, Any]) -> bool:
    """Whether an erasure, as the API tells it, awaits stores of which no night is in charge."""
    return told["status"] == "open" and not set(told["awaits"]) <= NIGHTLY


def export(arguments: argparse.Namespace, stack: Stack) -> dict[str, Any]:
    """Ask for a person's export, wait for it and write it; returns the file and its size.

    Raises RuntimeError for what the API refuses, and if there is no export after 45 minutes.
    """
    api, path = _api(arguments, stack), f"{_path(arguments)}/export"
    told = _asked(api, "POST", path, 202)
    until = time.monotonic() + WAIT_SECONDS_MAX
    while told["status"] == "running" and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
        told = _asked(api, "GET", path, 200)
    if told["status"] == "running":
        raise RuntimeError("the export is not made yet: ask again, or see why in the log of ErasureFunction")
    return {"file": str(arguments.out), "bytes": api.download(told["url"], arguments.out)}


def certificate(file: Path, user: str, lead: str, stack: Stack) -> dict[str, Any]:
    """Check a certificate: that it is genuine, and, if one is named, that it is about this person.

    Raises RuntimeError if it is not; ValueError for a file that is no JSON.
    """
    try:
        found = parse_json(file.read_bytes(), unique_keys)
    except DoubledKey as doubled:
        raise RuntimeError(f"{file} is not genuine: it {doubled}") from None
    name = stack.output("ErasureSecretId", "erasures")
    key = stack.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"]
    if problem := problem_of(found, key):
        raise RuntimeError(f"{file} is not genuine: {problem}")
    subject = user_subject(user) if user else lead_subject(lead) if lead else ""
    if subject and digest_of(key, subject) != found["subject_digest"]:
        raise RuntimeError(f"{file} is genuine, and about somebody else")
    return {"genuine": True, "about": user or lead or None, "finished_at": found["finished_at"]}


def who(names: set[str], stack: Stack) -> dict[str, Any]:
    """Return the user id of each name, or None: it is of nobody who has a profile.

    A name does not lead back to its id. So this hashes the ids of all profiles, and reads the whole table.
    """
    found: dict[str, str | None] = dict.fromkeys(sorted(names))
    pages = stack.client("dynamodb").get_paginator("scan")
    for page in pages.paginate(TableName=stack.tables["UserStreaks"], ProjectionExpression="user_id"):
        for each in page["Items"]:
            user = each["user_id"]["S"]
            if (name := name_in_logs(user)) in found:
                found[name] = user
        if None not in found.values():
            break
    return found


def _api(arguments: argparse.Namespace, stack: Stack) -> Api:
    if arguments.organization:
        if not arguments.lead:
            raise RuntimeError("--organization goes with --lead")
        return Api(stack, group=f"{LEADS}{arguments.organization}")
    return Api(stack)


def _path(arguments: argparse.Namespace) -> str:
    if arguments.user:
        return f"/v1/users/{arguments.user}"
    if getattr(arguments, "lift", False):
        raise RuntimeError("a lead's tombstones are lifted by an address or a number: POST /v1/leads/lift")
    return f"/v1/leads/{arguments.lead}"


def _asked(api: Api, method: str, path: str, expected: int) -> dict[str, Any]:
    status, told = api.call(method, path)
    if status != expected:
        raise RuntimeError(f"{method} {path}: {status} {told}")
    answer: dict[str, Any] = told
    return answer
