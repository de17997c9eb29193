"""`streakline key`: each step on a real secret, refused when it is too early, and no key is printed."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local import cli
from local.operate.fingerprint_keys import NEEDED_FOR
from local.stack import Stack
from rules.days import stamp, unstamp
from rules.engagement.offline import RECEIPT_AGE_MAX
from rules.key_ring import PROMOTED_AFTER, KeyRing, from_text, to_text
from tests.support.engine import Engine

PLAIN = "a key as the template makes it"


class Desk:
    """An operator at the command line, and the secret."""

    def __init__(
        self, engine: Engine, name: str, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._secrets, self._name, self._patch, self._capsys = (
            engine.client("secretsmanager"),
            name,
            patch,
            capsys,
        )
        self._secrets.create_secret(Name=name, SecretString=PLAIN)
        self.more: tuple[str, ...] = ()
        outputs = {"FingerprintSecretId": name, "ReceiptSecretId": name}
        stack = Stack("https://api", "", "eu-west-1", outputs, {}, "", "live")
        patch.setattr(Stack, "client", lambda _, service: self._secrets)
        patch.setattr("local.command.find_stack", lambda *_: stack)

    def __call__(self, action: str) -> dict[str, Any]:
        before = self.ring
        self.run(action)
        told = self._capsys.readouterr()
        for ring in (before, self.ring):
            assert not any(key in told.out + told.err for key in (*ring.keys, ring.next or PLAIN))
        found: dict[str, Any] = json.loads(told.out)
        return found

    def run(self, action: str) -> None:
        self._patch.setattr("sys.argv", ["streakline", "key", action, "--json", *self.more])
        cli.main()

    def refusal(self, action: str) -> str:
        before = self.ring
        with pytest.raises(SystemExit) as ended:
            self(action)
        assert self.ring == before
        return str(ended.value.code)

    @property
    def ring(self) -> KeyRing:
        return from_text(self.text)

    @property
    def text(self) -> str:
        return str(self._secrets.get_secret_value(SecretId=self._name)["SecretString"])

    def wait(self, time: timedelta) -> None:
        """Make the last step so much older."""
        ring = self.ring
        times = {
            name: stamp(unstamp(at) - time)
            for name in ("announced_at", "promoted_at")
            if (at := getattr(ring, name))
        }
        text = to_text(KeyRing(ring.keys, ring.next, **times))
        self._secrets.put_secret_value(SecretId=self._name, SecretString=text)


@pytest.fixture
def desk(
    engine: Engine,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Desk]:
    yield Desk(engine, f"ring-{request.node.name}", monkeypatch, capsys)


def test_a_key_is_announced_promoted_and_the_oldest_retired(desk: Desk) -> None:
    assert desk("show") == {"keys": 1, "is_announced": False, "promote_from": None, "retire_from": None}
    told = desk("announce")
    assert (told["keys"], told["is_announced"]) == (1, True)
    new = desk.ring.next
    assert new and len(new) >= 64
    assert list(desk.ring.keys) == [PLAIN]
    desk.wait(PROMOTED_AFTER)
    told = desk("promote")
    assert (told["keys"], told["is_announced"], told["promote_from"]) == (2, False, None)
    assert list(desk.ring.keys) == [new, PLAIN]
    assert desk("show")["retire_from"] == told["retire_from"]
    desk.wait(NEEDED_FOR)
    assert desk("retire") == {"keys": 1, "is_announced": False, "promote_from": None, "retire_from": None}
    assert list(desk.ring.keys) == [new]


def test_a_key_of_receipts_is_kept_as_long_as_one_of_them_is_taken(desk: Desk) -> None:
    desk.more = ("--receipts",)
    desk("announce")
    desk.wait(PROMOTED_AFTER)
    told = desk("promote")
    assert unstamp(told["retire_from"]) - datetime.now(UTC) > RECEIPT_AGE_MAX
    desk.wait(RECEIPT_AGE_MAX)
    assert "not before" in desk.refusal("retire")
    desk.wait(PROMOTED_AFTER)
    desk("retire")


def test_what_is_too_early_is_refused_with_the_instant_and_changes_nothing(desk: Desk) -> None:
    assert desk.refusal("promote") == "streakline: no key has been announced"
    assert desk.refusal("retire") == "streakline: there is one key: nothing to retire"
    told = desk("announce")
    assert desk.refusal("promote") == f"streakline: not before {told['promote_from']}"
    assert "promote it" in desk.refusal("announce")
    desk.wait(PROMOTED_AFTER - timedelta(seconds=30))
    assert "not before" in desk.refusal("promote")
    desk.wait(timedelta(seconds=30))
    told = desk("promote")
    assert desk.refusal("retire") == f"streakline: not before {told['retire_from']}"


def test_steps_go_by_the_secret_store_s_clock(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    real = datetime.now(UTC)
    monkeypatch.setattr("adapters.clock.now", lambda: real + timedelta(days=1))
    told = desk("announce")
    assert abs(unstamp(told["promote_from"]) - PROMOTED_AFTER - real) < timedelta(minutes=1)


def test_a_damaged_secret_is_left_alone_and_not_quoted(desk: Desk) -> None:
    desk._secrets.put_secret_value(SecretId=desk._name, SecretString='{"keys": "some key"}')
    for action in ("show", "announce", "promote", "retire"):
        with pytest.raises(SystemExit, match="the secret holds an empty key, or none"):
            desk.run(action)
    assert desk.text == '{"keys": "some key"}'
