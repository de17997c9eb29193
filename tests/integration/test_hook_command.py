"""`streakline hook`: what it prints opens the door, what it lists opens nothing."""

import base64
import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ingest.leads import sources
from local import cli
from local.stack import Stack
from tests.support.engine import Engine
from tests.support.hook_site import NOW, PREFIX, REFUSED, SIGNED, HookSite
from tests.support.webhook_senders import secret_of

ORIGIN = "https://acme.example"


class Desk:
    """An operator at the command line, and the function beside."""

    def __init__(self, site: HookSite, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.site, self._patch, self._capsys = site, patch, capsys
        stack = Stack("https://api", "", "eu-west-1", {"HookSecretPrefix": PREFIX}, {}, "", "live")
        patch.setattr(Stack, "client", lambda _, service: site.secrets)
        patch.setattr("local.command.find_stack", lambda *_: replace(stack))
        # Of this module alone: another thread that sleeps would move this clock on.
        patch.setattr("local.leads.hooks.time", SimpleNamespace(sleep=self.waited))

    def waited(self, seconds: float) -> None:
        self.site.seconds += seconds

    def lines(self, *arguments: str) -> list[dict[str, Any]]:
        self._patch.setattr("sys.argv", ["streakline", "hook", *arguments, "--json"])
        cli.main()
        found: Any = json.loads(self._capsys.readouterr().out)
        return found if isinstance(found, list) else [found]

    def __call__(self, action: str, source: str, *more: str) -> dict[str, Any]:
        (line,) = self.lines(action, "--organization", self.site.organization, "--source", source, *more)
        return line

    def refusal(self, *arguments: str) -> str:
        """What goes wrong with a command that is taken."""
        with pytest.raises(SystemExit) as ended:
            self.lines(*arguments)
        return str(ended.value.code)

    def misuse(self, *arguments: str) -> str:
        """What is wrong with a command line that is not taken: then the status is 2."""
        assert self.refusal(*arguments) == "2"
        return self._capsys.readouterr().err


@pytest.fixture
def desk(engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(HookSite(engine, monkeypatch), monkeypatch, capsys)


@pytest.mark.parametrize("source", SIGNED)
def test_what_is_printed_signs_until_it_is_rotated_or_removed(desk: Desk, source: str) -> None:
    site = desk.site
    assert site.signed(source) == REFUSED, "and what was asked for too early is not in the way"
    made = desk("add", source)
    assert made["url"] == f"https://api/v1/hooks/{site.organization}/{source}"
    assert site.signed(source, secret=made["secret"])[0] == 200
    changed = desk("rotate", source)
    for each in (made, changed):
        assert site.signed(source, secret=each["secret"])[0] == 200, "there is no gap"
    assert changed["old_secret_until"] > (NOW + timedelta(hours=23)).isoformat()
    newest = desk("rotate", source, "--overlap-hours", "0")
    assert (newest["old_secret_until"], site.signed(source, secret=newest["secret"])[0]) == (None, 200)
    (listed,) = desk.lines("list", "--organization", site.organization)
    assert (listed["url"], listed["secrets_until"]) == (made["url"], [None])
    assert newest["secret"] not in json.dumps(listed)
    told = desk("remove", source)
    site.seconds += told["closed_within_seconds"]
    assert site.signed(source, secret=newest["secret"]) == REFUSED
    assert desk.lines("list", "--organization", site.organization) == []
    assert desk("add", source)["url"] == made["url"], "the name is free again"


@pytest.mark.parametrize("source", SIGNED)
def test_a_vendor_s_own_secret_is_taken_from_a_file_and_not_shown(
    desk: Desk, source: str, tmp_path: Path
) -> None:
    theirs, ours = secret_of(source, "vendor")
    file = tmp_path / "secret"
    lines = [ours] if source != "email_campaign" else ["-----BEGIN PUBLIC KEY-----", ours, "-----END-----"]
    file.write_text("\n".join(lines) + "\n")
    made = desk("add", source, "--secret-file", str(file))
    assert made["secret"] is None
    assert ours not in json.dumps(made)
    assert desk.site.signed(source, secret=theirs)[0] == 200


def test_meta_s_question_is_answered_by_the_token_that_is_printed(desk: Desk) -> None:
    made = desk("add", "whatsapp")
    query = {"hub.mode": "subscribe", "hub.challenge": "7", "hub.verify_token": made["verify_token"]}
    found = desk.site.call("GET", "whatsapp", desk.site.organization, queryStringParameters=query)
    assert found == (200, "7")


def test_a_form_is_of_pages_and_has_no_secret(desk: Desk) -> None:
    base = ("add", "--organization", desk.site.organization, "--source", "web_form")
    assert "needs --origin" in desk.misuse(*base)
    assert "without a path" in desk.misuse(*base, "--origin", "https://acme.example/contact")
    assert "referrer policy" in desk.misuse(*base, "--origin", "null")
    made = desk("add", "web_form", "--origin", "https://ACME.example/", "--per-minute", "1")
    assert made["secret"] is None
    headers = {"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"}
    assert desk.site.send("web_form", b"email=a%40b.example", headers)[0] == 200
    assert desk.site.send("web_form", b"email=a%40b.example", headers)[0] == 429
    (listed,) = desk.lines("list", "--organization", desk.site.organization)
    assert (listed["origins"], listed["per_minute"]) == ([ORIGIN], 1)


def test_what_cannot_be_done_is_a_sentence(desk: Desk, tmp_path: Path) -> None:
    of = ("--organization", desk.site.organization)
    assert "there is no hook of" in desk.refusal("rotate", *of, "--source", "generic")
    assert "there is no hook of" in desk.refusal("remove", *of, "--source", "generic")
    desk("add", "generic")
    assert "already" in desk.refusal("add", *of, "--source", "generic")
    told = desk.misuse("add", *of, "--source", "fax")
    assert [name for name in sources.names() if name not in told] == []
    assert "must match" in desk.misuse("add", "--organization", "a/b", "--source", "generic")
    short = tmp_path / "short"
    for source, text in (
        ("ecommerce", "short"),
        ("ecommerce", "two lines of\ntext, and more"),
        ("generic", "whsec_not base64 at all"),
        ("email_campaign", base64.b64encode(b"no key at all").decode()),
    ):
        short.write_text(text)
        other = ("--organization", f"{desk.site.organization}-x", "--source", source)
        told = desk.refusal("add", *other, "--secret-file", str(short))
        assert text not in told
        assert "secret" in told


def test_the_help_s_own_examples_run_and_it_names_the_sources(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    for action in ("add", "list", "rotate", "remove"):
        assert desk.refusal(action, "--help") == "0"
        text = capsys.readouterr().out
        examples = re.findall(r"^ *streakline hook (.*)", text, re.MULTILINE)
        assert examples
        for line in examples:
            words = [word if word != "shop" else desk.site.organization for word in line.split()]
            desk.lines(*words)
        if action != "list":
            assert [name for name in sources.names() if name not in text] == []


def test_an_organization_may_have_a_colon(desk: Desk) -> None:
    desk.site.organization += ":eu"
    made = desk("add", "generic")
    assert desk.site.signed("generic", secret=made["secret"])[0] == 200
