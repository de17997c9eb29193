"""Serves the web page at GET / and GET /app/{file}, and the reference of the API at GET /v1/docs.

The page's files are those of the folder page/, and config.json, which is made of the settings.

The function compresses every file once, at cold start. It also writes the version of the whole folder into
each link between the files, for example `./dom.js?v=5f3a09c1d2e4b687`. So a browser may keep a file for a
year, and never mixes files of two deployments.
"""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.settings.parts import deployed_parts
from ingest.web.caller import COGNITO_GROUPS, groups_claim
from ingest.web.json_schema import text
from ingest.web.routes import REFERENCE, Route, in_path
from ingest.web.served_parts import served_page

FOLDER = Path(__file__).resolve().parent.parent / "page"
INDEX, CONFIG = "index.html", "config.json"
DOCS_PATH, DOCS_FILES = "/v1/docs", ("docs.css", "docs.js")
CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
# In Accept-Encoding: gzip, unless its weight is 0.
GZIP_TAKEN = re.compile(r"(?<![\w-])gzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", re.IGNORECASE)
ASK_EACH_TIME, KEEP_FOR_A_YEAR = "no-cache", "public, max-age=31536000, immutable"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Strict-Transport-Security": "max-age=31536000",
}
logger = Logger(service="page")
PageAnswer = dict[str, Any]
HTML, ANY_MEDIA = ({"type": "string", "contentMediaType": each} for each in ("text/html", "*/*"))
FILE = in_path("file", text(pattern=r"^[a-z]+\.[a-z]+$"))
# Its handler knows files, not routes.
ROUTES = [
    Route("GetPage", "Page", "GET /", "The web page", answer=HTML, is_open=True),
    Route(
        "GetPageFile",
        "Page",
        "GET /app/{file}",
        "A file of the web page",
        [FILE],
        answer=ANY_MEDIA,
        is_open=True,
    ),
    Route("GetDocs", "Page", "GET /v1/docs", "This document as a page", answer=HTML, is_open=True),
]


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Settings of this function."""

    oidc_authority: str  # the issuer's URL; "": people bring a token in the page's address
    oidc_client_id: str
    oidc_origins: str  # further origins that the sign-in speaks to (a Cognito domain), separated by spaces


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is served."""

    content_type: str
    content: bytes
    gzipped: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class Site:
    """All files that are served, by name. version changes when any file changes."""

    files: Mapping[str, PageFile]
    version: str
    policy: str


def content_policy(config: PageSettings) -> str:
    """Return the Content-Security-Policy: it allows our own files, and the sign-in service if there is one.

    Pictures of rewards lie anywhere on the web (https), or in the book itself (data:).

    Raises ValueError for a sign-in service that is no URL.
    """
    origins = [origin_of(config.oidc_authority)] if config.oidc_authority else []
    origins += [origin_of(each) for each in config.oidc_origins.split()]
    return "; ".join(
        (
            *("default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' https: data:"),
            " ".join(("connect-src 'self'", *dict.fromkeys(origins))),
            *("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"),
            *("require-trusted-types-for 'script'", "trusted-types 'none'"),
        )
    )


