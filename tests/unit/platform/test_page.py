"""The page's files: what is served, how, and nothing else."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.page import CONFIG, FOLDER, INDEX, PageSettings, build_site, content_policy, serve_file
from rules.parts import Part
from tests.support.examples import examples

PLAIN = PageSettings("", "", "")
COGNITO = PageSettings(
    "https://cognito-idp.eu-west-1.amazonaws.com/pool", "app1", "https://login.example.com"
)
SITE = build_site(FOLDER, PLAIN)
FIRST_VIEW_BYTES_MAX = 30_000


def request(file: str | None = None, version: str | None = None, **headers: str) -> dict[str, Any]:
    return {
        "rawPath": "/" if file is None else f"/app/{file}",
        "pathParameters": None if file is None else {"file": file},
        "queryStringParameters": None if version is None else {"v": version},
        "headers": {name.replace("_", "-"): value for name, value in headers.items()},
    }


def text_of(answer: dict[str, Any]) -> str:
    if not answer["isBase64Encoded"]:
        return str(answer["body"])
    assert answer["headers"]["Content-Encoding"] == "gzip"
    return gzip.decompress(base64.b64decode(answer["body"])).decode()


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        (None, "text/html; charset=utf-8"),
        ("app.css", "text/css; charset=utf-8"),
        ("main.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
        ("config.json", "application/json"),
    ],
)
def test_each_file_has_its_type_compressed_or_not(file: str | None, kind: str) -> None:
    plain, packed = (
        serve_file(SITE, request(file)),
        serve_file(SITE, request(file, accept_encoding="br, gzip;q=0.8")),
    )
    assert plain["statusCode"] == packed["statusCode"] == 200
    assert plain["headers"]["Content-Type"] == packed["headers"]["Content-Type"] == kind
    assert "Content-Encoding" not in plain["headers"]
    assert plain["body"] == text_of(packed)
    assert plain["headers"]["Vary"] == packed["headers"]["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    "refusal", ["identity", "", "gzip;q=0", "br, gzip ; q=0.000", "gzip;q=0, *", "notgzip", "*;q=0"]
)
def test_gzip_is_sent_only_where_it_is_taken(refusal: str) -> None:
    assert "Content-Encoding" not in serve_file(SITE, request("main.js", accept_encoding=refusal))["headers"]


@pytest.mark.parametrize(
    "wish", ["gzip", "GZip", "deflate,gzip;q=0.001,br", "x-gzip, gzip", "gzip;q=0.5, *;q=0"]
)
def test_gzip_is_sent_where_it_is_taken(wish: str) -> None:
    assert serve_file(SITE, request("main.js", accept_encoding=wish))["headers"]["Content-Encoding"] == "gzip"


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../template.yaml", "..%2ftemplate.yaml", "%2e%2e/page.py", "....//page.py"),
        *("../ingest/page.py", "/etc/passwd", "app/main.js", "main.js/", "main.js\x00.css", "MAIN.JS"),
        *("index.html", "page.py", "__init__.py", "main.js?v=1", "\\..\\template.yaml", "constructor"),
    ],
)
def test_nothing_but_the_folders_files_is_served(name: str) -> None:
    answer = serve_file(SITE, request(name))
    assert answer["statusCode"] == 404
    assert json.loads(answer["body"])["error"]["code"] == "not_found"
    assert answer["headers"]["X-Content-Type-Options"] == "nosniff"


@given(st.text(max_size=40))
@settings(max_examples=examples(50))
def test_any_other_name_is_not_found(name: str) -> None:
    assert (serve_file(SITE, request(name))["statusCode"] == 200) == (name in SITE.files and name != INDEX)


def test_a_browser_that_has_it_is_told_so() -> None:
    first = serve_file(SITE, request("main.js", accept_encoding="gzip"))
    tag = first["headers"]["ETag"]
    again = serve_file(SITE, request("main.js", accept_encoding="gzip", if_none_match=f'"x", W/{tag}'))
    assert (again["statusCode"], again["body"]) == (304, "")
    assert again["headers"]["ETag"] == tag
    other = serve_file(SITE, request("main.js", if_none_match=tag))
    assert other["statusCode"] == 200, "another encoding is another thing"


def test_links_carry_the_version_and_are_kept_for_good() -> None:
    index = text_of(serve_file(SITE, request()))
    links = re.findall(r'(?:href|src)="(app/[^"]+)"', index)
    assert links
    for link in links:
        name, _, version = link.removeprefix("app/").partition("?v=")
        answer = serve_file(SITE, request(name, version))
        assert answer["statusCode"] == 200
        assert "immutable" in answer["headers"]["Cache-Control"]
    assert serve_file(SITE, request("main.js"))["headers"]["Cache-Control"] == "no-cache"
    assert serve_file(SITE, request("main.js", "0"))["headers"]["Cache-Control"] == "no-cache", (
        "another deployment"
    )
    assert serve_file(SITE, request())["headers"]["Cache-Control"] == "no-cache"


def test_every_import_leads_to_a_file_of_the_same_version() -> None:
    for name, file in SITE.files.items():
        for target in re.findall(r'(?:from|import\() ?"\./([^"]+)"', file.content.decode()):
            module, _, version = target.partition("?v=")
            assert module in SITE.files, (name, target)
            assert version == SITE.version


def test_a_change_of_any_file_is_another_version(tmp_path: Path) -> None:
    for path in FOLDER.iterdir():
        (tmp_path / path.name).write_text(path.read_text())
    assert build_site(tmp_path, PLAIN).version == SITE.version
    (tmp_path / "icon.svg").write_text("<svg/>")
    assert build_site(tmp_path, PLAIN).version != SITE.version
    assert build_site(FOLDER, COGNITO).version != SITE.version


def test_the_policy_allows_our_own_files_and_the_sign_in_service() -> None:
    policy = serve_file(SITE, request())["headers"]["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "connect-src 'self';" in policy
    assert "img-src 'self' https: data:;" in policy, (
        "pictures of rewards lie elsewhere, and never in clear text"
    )
    named = content_policy(COGNITO)
    assert (
        "connect-src 'self' https://cognito-idp.eu-west-1.amazonaws.com https://login.example.com;" in named
    )


@pytest.mark.parametrize(
    "url", ["cognito", "javascript:alert(1)", "https://a b", "https://x;script-src *", "//x"]
)
def test_what_is_no_sign_in_service_stops_the_function(url: str) -> None:
    with pytest.raises(ValueError, match="sign-in"):
        build_site(FOLDER, PageSettings(url, "app1", ""))


def test_the_settings_are_told_and_no_others() -> None:
    told = json.loads(build_site(FOLDER, COGNITO).files[CONFIG].content)
    parts = sorted(Part)
    assert told == {"oidc_authority": COGNITO.oidc_authority, "oidc_client_id": "app1", "parts": parts}


def test_the_first_view_is_small() -> None:
    first = (
        *(INDEX, "app.css", "main.js", "session.js", "api.js", "dom.js", "answer.js", "icon.svg", CONFIG),
        *("source.js", "elements.js"),
    )
    assert sum(len(SITE.files[name].gzipped) for name in first) < FIRST_VIEW_BYTES_MAX


def test_nothing_in_the_page_is_inline_absolute_or_parsed_as_html() -> None:
    index = SITE.files[INDEX].content.decode()
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=", index)
    for name, file in SITE.files.items():
        text = file.content.decode()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), name
        assert not re.search(r"""["'`]/\w""", text), f"{name} has an absolute path"
        assert "https://" not in text, name
