"""The laptop's token issuer: it has a key pair, and serves the public key from a bucket of the emulator.

The template takes the issuer as a parameter instead of creating a Cognito pool. The API's authorizer verifies
signature, issuer, audience and expiry as it does on AWS. A Cognito pool would choose each user's `sub`
itself, so `--user ann` would not be possible.
"""

import json
import time

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from local.paths import LOCAL, write_secret
from local.sign_in_key import issuer_documents, new_private_key, public_jwk
from local.stack import Stack

AUDIENCE = "streakline-laptop"
BUCKET = "streakline-issuer"
KEY_ID = "laptop"
KEY_FILE = LOCAL / "issuer.pem"
LIFETIME_SECONDS = 12 * 3600


def issuer(endpoint_url: str) -> str:
    """Return the issuer's URL."""
    return f"{endpoint_url}/{BUCKET}"


def publish(stack: Stack) -> None:
    """Serve the public key at the address where the authorizer looks for it."""
    s3 = stack.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.delete_public_access_block(Bucket=BUCKET)
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{BUCKET}/*",
    }
    s3.put_bucket_policy(
        Bucket=BUCKET, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    )
    key = public_jwk(_key().public_key(), KEY_ID)
    for path, text in issuer_documents(issuer(stack.endpoint_url), [key]).items():
        s3.put_object(Bucket=BUCKET, Key=path, Body=text.encode())


def token(stack: Stack, user_id: str, *groups: str) -> str:
    """Return an access token (JWT) for 12 hours. Its sub is the user, who is a member of these groups."""
    now = int(time.time())
    claims = {
        "iss": issuer(stack.endpoint_url),
        "aud": AUDIENCE,
        "sub": user_id,
        "iat": now,
        "exp": now + LIFETIME_SECONDS,
        "token_use": "access",
    }
    if groups:
        claims["cognito:groups"] = list(groups)
    return jwt.encode(claims, _key(), algorithm="RS256", headers={"kid": KEY_ID})


def _key() -> rsa.RSAPrivateKey:
    """Return the private key; make it when first needed, readable by this user only."""
    if not KEY_FILE.exists():
        write_secret(KEY_FILE, new_private_key()[1])
    key = serialization.load_pem_private_key(KEY_FILE.read_bytes(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key
