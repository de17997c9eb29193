"""Vendors: they sign as their documentation says, with their own code and not with ours."""

import base64
import hashlib
import hmac
from datetime import datetime
from functools import cache

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_der_private_key

from ingest.leads.sources import source_named
from local.leads.hooks import new_key_pair
from rules.leads.webhook_signatures import Algorithm, SignedPart


@cache
def secret_of(source: str, name: str) -> tuple[str, str]:
    """A secret as the vendor holds it and as we do: the same text, but for SendGrid's pair of keys."""
    if source == "email_campaign":
        return new_key_pair()
    digest = hashlib.sha256(f"{source} {name}".encode()).digest()
    shared = f"whsec_{base64.b64encode(digest).decode()}" if source == "generic" else digest.hex()
    return shared, shared


def headers_of(
    source: str, body: bytes, secret: str, at: datetime, *, delivery: str = "d-1", topic: str = ""
) -> dict[str, str]:
    """The headers of a delivery, names in lower case, as the vendor of a source sends them."""
    when = str(int(at.timestamp()))
    if source == "ecommerce":
        digest = hmac.new(secret.encode(), body, hashlib.sha256).digest()
        return {
            "content-type": "application/json",
            "x-shopify-topic": topic or "orders/create",
            "x-shopify-hmac-sha256": base64.b64encode(digest).decode(),
            "x-shopify-shop-domain": "acme.myshopify.com",
            "x-shopify-api-version": "2026-10",
            "x-shopify-webhook-id": delivery,
            "x-shopify-triggered-at": at.isoformat(),
        }
    if source == "whatsapp":
        hexadecimal = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        return {"content-type": "application/json", "x-hub-signature-256": f"sha256={hexadecimal}"}
    if source == "email_campaign":
        key = load_der_private_key(base64.b64decode(secret), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        signed = key.sign(when.encode() + body, ec.ECDSA(hashes.SHA256()))
        return {
            "content-type": "application/json",
            "x-twilio-email-event-webhook-signature": base64.b64encode(signed).decode(),
            "x-twilio-email-event-webhook-timestamp": when,
        }
    if source != "generic":
        return _as_declared(source, body, secret, when, delivery)
    key_bytes = base64.b64decode(secret.removeprefix("whsec_"))
    message = f"{delivery}.{when}.".encode() + body
    digest = hmac.new(key_bytes, message, hashlib.sha256).digest()
    return {
        "content-type": "application/json",
        "webhook-id": delivery,
        "webhook-timestamp": when,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _as_declared(source: str, body: bytes, secret: str, when: str, delivery: str) -> dict[str, str]:
    """A vendor that nobody has written down here signs by HMAC with the secret's characters, as its source says."""
    scheme = source_named(source).signature
    assert scheme is not None
    assert scheme.algorithm is Algorithm.HMAC_SHA256, f"{source} needs a sender of its own here"
    assert not scheme.base64_secret, f"{source} needs a sender of its own here"
    parts = {SignedPart.BODY: body, SignedPart.TIMESTAMP: when.encode(), SignedPart.ID: delivery.encode()}
    message = b"".join(each if isinstance(each, bytes) else parts[each] for each in scheme.message)
    digest = hmac.new(secret.encode(), message, hashlib.sha256).digest()
    signature = digest.hex() if scheme.is_hex else base64.b64encode(digest).decode()
    headers = {"content-type": "application/json", scheme.header: scheme.prefix + signature}
    more = {scheme.timestamp_header: when, scheme.id_header: delivery}
    return headers | {name: value for name, value in more.items() if name}
