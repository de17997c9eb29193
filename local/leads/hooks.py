"""`streakline hook`: addresses that vendors' webhooks come to, and their secrets."""

import base64
import functools
import secrets
import sys
import time
import unicodedata
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from adapters import clock
from adapters.hook_store import HookExists, HookStore, NoHook
from ingest.leads import sources
from ingest.leads.hooks import CACHE_SECONDS, NULL_ORIGIN, NULL_REASON, REREAD_SECONDS, public_key
from ingest.leads.sources import Source
from ingest.web.json_schema import ORGANIZATION
from ingest.web.validate import first_problem
from local.command import Function, Reader, command, option
from local.stack import Stack
from rules.hooks import FORMS_PER_MINUTE, OVERLAP, Hook, HookSecret, rotate_hook
from rules.leads.webhook_signatures import STANDARD_PREFIX, Algorithm, challenge_token

SECRET_BYTES = 32
PORTS = {"https": 443, "http": 80}  # a browser leaves them out of an origin
OVERLAP_HOURS = int(OVERLAP.total_seconds() // 3600)
SECRET_CHARACTERS_MIN = 16


def _organization(text: str) -> str:
    if problem := first_problem({"type": "string", "pattern": ORGANIZATION}, text):
        raise ValueError(problem[1])
    return text


def _origin(text: str) -> str:
    """Return a page's origin as a browser sends it: in small letters and ASCII, without a usual port."""
    if text.strip().lower() == NULL_ORIGIN:
        raise ValueError(f"{NULL_REASON}. Then name the page itself, such as https://shop.example")
    try:
        url = urlsplit(text.strip())
        host, port = url.hostname or "", url.port
        ascii_host = host.encode("idna").decode() if ":" not in host else f"[{host}]"
        if not host.isascii() and ascii_host.encode().decode("idna") != unicodedata.normalize("NFKC", host):
            raise click.UsageError(f"{host}: write it as browsers send it, such as xn--strae-oqa.example")
        host = ascii_host
    except ValueError:
        host = ""
    if (
        not host
        or url.scheme not in PORTS
        or "@" in url.netloc
        or (url.path.rstrip("/") + url.query + url.fragment)
    ):
        raise ValueError("must be like https://shop.example, without a path")
    if "*" in host:
        raise ValueError("must name each page, such as https://shop.example: there are no wildcards")
    return f"{url.scheme}://{host}" + ("" if port in (None, PORTS[url.scheme]) else f":{port}")


ORGANIZATION_NAME, ORIGIN = Reader("organization", _organization), Reader("origin", _origin)


def organization_source(function: Function) -> Function:
    """Give a command the options that name an address. It raises RuntimeError for NoHook and HookExists."""

    @functools.wraps(function)
    def with_checks(organization: str, source: str, **values: Any) -> Any:
        try:
            return function(organization=organization, source=source, **values)
        except NoHook as error:
            raise RuntimeError(f"there is no hook of {error}: `streakline hook add` makes one") from None
        except HookExists as error:
            raise RuntimeError(
                f"there is a hook of {error} already: `hook rotate` changes its secret, `hook remove` ends it"
            ) from None

    add_organization = option(
        "--organization", metavar="ORG", type=ORGANIZATION_NAME, required=True, help="whose leads they are"
    )
    add_source = option(
        "--source",
        type=click.Choice(sources.names()),
        required=True,
        help="whose webhooks, or a page's forms",
    )
    decorated: Function = add_organization(add_source(with_checks))
    return decorated


secret_option = option(
    "--secret-file",
    metavar="FILE",
    help="the vendor's own secret or public key; -: stdin",
    show_default="a new one",
)


@command(
    "hook add --organization shop --source ecommerce",
    "hook add --organization shop --source web_form --origin https://shop.example",
)
@organization_source
@secret_option
@option("--origin", "origins", type=ORIGIN, multiple=True, help="a page that may send forms; repeatable")
@option("--thanks", metavar="URL", help="where a browser goes after a form")
@option("--per-minute", default=FORMS_PER_MINUTE, help="forms that one IP address sends")
def add(
    *,
    stack: Stack,
    organization: str,
    source: str,
    secret_file: str | None,
    origins: Sequence[str],
    thanks: str | None,
    per_minute: int,
) -> Any:
    """Make an address for a vendor's webhooks; print it with its secret."""
    definition = sources.source_named(source)
    if definition.from_browser is None and definition.signature is None:
        raise RuntimeError(f"{source} names no signature: it takes no webhooks here")
    check_key, secret_view = _secret(definition, secret_file)
    hook = Hook(
        organization,
        source,
        (HookSecret(check_key),),
        tuple(origins),
        thanks,
        per_minute=per_minute,
    )
    if definition.from_browser is not None and not hook.origins:
        raise click.UsageError("a form needs --origin, the page that may send it: https://shop.example")
    _hooks(stack).create(hook)
    _await_readers()
    return {"url": _url(stack, hook), **secret_view}


@command("hook list", "hook list --organization shop")
@option("--organization", metavar="ORG", help="only this one's", show_default="all")
def list_hooks(stack: Stack, organization: str | None) -> Any:
    """Print all addresses, without their secrets."""
    hooks = [hook for hook in _hooks(stack).all() if organization in (None, hook.organization_id)]
    return [_hook_view(stack, hook) for hook in hooks]


@command("hook rotate --organization shop --source ecommerce --overlap-hours 48")
@organization_source
@secret_option
@option(
    "--overlap-hours",
    type=click.IntRange(min=0),
    default=OVERLAP_HOURS,
    help="how long the old secret is taken, too",
)
def rotate(
    *,
    stack: Stack,
    organization: str,
    source: str,
    secret_file: str | None,
    overlap_hours: int,
) -> Any:
    """Change an address's secret."""
    store = _hooks(stack)
    hook = store.get(organization, source)
    check_key, secret_view = _secret(sources.source_named(source), secret_file)
    rotated = rotate_hook(hook, check_key, clock.now(), timedelta(hours=overlap_hours))
    store.replace(rotated)
    _await_readers()
    ends = [secret.until for secret in rotated.secrets[1:]]
    return {"url": _url(stack, hook), **secret_view, "old_secret_until": ends[0] if ends else None}


@command("hook remove --organization shop --source ecommerce")
@organization_source
def remove(stack: Stack, organization: str, source: str) -> Any:
    """End an address."""
    store = _hooks(stack)
    hook = store.get(organization, source)
    store.remove(organization, source)
    return {"removed": _url(stack, hook), "closed_within_seconds": int(CACHE_SECONDS)}


def _hooks(stack: Stack) -> HookStore:
    return HookStore(stack.client("secretsmanager"), stack.output("HookSecretPrefix", "leads"))


def _await_readers() -> None:
    """Wait until a change counts in every process of the API.

    A process reads a hook again for a request that does not fit what it remembers, but once in REREAD_SECONDS
    at most. So whoever is given the address or secret before that might be refused.
    """
    time.sleep(REREAD_SECONDS)


def _secret(definition: Source, file: str | None) -> tuple[str, dict[str, Any]]:
    """Return the secret or public key that signatures are checked with, and what the operator gets to see.

    file: with the vendor's own; None: a new one is made.
    """
    vendor_secret = _vendor_secret(definition, file) if file else None
    is_public = definition.signature is not None and definition.signature.algorithm is Algorithm.ECDSA_SHA256
    secret_view: dict[str, Any] = {}
    if is_public and vendor_secret is None:
        secret, check_key = new_key_pair()
        secret_view = {"public_key": check_key}
    else:
        secret = check_key = vendor_secret or _new_secret(definition)
    if definition.challenge is not None:
        secret_view["verify_token"] = challenge_token(check_key)
    # Nobody signs a form, and the vendor's own secret need not be shown to whoever gave it.
    is_shown = definition.signature is not None and vendor_secret is None
    return check_key, {"secret": secret if is_shown else None, **secret_view}


def new_key_pair() -> tuple[str, str]:
    """Make keys on the curve P-256; returns private (PKCS 8) and public key, both DER in base64."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(private).decode(), base64.b64encode(public).decode()


def _new_secret(definition: Source) -> str:
    if definition.signature is not None and definition.signature.base64_secret:
        return STANDARD_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    return secrets.token_hex(SECRET_BYTES)


def _vendor_secret(definition: Source, file: str) -> str:
    """Return the vendor's secret or public key; raises RuntimeError, which never quotes it."""
    text = (sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")).strip()
    scheme = definition.signature
    if scheme is None:
        raise RuntimeError("nobody signs a form: it takes no --secret-file")
    try:
        if scheme.algorithm is Algorithm.ECDSA_SHA256:
            text = "".join(line for line in text.splitlines() if not line.startswith("-----"))
            public_key(text)
        elif scheme.base64_secret:
            base64.b64decode(text.removeprefix(STANDARD_PREFIX), validate=True)
    except ValueError as error:
        raise RuntimeError(f"the secret cannot be one of this source: {error}") from None
    if len(text) < SECRET_CHARACTERS_MIN or not text.isprintable():
        raise RuntimeError(f"a secret is a line of at least {SECRET_CHARACTERS_MIN} characters")
    return text


def _url(stack: Stack, hook: Hook) -> str:
    return f"{stack.api_url}/v1/hooks/{hook.organization_id}/{hook.source}"


def _hook_view(stack: Stack, hook: Hook) -> dict[str, Any]:
    ends = [secret.until for secret in hook.secrets]
    view: dict[str, Any] = {"organization": hook.organization_id, "source": hook.source}
    forms = {"origins": hook.origins, "thanks": hook.thanks, "per_minute": hook.per_minute}
    more = forms if hook.origins else {}
    return {**view, "url": _url(stack, hook), "secrets_until": ends, **more}
