"""The certificate of an erasure: what was found and removed, signed, to be checked later (rule 10).

It names the person by keyed hashes alone. Whoever has the key can check whether it is genuine, and, if they
have an id, whether it is about that person. Nobody can learn the id from it.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rules.days import stamp
from rules.privacy.erasures import Erasure, excluded_stores, nightly_plan_of, plan_of

ALGORITHM = "HMAC-SHA256"
KEY_ID_CHARACTERS = 16
SIGNATURE_FIELDS = {"algorithm", "key_id", "value"}


def certificate_of(erasure: Erasure, now: datetime) -> dict[str, Any]:
    """Return what the certificate says, unsigned. It names nobody.

    stores: for each what was found, and removed or made anonymous; by the last look nothing was left.
    """
    return {
        "certificate": "streakline erasure",
        "format": 2,
        "erasure_id": erasure.erasure_id,
        "kind": erasure.kind.value,
        "subject_digest": erasure.digest,
        "started_at": erasure.started_at,
        "finished_at": stamp(now),
        "sweeps": erasure.sweep,
        "nightly_passes": erasure.passes,
        "stores": [
            {
                "store": store.name,
                "holds": store.holds,
                "removed": erasure.found.get(store.name, 0),
                "left": 0,
                "fate": store.fate.value,
            }
            for store in (*plan_of(erasure.kind), *nightly_plan_of(erasure.kind))
        ],
        "other_stores": excluded_stores(erasure.kind),
    }


def key_id(key: str) -> str:
    """Return what distinguishes keys without revealing them."""
    return hashlib.sha256(f"certificate\x1f{key}".encode()).hexdigest()[:KEY_ID_CHARACTERS]


def sign_certificate(certificate: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a certificate with its signature. It must be JSON without floats."""
    body = {name: each for name, each in certificate.items() if name != "signature"}
    signature = {"algorithm": ALGORITHM, "key_id": key_id(key), "value": _mac(body, key)}
    return {**body, "signature": signature}


def problem_of(certificate: Any, key: str) -> str | None:
    """Return why a certificate is not genuine; None if it is."""
    if not isinstance(certificate, dict) or not isinstance(certificate.get("signature"), dict):
        return "it has no signature"
    signature = certificate["signature"]
    if problem := _signature_problem(signature, key):
        return problem
    body = {name: each for name, each in certificate.items() if name != "signature"}
    try:
        right = _mac(body, key)
    except (TypeError, ValueError, RecursionError):
        return "it is no plain JSON"
    if not hmac.compare_digest(right.encode(), str(signature.get("value")).encode(errors="replace")):
        return "it was changed after it was signed"
    return None


def _signature_problem(signature: Mapping[str, Any], key: str) -> str | None:
    if unsigned := sorted(signature.keys() - SIGNATURE_FIELDS):
        return f"its signature has fields that nobody signed: {', '.join(unsigned)}"
    if signature.get("algorithm") != ALGORITHM:
        return f"its signature is not by {ALGORITHM}"
    return None if signature.get("key_id") == key_id(key) else "it was signed with another key"


def _mac(body: Mapping[str, Any], key: str) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hmac.new(key.encode(), f"certificate\x1f{text}".encode(), hashlib.sha256).hexdigest()
