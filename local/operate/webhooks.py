"""`streakline hook` and `streakline webhooks`: addresses that vendors send to, and endpoints that the
stack sends to.
"""

import argparse
import base64
import json
import secrets
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from adapters import clock
from adapters.leads.ecdsa import new_key_pair, public_key
from adapters.leads.hook_store import HookExists, HookStore, NoHook
from adapters.outgoing.endpoint_store import EndpointStore
from ingest.leads import sources
from ingest.leads.hooks import CACHE_SECONDS, REREAD_SECONDS
from ingest.leads.lead_schemas import ORGANIZATION
from ingest.leads.sources import Source
from ingest.web.validate import first_problem
from local.operate.functions import invoke
from local.operate.redrive import redrive
from local.stack import Stack
from rules.days import parse_moment, stamp
from rules.leads.hooks import STANDARD_PREFIX, Algorithm, Hook, HookSecret, challenge_token, rotate_hook

SECRET_BYTES = 32
SECRET_CHARACTERS_MIN = 16


def run_hook(arguments: argparse.Namespace, stack: Stack) -> None:
    """Carry out one action; prints JSON, one line a hook. Raises RuntimeError for what cannot be done."""
    store = HookStore(stack.client("secretsmanager"), stack.output("HookSecretPrefix", "webhooks"))
    if arguments.action == "list":
        for hook in store.all():
            if arguments.organization in (None, hook.organization_id):
                _tell(_listed(stack, hook))
        return
    if not arguments.organization or not arguments.source:
        raise RuntimeError(f"`hook {arguments.action}` needs --organization and --source")
    if problem := first_problem({"type": "string", "pattern": ORGANIZATION}, arguments.organization):
        raise RuntimeError(f"--organization {problem[1]}")
    if arguments.source not in sources.names():
        raise RuntimeError(f"--source must be one of {', '.join(sources.names())}")
    try:
        ACTIONS[arguments.action](store, arguments, stack)
    except NoHook as missing:
        raise RuntimeError(f"there is no hook of {missing}: `streakline hook add` makes one") from None
    except HookExists as there:
        raise RuntimeError(
            f"there is a hook of {there} already: `hook rotate` changes its secret, `hook remove` ends it"
        ) from None


def _add(store: HookStore, arguments: argparse.Namespace, stack: Stack) -> None:
    read = sources.source_named(arguments.source)
    if read.from_browser is None and read.signature is None:
        raise RuntimeError(f"{arguments.source} names no signature: it takes no webhooks here")
    checked, told = _secret(read, arguments.secret_file)
    hook = Hook(
        arguments.organization,
        arguments.source,
        (HookSecret(checked),),
        tuple(map(_origin, arguments.origin)),
        arguments.thanks,
        per_minute=arguments.per_minute,
    )
    if read.from_browser is not None and not hook.origins:
        raise RuntimeError("a form needs --origin, the page that may send it: https://shop.example")
    store.create(hook)
    time.sleep(REREAD_SECONDS)
    _tell({"url": _url(stack, hook), **told})


def _rotate(store: HookStore, arguments: argparse.Namespace, stack: Stack) -> None:
    hook = store.get(arguments.organization, arguments.source)
    checked, told = _secret(sources.source_named(arguments.source), arguments.secret_file)
    after = rotate_hook(hook, checked, clock.now(), timedelta(hours=max(0, arguments.overlap_hours)))
    store.replace(after)
    time.sleep(REREAD_SECONDS)
    ends = [each.until for each in after.secrets[1:]]
    _tell({"url": _url(stack, hook), **told, "old_secret_until": ends[0] if ends else None})


def _remove(store: HookStore, arguments: argparse.Namespace, stack: Stack) -> None:
    hook = store.get(arguments.organization, arguments.source)
    store.remove(arguments.organization, arguments.source)
    _tell({"removed": _url(stack, hook), "closed_within_seconds": int(CACHE_SECONDS)})


ACTIONS = {"add": _add, "rotate": _rotate, "remove": _remove}


