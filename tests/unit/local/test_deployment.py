"""The laptop cloud is deployed to again unless it runs exactly what a deployment would make."""

from pathlib import Path
from unittest.mock import MagicMock

import pytest

from local.cloud import deployment


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("Stack", "tokens"):
        monkeypatch.setattr(deployment, name, MagicMock())
    monkeypatch.setattr(deployment, "_parameters", lambda *_: {"a": "b"})
    monkeypatch.setattr(deployment, "emulator_template", lambda built, _: built)
    monkeypatch.setattr(deployment, "ROOT", tmp_path)
    monkeypatch.setattr(deployment, "BUILD", tmp_path)
    monkeypatch.setattr(deployment, "BUILT", tmp_path / "built.yaml")
    monkeypatch.setattr(deployment, "DEPLOYED", tmp_path / "deployed.txt")
    (tmp_path / "local" / "cloud").mkdir(parents=True)
    for name in ("built.yaml", "template.yaml"):
        (tmp_path / name).write_text("first")
    return tmp_path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands of SAM that deployments have called."""
    called: list[str] = []
    monkeypatch.setattr(deployment, "_sam", lambda arguments, _: called.append(arguments[0]))
    return called


def deploy() -> None:
    deployment.deploy("endpoint", "redis", "identity", {})


@pytest.mark.parametrize(
    "part", ["template.yaml", *(f"local/cloud/{n}.py" for n in ("deployment", "sam_cli", "tokens"))]
)
def test_what_a_deployment_is_made_of_is_deployed_when_it_changes(
    root: Path, calls: list[str], part: str
) -> None:
    deploy()
    deploy()
    assert calls == ["build", "deploy"]
    (root / part).write_text("second")
    deploy()
    assert calls == ["build", "deploy"] * 2


def test_a_deployment_that_failed_halfway_is_not_the_one_before_it(
    root: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy()
    (root / "template.yaml").write_text("second")

    def fail(arguments: list[str], _: str) -> None:
        if arguments[0] == "deploy":
            raise RuntimeError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(deployment, "_sam", fail)
        with pytest.raises(RuntimeError):
            deploy()
    (root / "template.yaml").write_text("first")
    deploy()
    assert calls == ["build", "deploy"] * 2
