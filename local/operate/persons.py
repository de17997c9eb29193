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
from rules.privacy.certificates import problem_of
from rules.privacy.erasures import PersonKind, nightly_plan_of
from rules.privacy.tombstones import digest_of, lead_subject, name_in_logs, user_subject

POLL_SECONDS = 1.0
# On AWS the second sweep comes 20 minutes after the first one.
WAIT_SECONDS_MAX = 45 * 60
NIGHTLY = {store.name for kind in PersonKind for store in nightly_plan_of(kind)}


@dataclass(frozen=True, slots=True)
class Person:
    """A user, or a lead with all leads that are the same person.

    organization: on behalf of its integration, to which leads of others are unknown; "": of an admin.
    """

    user: str = ""
    lead: str = ""
    organization: str = ""

    def api(self, stack: Stack) -> Api:
        """Return the API as whoever asks for this person may call it."""
        return Api(stack, group=f"{LEADS}{self.organization}") if self.organization else Api(stack)

    @property
    def path(self) -> str:
        """The person's path."""
        return f"/v1/users/{self.user}" if self.user else f"/v1/leads/{self.lead}"


def person_options(function: Function) -> Function:
    """Give a command the options that name one person, and the parameter `person`."""

    @functools.wraps(function)
    def with_person(user: str, lead: str, organization: str, **given: Any) -> Any:
        if bool(user) == bool(lead):
            raise click.UsageError("say --user or --lead")
        if organization and not lead:
            raise click.UsageError("--organization goes with --lead")
        return function(person=Person(user, lead, organization), **given)

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
    """Erase a person and wait until the nights alone are awaited.

    Returns what the API says. Asked again after these nights, it has the certificate, and writes it to `out`.
    Raises RuntimeError for what it refuses, and if online stores are still awaited after 45 minutes.
    """
    api = person.api(stack)
    erasure = _asked(api, "DELETE", person.path, 202)
    until = time.monotonic() + WAIT_SECONDS_MAX
    while is_online(erasure) and time.monotonic() < until:
        # The schedule would go on with it within five minutes.
        invoke(stack, stack.output("ErasureFunctionName", "erasures"), {})
        erasure = _asked(api, "GET", f"/v1/erasures/{erasure['erasure_id']}", 200)
        if is_online(erasure):
            time.sleep(POLL_SECONDS if stack.is_laptop else 60 * POLL_SECONDS)
    if is_online(erasure):
        raise RuntimeError(
            f"erasure {erasure['erasure_id']} is still open: the alarm ErasureErrors would say why"
        )
    if erasure["status"] == "open":
        # If the last night was just now, the certificate need not wait for the schedule.
        invoke(stack, stack.output("ErasureFunctionName", "erasures"), {})
        erasure = _asked(api, "GET", f"/v1/erasures/{erasure['erasure_id']}", 200)
    if out and "certificate" in erasure:
        out.write_text(json.dumps(erasure["certificate"], indent=2) + "\n")
    return erasure


def is_online(erasure: dict[str, Any]) -> bool:
    """Whether an erasure, as the API tells it, awaits stores of which no night is in charge."""
    return erasure["status"] == "open" and not set(erasure["awaits"]) <= NIGHTLY


def export(person: Person, stack: Stack, out: Path) -> dict[str, Any]:
    """Ask for a person's export, wait for it and write it; returns the file and its size.

    Raises RuntimeError for what the API refuses, and if there is no export after 45 minutes.
    """
    api, path = person.api(stack), f"{person.path}/export"
    job = _asked(api, "POST", path, 202)
    until = time.monotonic() + WAIT_SECONDS_MAX
    while job["status"] == "running" and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
        job = _asked(api, "GET", path, 200)
    if job["status"] == "running":
        raise RuntimeError("the export is not made yet: ask again, or see why in the log of ErasureFunction")
    return {"file": str(out), "bytes": api.download(job["url"], out)}


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
    table = stack.tables["UserStreaks"]
    for each in scan_all(stack.client("dynamodb"), TableName=table, ProjectionExpression="user_id"):
        user = each["user_id"]["S"]
        if (name := name_in_logs(user)) in found:
            found[name] = user
            if None not in found.values():
                break
    return found


def _asked(api: Api, method: str, path: str, expected: int) -> dict[str, Any]:
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
    return _asked(Api(stack), "POST", f"{Person(user).path}/lift", 200)


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