def _secret(read: Source, file: str | None) -> tuple[str, dict[str, Any]]:
    """Return what the function checks with, and what the operator is told."""
    given = _given(read, file) if file else None
    is_public = read.signature is not None and read.signature.algorithm is Algorithm.ECDSA_SHA256
    told: dict[str, Any] = {}
    if is_public and given is None:
        secret, checked = new_key_pair()
        told = {"public_key": checked}
    else:
        secret = checked = given or _new(read)
    if read.challenge is not None:
        told["verify_token"] = challenge_token(checked)
    # Nobody signs a form, and the vendor's own secret need not be shown to whoever gave it.
    is_shown = read.signature is not None and given is None
    return checked, {"secret": secret if is_shown else None, **told}


def _new(read: Source) -> str:
    if read.signature is not None and read.signature.base64_secret:
        return STANDARD_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    return secrets.token_hex(SECRET_BYTES)


def _given(read: Source, file: str) -> str:
    """Read the vendor's secret or public key; raises RuntimeError, without quoting it."""
    text = (sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")).strip()
    scheme = read.signature
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


def _origin(text: str) -> str:
    """Read an origin; raises RuntimeError."""
    url = urlsplit(text)
    origin = f"{url.scheme}://{url.netloc}".lower()
    if url.scheme not in ("http", "https") or not url.netloc or text.rstrip("/").lower() != origin:
        raise RuntimeError(f"--origin must be like https://shop.example, without a path: {text}")
    return origin


def _url(stack: Stack, hook: Hook) -> str:
    return f"{stack.api_url}/v1/hooks/{hook.organization_id}/{hook.source}"


def _listed(stack: Stack, hook: Hook) -> dict[str, Any]:
    """Return what may be told of a hook: no secret, and the secrets' ends."""
    ends = [each.until for each in hook.secrets]
    told: dict[str, Any] = {"organization": hook.organization_id, "source": hook.source}
    forms = {"origins": hook.origins, "thanks": hook.thanks, "per_minute": hook.per_minute}
    more = forms if hook.origins else {}
    return {**told, "url": _url(stack, hook), "secrets_until": ends, **more}


def _tell(found: Mapping[str, Any]) -> None:
    print(json.dumps(found))


# `streakline webhooks`: endpoints of outgoing webhooks, what they did not take, and sending it again.


CONSUMER = "deliveries"


def run_webhooks(arguments: argparse.Namespace, stack: Stack) -> None:
    """Carry out one action; prints JSON. Raises RuntimeError for what cannot be done."""
    if arguments.action == "list":
        store = EndpointStore(stack.client("dynamodb"), stack.tables["WebhookEndpoints"])
        for each in store.all():
            about = {"endpoint_id": each.endpoint_id, "url": each.url, "disabled": each.disabled}
            _tell_plain({**about, "organization_id": each.organization_id})
        _tell_plain(redrive(stack, only_list=True, only=CONSUMER))
    elif _named(arguments) or arguments.endpoint or arguments.since:
        _tell_plain(_of_one(arguments, stack))
    else:
        _tell_plain(redrive(stack, only=CONSUMER))


def _named(arguments: argparse.Namespace) -> dict[str, str]:
    """Return whose notifications are meant, as messages name them."""
    named = {"user_id": arguments.user, "lead_id": arguments.lead, "question_id": arguments.question}
    return {name: each for name, each in named.items() if each}


def _of_one(arguments: argparse.Namespace, stack: Stack) -> Mapping[str, Any]:
    named = _named(arguments)
    if not arguments.endpoint or len(named) != 1:
        raise RuntimeError(
            "replay takes --endpoint with --user, --lead or --question;"
            " without them it sends what is in DeliveryFailures"
        )
    asked = {"endpoint_id": arguments.endpoint, **named}
    if arguments.since:
        try:
            asked["since"] = stamp(parse_moment(arguments.since).utc)
        except ValueError as error:
            raise RuntimeError(f"--since {error}") from None
    payload = {"Records": [{"messageId": "replay", "body": json.dumps(asked)}], "streakline_redrive": True}
    if failure := invoke(
        stack, stack.output("WebhookDeliveryFunctionName", "outgoing webhooks"), payload
    ).failure():
        raise RuntimeError(failure)
    return {"replayed": asked}


def _tell_plain(told: Mapping[str, Any]) -> None:
    print(json.dumps(told))
