"""`streakline person`: what is known of a person (rule 10)."""

import functools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from adapters.platform.tables import scan_all
from ingest.web.caller import LEADS
from local.api import Api
from local.command import FILE, FILE_OUT, Function, command, option
from local.operate.functions import invoke
from local.stack import Stack
from rules.json_values import DoubledKey, parse_json, unique_keys
from rules.privacy.erasures import PersonKind, nightly_plan_of, problem_of
from rules.privacy.tombstones import digest_of, lead_subject, name_in_logs, user_subject
from rules.user_ids import path_part

POLL_SECONDS = 1.0
# On AWS the second sweep comes 20 minutes after the first one.
WAIT_SECONDS_MAX = 45 * 60
# The stores that the nights erase. No command waits for them.
NIGHTLY = {store.name for kind in PersonKind for store in nightly_plan_of(kind)}


@dataclass(frozen=True, slots=True)
class Person:
    """A user, or a lead with all leads that are the same person."""

    user: str = ""  # "": a lead is meant
    lead: str = ""
    # The integration of an organization asks for a lead of its own; "": an admin asks.
    organization: str = ""

    def api(self, stack: Stack) -> Api:
        """Return the API, called as the organization's integration or as an admin."""
        return Api(stack, group=f"{LEADS}{self.organization}") if self.organization else Api(stack)

    @property
    def path(self) -> str:
        """The person's path in the API."""
        return f"/v1/users/{path_part(self.user)}" if self.user else f"/v1/leads/{self.lead}"


def person_options(function: Function) -> Function:
    """Give a command the options that name one person, and the parameter `person`."""

    @functools.wraps(function)
    def with_person(user: str, lead: str, organization: str, **others: Any) -> Any:
        if bool(user) == bool(lead):
            raise click.UsageError("say --user or --lead")
        if organization and not lead:
            raise click.UsageError("--organization goes with --lead")
        return function(person=Person(user, lead, organization), **others)

    for decorate in (
        option(
            "--organization",
            default="",
            metavar="ORG",
            help="as its integration: leads of others are unknown",
            show_default="as an admin",
        ),
        option(
            "--lead",
            default="",
            metavar="ID",
            help="a lead, with all that are the same person",
        ),
        option("--user", default="", metavar="ID", help="a user"),
    ):
        with_person = decorate(with_person)
    return with_person


def erase(person: Person, stack: Stack, out: Path | None = None) -> dict[str, Any]:
    """Erase a person, and wait until every online store is done. The nights alone are awaited then.

    Returns the erasure as the API tells it. Called again after these nights, it gets the certificate, and
    writes it to `out`. Raises RuntimeError for what the API refuses, and if an online store is still awaited
    after 45 minutes.
    """
    api = person.api(stack)
    erasure = _call(api, "DELETE", person.path, 202)
    name, path = erasure["erasure_id"], f"/v1/erasures/{erasure['erasure_id']}"

    def go_on() -> dict[str, Any]:
        """Do what the schedule would do within five minutes; returns the erasure as it is then."""
        invoke(stack, stack.output("ErasureFunctionName", "erasures"), {})
        return _call(api, "GET", path, 200)

    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while is_online(erasure) and time.monotonic() < deadline:
        erasure = go_on()
        if is_online(erasure):
            time.sleep(POLL_SECONDS if stack.is_laptop else 60 * POLL_SECONDS)
    if is_online(erasure):
        raise RuntimeError(f"erasure {name} is still open: the alarm ErasureErrors would say why")
    if erasure["status"] == "open":
        erasure = go_on()  # the last night may have been just now: then the certificate is ready
    if out and "certificate" in erasure:
        out.write_text(json.dumps(erasure["certificate"], indent=2) + "\n")
    return erasure


def is_online(erasure: dict[str, Any]) -> bool:
    """Whether an erasure, as the API tells it, awaits a store that is erased without a night."""
    return erasure["status"] == "open" and not set(erasure["awaits"]) <= NIGHTLY