def origin_of(url: str) -> str:
    """Return scheme and host of a URL: `https://login.example.com`; raises ValueError if it has none."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or set(" ;,'\"") & set(parts.netloc):
        raise ValueError(f"{url!r} is no URL of a sign-in service")
    return f"{parts.scheme}://{parts.netloc}"


def build_site(folder: Path, config: PageSettings) -> Site:
    """Read a folder's files, write the version into their links, and compress them.

    Raises KeyError for a file whose suffix is not in CONTENT_TYPES.
    """
    public_settings: dict[str, Any] = {
        "oidc_authority": config.oidc_authority,
        "oidc_client_id": config.oidc_client_id,
        "parts": sorted(deployed_parts()),
    }
    if groups_claim() != COGNITO_GROUPS:
        public_settings["groups_claim"] = groups_claim()
    texts = {path.name: path.read_text() for path in sorted(folder.iterdir())}
    texts[CONFIG] = json.dumps(public_settings)
    version = _digest(json.dumps(texts).encode())
    links = [f"{folder_part}{name}" for name in texts for folder_part in ("./", "app/")]
    files: dict[str, PageFile] = {}
    for name, content in texts.items():
        for link in links:
            content = content.replace(f'"{link}"', f'"{link}?v={version}"')  # noqa: PLW2901 (built up)
        files[name] = _file(name, content.encode())
    return Site(files, version, content_policy(config))


def _file(name: str, content: bytes) -> PageFile:
    content_type = CONTENT_TYPES[Path(name).suffix]
    return PageFile(content_type, content, gzip.compress(content, 9, mtime=0), _digest(content))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def serve_file(site: Site, event: Mapping[str, Any]) -> PageAnswer:
    """Answer a request (payload format 2.0): 200, 304 if the browser has the file, 404 if there is none."""
    name = (event.get("pathParameters") or {}).get("file")
    file = site.files.get(INDEX if name is None else name)
    if file is None or name == INDEX:  # under /app/ the links of the index would lead nowhere
        error = {"error": {"code": "not_found", "message": "there is no such file"}}
        return _answer(
            404, {"Content-Type": CONTENT_TYPES[".json"], "Cache-Control": ASK_EACH_TIME}, json.dumps(error)
        )
    return _file_answer(site, file, event)


def _file_answer(site: Site, file: PageFile, event: Mapping[str, Any]) -> PageAnswer:
    """Return a file, compressed if the browser takes that; 304 without it if the browser has it already."""
    request_headers = {key.lower(): value for key, value in (event.get("headers") or {}).items()}
    is_gzip = GZIP_TAKEN.search(request_headers.get("accept-encoding", "")) is not None
    tag = f'"{file.digest}{"-gz" if is_gzip else ""}"'
    version = (event.get("queryStringParameters") or {}).get("v")
    headers = {
        "Content-Type": file.content_type,
        "Cache-Control": KEEP_FOR_A_YEAR if version == site.version else ASK_EACH_TIME,
        "ETag": tag,
        "Vary": "Accept-Encoding",
        "Content-Security-Policy": site.policy,
    }
    if tag in [
        each.strip().removeprefix("W/") for each in request_headers.get("if-none-match", "").split(",")
    ]:
        return _answer(304, headers, "")
    if not is_gzip:
        return _answer(200, headers, file.content.decode())
    body = base64.b64encode(file.gzipped).decode()
    return _answer(200, headers | {"Content-Encoding": "gzip"}, body, is_base64=True)


def _answer(status: int, headers: Mapping[str, str], body: str, is_base64: bool = False) -> PageAnswer:
    return {
        "statusCode": status,
        "headers": {**HEADERS, **headers},
        "body": body,
        "isBase64Encoded": is_base64,
    }


@bootstrap(PageSettings)
def _parts(config: PageSettings, _client: ClientOf) -> Site:
    return build_site(FOLDER, config)


@cache
def _docs() -> PageFile:
    # It is compressed when somebody reads it first: the page itself starts fast.
    html = served_page(REFERENCE.read_text(), deployed_parts())
    for name in DOCS_FILES:
        html = html.replace(f'/{name}"', f'/{name}?v={_parts().version}"', 1)
    return _file(REFERENCE.name, html.encode())


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> PageAnswer:
    """Lambda entry: an HTTP API request, payload format 2.0. It is public: the page holds no data."""
    is_docs = event["rawPath"].endswith(DOCS_PATH)
    answer = _file_answer(_parts(), _docs(), event) if is_docs else serve_file(_parts(), event)
    if event.get("requestContext", {}).get("http", {}).get("method") == "HEAD":
        answer |= {"body": "", "isBase64Encoded": False}
    # Not the path: whoever mistypes one may have put anything into it.
    logger.info("answered", extra={"status": answer["statusCode"]})
    return answer
