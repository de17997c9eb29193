"""Errors of AWS and of its clients, as sentences that say what to do."""

from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError

AwsError = (BotoCoreError, ClientError)
CREDENTIALS = "set AWS_PROFILE or AWS_ACCESS_KEY_ID, or sign in with `aws sso login`"
KINDS: tuple[tuple[tuple[type[BotoCoreError], ...], str], ...] = (
    (
        (exceptions.NoCredentialsError, exceptions.PartialCredentialsError),
        f"there are no credentials of AWS: {CREDENTIALS}",
    ),
    ((exceptions.NoRegionError,), "no region is known: say --region, or set AWS_REGION"),
    ((exceptions.ProfileNotFound,), f"the profile is not there: {CREDENTIALS}"),
    (
        (
            exceptions.SSOError,
            exceptions.TokenRetrievalError,
            exceptions.CredentialRetrievalError,
        ),
        f"the credentials cannot be had: {CREDENTIALS}",
    ),
    (
        (exceptions.EndpointConnectionError, exceptions.ConnectTimeoutError, exceptions.InvalidRegionError),
        "AWS cannot be reached: is the region's name right (--region), and the network there?",
    ),
)
REFUSED = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


def sentence(error: Exception) -> str:
    """Return what went wrong, and what to do about it if that is known."""
    if isinstance(error, ClientError):
        return _answered(error)
    for kinds, text in KINDS:
        if isinstance(error, kinds):
            return f"{text} ({error})"
    return f"{error}" or type(error).__name__


def _answered(error: ClientError) -> str:
    told = error.response.get("Error", {})
    code, message = told.get("Code", "unknown"), told.get("Message", "")
    if code in REFUSED:
        return f"AWS does not accept these credentials ({code}): {CREDENTIALS}"
    if code.startswith("AccessDenied") or code == "UnauthorizedOperation":
        return f"these credentials may not do {error.operation_name}: {message}"
    return f"{error.operation_name}: {code}: {message}"
