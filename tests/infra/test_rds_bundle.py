"""The identity layer brings the certificate authorities of RDS along, or its build fails and says why."""

import os
import subprocess
from pathlib import Path

import pytest

from adapters.postgresql.postgres import BUNDLE
from local.paths import ROOT

LIST = "-----BEGIN CERTIFICATE-----\nof RDS\n-----END CERTIFICATE-----\n"


def run(*command: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if "RDS_BUNDLE" not in name}
    return subprocess.run(
        command, cwd=ROOT, env=environment | more, capture_output=True, text=True, check=False
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "list.pem"
    path.write_text(LIST)
    return path


@pytest.fixture
def path_with_uv(tmp_path: Path) -> str:
    """PATH with a uv that installs nothing."""
    (tmp_path / "bin").mkdir()
    uv = tmp_path / "bin" / "uv"
    uv.write_text("#!/bin/sh\nexit 0\n")
    uv.chmod(0o755)
    return f"{uv.parent}:{os.environ['PATH']}"


@pytest.mark.parametrize(("group", "has_list"), [("identity", True), ("layer", False)])
def test_only_the_identity_layer_has_it(
    group: str, has_list: bool, source: Path, tmp_path: Path, path_with_uv: str
) -> None:
    target = tmp_path / "layer"
    done = run("infra/layer/build", str(target), group, PATH=path_with_uv, RDS_BUNDLE_URL=source.as_uri())
    assert done.returncode == 0, done.stderr
    assert (target / "python" / BUNDLE).exists() == has_list
    if has_list:
        assert (target / "python" / BUNDLE).read_text() == LIST


@pytest.mark.parametrize("content", [None, "<html>not found</html>"])
def test_a_build_that_cannot_get_it_fails_and_says_what_to_do(
    content: str | None, tmp_path: Path, path_with_uv: str
) -> None:
    source = tmp_path / "list.pem"
    if content is not None:
        source.write_text(content)
    done = run(
        "infra/layer/build", str(tmp_path), "identity", PATH=path_with_uv, RDS_BUNDLE_URL=source.as_uri()
    )
    assert done.returncode != 0
    assert f"cannot get the certificate authorities of RDS from {source.as_uri()}" in done.stderr
    assert "RDS_BUNDLE_URL=file:///PATH" in done.stderr
    assert not (tmp_path / "python" / BUNDLE).exists()


def test_a_laptop_leaves_it_out(tmp_path: Path) -> None:
    done = run("infra/layer/rds-bundle", str(tmp_path), LAYER_RDS_BUNDLE="none", RDS_BUNDLE_URL="file:///no")
    assert done.returncode == 0
    assert not (tmp_path / BUNDLE).exists()


def test_by_default_it_is_that_of_all_regions() -> None:
    script = (ROOT / "infra/layer/rds-bundle").read_text()
    assert "https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem" in script
