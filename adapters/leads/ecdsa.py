"""ECDSA signatures, checked by the library `cryptography`. Only the hooks' layer contains it."""

import base64
import binascii

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_public_key,
)


class BadPublicKey(ValueError):
    """A text is no public key of an elliptic curve (SubjectPublicKeyInfo in DER, base64)."""


def public_key(text: str) -> ec.EllipticCurvePublicKey:
    """Read a public key; raises BadPublicKey."""
    try:
        key = load_der_public_key(base64.b64decode(text, validate=True))
    except (ValueError, TypeError, binascii.Error, UnsupportedAlgorithm):
        raise BadPublicKey("is no public key in DER, base64") from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise BadPublicKey("is the public key of another algorithm than ECDSA")
    return key


def ecdsa_check(message: bytes, signature: bytes, key_text: str) -> bool:
    """Return whether a signature (DER) over SHA-256 was made by the private key of a public key's pair.

    key_text: the public key, as public_key reads it. Raises BadPublicKey.
    """
    try:
        public_key(key_text).verify(signature, message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def new_key_pair() -> tuple[str, str]:
    """Make keys on the curve P-256; returns private (PKCS 8) and public key, both DER in base64."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(private).decode(), base64.b64encode(public).decode()
