"""One version, one licence and one text of it, wherever a release says them."""

import json
import re
import tomllib
from typing import Any

import pytest

from tests.support.template import ROOT, template

VERSION = "0.9.0"
LICENCE = "Apache-2.0"


def toml(path: str) -> Any:
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


def shown() -> dict[str, tuple[str, str]]:
    """What says version and licence, and what it says."""
    package = json.loads((ROOT / "client/typescript/package.json").read_text())
    lock = json.loads((ROOT / "client/typescript/package-lock.json").read_text())["packages"][""]
    published = template()["Metadata"]["AWS::ServerlessRepo::Application"]
    projects = {each: toml(each)["project"] for each in ("pyproject.toml", "client/python/pyproject.toml")}
    (status,) = re.findall(r"\*\*Status: ([\d.]+),.*?\. (Apache-[\d.]+)\.", (ROOT / "README.md").read_text())
    return {
        "README.md": status,
        "package.json": (package["version"], package["license"]),
        "package-lock.json": (lock["version"], lock["license"]),
        "template.yaml": (published["SemanticVersion"], published["SpdxLicenseId"]),
        **{name: (each["version"], each["license"]) for name, each in projects.items()},
    }


def test_one_version_and_one_licence_everywhere() -> None:
    assert set(shown().values()) == {(VERSION, LICENCE)}
    assert re.search(rf"^## {re.escape(VERSION)}", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE"])
def test_each_package_has_the_licence(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for client in ("client/python", "client/typescript"):
        assert (ROOT / client / name).read_text(encoding="utf-8") == text


def test_the_command_depends_on_what_its_layers_have() -> None:
    """What a function imports the command does, too: a laptop cloud asks, reports and plans by the same code."""
    project = toml("pyproject.toml")
    of_command = {re.split(r"[\[>=<]", each)[0] for each in project["project"]["dependencies"]}
    layers = ("layer", "analytics", "identity", "hooks")
    of_layers = {
        re.split(r"[\[>=<]", each)[0] for group in layers for each in project["dependency-groups"][group]
    }
    assert of_layers - {"botocore"} <= of_command
