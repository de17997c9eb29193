"""Tokens that an app signs as docs/guides/sign-in.md says are verified by the documents that it serves."""

import json
import shutil
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
import urllib3
from click.testing import CliRunner

from local.sign_in_key import sign_in_command
from tests.support.documents import blocks_of
from tests.support.template import ROOT

ISSUER, AUDIENCE = "https://app.example.com", "streakline"
GUIDE = ROOT / "docs" / "guides" / "sign-in.md"


def made(folder: Path, *more: str) -> Any:
    told = CliRunner().invoke(
        sign_in_command,
        ["--issuer", f"{ISSUER}/", "--folder", str(folder), "--json", *more],
        catch_exceptions=False,
    )
    assert told.exit_code == 0, told.output
    return json.loads(told.output)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder / "public"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def claims_of(token: str, folder: Path) -> Any:
    """What an authorizer reads of a token: it follows the issuer's documents."""
    with served(folder) as url:
        about = urllib3.request("GET", f"{url}/.well-known/openid-configuration").json()
        assert about == {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/.well-known/jwks.json"}
        key = jwt.PyJWKClient(about["jwks_uri"].replace(ISSUER, url)).get_signing_key_from_jwt(token)
        return jwt.decode(token, key, algorithms=["RS256"], audience=AUDIENCE, issuer=ISSUER)


def guide_code(language: str, key_id: str) -> str:
    (code,) = [block.text for block in blocks_of(GUIDE.name, GUIDE.read_text()) if block.language == language]
    return str(code).replace("key-1-0a1b2c3d", key_id)


def in_python(folder: Path, key_id: str) -> str:
    names: dict[str, Any] = {}
    exec(guide_code("python", key_id).replace("sign-in/", f"{folder}/"), names)
    return str(names["streakline_token"]("ann", "streakline/producers"))


def in_node(folder: Path, key_id: str) -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    code = guide_code("js", key_id).replace("sign-in/", f"{folder}/")
    (folder / "token.mjs").write_text(
        f"{code}\nprocess.stdout.write(streaklineToken('ann', 'streakline/producers'));"
    )
    return subprocess.run([node, folder / "token.mjs"], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("sign", [in_python, in_node])
def test_a_token_is_verified_by_the_documents(tmp_path: Path, sign: Any) -> None:
    told = made(tmp_path)
    claims = claims_of(sign(tmp_path, told["key_id"]), tmp_path)
    assert (claims["sub"], claims["cognito:groups"]) == ("ann", ["streakline/producers"])
    assert claims["exp"] - claims["iat"] == 3600
    assert told["deploy_with"] == {"JwtIssuer": ISSUER, "JwtAudience": AUDIENCE}


def test_the_secret_is_the_users_alone_and_is_not_served(tmp_path: Path) -> None:
    told = made(tmp_path)
    secret = Path(told["private_key"])
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert secret.read_text().startswith("-----BEGIN PRIVATE KEY-----")
    for path in (tmp_path / "public").rglob("*"):
        if path.is_file():
            assert not {"d", "p", "q"} & set(json.dumps(json.loads(path.read_text())).split('"')), path


def test_a_further_key_leaves_the_older_ones_tokens_valid(tmp_path: Path) -> None:
    first = made(tmp_path)
    old = in_python(tmp_path, first["key_id"])
    again = CliRunner().invoke(sign_in_command, ["--issuer", ISSUER, "--folder", str(tmp_path)])
    assert again.exit_code == 1
    assert "--next makes a further one" in again.output
    second = made(tmp_path, "--next")
    new = in_python(tmp_path, second["key_id"])
    assert claims_of(old, tmp_path)["sub"] == claims_of(new, tmp_path)["sub"] == "ann"
    served_keys = tmp_path / "public" / ".well-known" / "jwks.json"
    keys = json.loads(served_keys.read_text())["keys"]
    served_keys.write_text(json.dumps({"keys": [key for key in keys if key["kid"] != first["key_id"]]}))
    with pytest.raises(jwt.PyJWKClientError):
        claims_of(old, tmp_path)
    assert claims_of(new, tmp_path)["sub"] == "ann"


@pytest.mark.parametrize(
    "url", ["http://app.example.com", "app.example.com", "https://", "https://a.b/?x=1", ""]
)
def test_an_issuer_must_be_an_https_address(tmp_path: Path, url: str) -> None:
    told = CliRunner().invoke(sign_in_command, ["--issuer", url, "--folder", str(tmp_path)])
    assert told.exit_code == 2
    assert "must be an https address" in told.output
    assert not list(tmp_path.iterdir())