def export(person: Person, stack: Stack, out: Path) -> dict[str, Any]:
    """Ask for a person's export, wait for it and write it; returns the file and its size.

    Raises RuntimeError for what the API refuses, and if there is no export after 45 minutes.
    """
    api, path = person.api(stack), f"{person.path}/export"
    job = _call(api, "POST", path, 202)
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while job["status"] == "running" and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        job = _call(api, "GET", path, 200)
    if job["status"] == "running":
        raise RuntimeError("the export is not made yet: ask again, or see why in the log of ErasureFunction")
    return {"file": str(out), "bytes": api.download(job["url"], out)}


def certificate(file: Path, user: str, lead: str, stack: Stack) -> dict[str, Any]:
    """Check that a certificate is genuine and, if a user or a lead is named, about this person.

    Returns whom it is about, and when the erasure was finished. Raises RuntimeError if a check fails,
    ValueError for a file that is no JSON.
    """
    try:
        document = parse_json(file.read_bytes(), unique_keys)
    except DoubledKey as doubled:
        raise RuntimeError(f"{file} is not genuine: it {doubled}") from None
    name = stack.output("ErasureSecretId", "erasures")
    key = stack.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"]
    if problem := problem_of(document, key):
        raise RuntimeError(f"{file} is not genuine: {problem}")
    subject = user_subject(user) if user else lead_subject(lead) if lead else ""
    if subject and digest_of(key, subject) != document["subject_digest"]:
        raise RuntimeError(f"{file} is genuine, and about somebody else")
    return {"genuine": True, "about": user or lead or None, "finished_at": document["finished_at"]}


def who(names: set[str], stack: Stack) -> dict[str, Any]:
    """Return the user id of each name in the logs; None for a name of nobody who has a profile.

    A name is a hash, which does not lead back to its id. So this hashes the ids of all profiles until each
    name has its user.
    """
    user_of: dict[str, str | None] = dict.fromkeys(sorted(names))
    table = stack.tables["UserStreaks"]
    for item in scan_all(stack.client("dynamodb"), TableName=table, ProjectionExpression="user_id"):
        user = item["user_id"]["S"]
        if (name := name_in_logs(user)) in user_of:
            user_of[name] = user
            if None not in user_of.values():
                break
    return user_of


def _call(api: Api, method: str, path: str, expected: int) -> dict[str, Any]:
    """Return the API's answer; raises RuntimeError if its status is another one than expected."""
    status, body = api.call(method, path)
    if status != expected:
        raise RuntimeError(f"{method} {path}: {status} {body}")
    answer: dict[str, Any] = body
    return answer


@command("person erase --user ann --out certificate.json", "person erase --lead 7fd0 --organization shop")
@person_options
@option("--out", type=FILE_OUT, help="where to write the certificate, once there is one")
def erase_command(stack: Stack, person: Person, out: Path | None) -> Any:
    """Erase a person from every online store. The certificate comes with the nights: ask again then."""
    return erase(person, stack, out)


@command("person lift --user ann")
@option("--user", required=True, metavar="ID")
def lift(stack: Stack, user: str) -> Any:
    """Let an erased user's id be used anew.

    A lead's tombstones are lifted by an address or a number: `POST /v1/leads/lift`.
    """
    return _call(Api(stack), "POST", f"{Person(user).path}/lift", 200)


@command("person export --user ann --out ann.zip")
@person_options
@option("--out", type=FILE_OUT, required=True, help="where to write it")
def export_command(stack: Stack, person: Person, out: Path) -> Any:
    """Write everything that is known of a person, as a ZIP of JSON and CSV."""
    return export(person, stack, out)


@command("person certificate certificate.json --user ann")
@click.argument("file", type=FILE)
@option("--user", default="", metavar="ID", help="also check that it is about this user")
@option("--lead", default="", metavar="ID", help="also check that it is about this lead")
def certificate_command(stack: Stack, file: Path, user: str, lead: str) -> Any:
    """Check that a certificate of an erasure is genuine."""
    return certificate(file, user, lead, stack)


@command("person who ~0123456789abcdef")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def who_command(stack: Stack, names: Sequence[str]) -> Any:
    """Say which users the logs mean. NAME is as logs have it: ~ and 16 digits. Reads all profiles' ids."""
    return who(set(names), stack)
