"""Explains errors of AWS in one sentence: what went wrong, and what to do about it if that is known."""

from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

AWS_ERRORS = (BotoCoreError, ClientError)
LOOPBACK = "127.0.0.1"  # stands in errors of the laptop cloud
CREDENTIALS = "set AWS_PROFILE or AWS_ACCESS_KEY_ID, or sign in with `aws sso login`"
ERROR_TEXTS: tuple[tuple[tuple[type[BotoCoreError], ...], str], ...] = (
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
REFUSED_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


def explain_error(error: Exception) -> str:
    """Return the sentence for an error."""
    if isinstance(error, ClientError):
        return _explain_refusal(error)
    if LOOPBACK in str(error) or isinstance(error, HTTPError):
        where = "laptop cloud" if LOOPBACK in str(error) else "service"
        return f"the {where} does not answer: `streakline status` says why ({_cause(error)})"
    for kinds, text in ERROR_TEXTS:
        if isinstance(error, kinds):
            return f"{text} ({error})"
    return f"{error}" or type(error).__name__


def _cause(error: Exception) -> str:
    """Return an error's last part: urllib3 puts the connection before it, as `<...>: `."""
    return str(error).rpartition(">: ")[2] or type(error).__name__


def _explain_refusal(error: ClientError) -> str:
    """Return the sentence for an error that a service answered with."""
    reason = error.response.get("Error", {})
    code, message = reason.get("Code", "unknown"), reason.get("Message", "")
    if code in REFUSED_CREDENTIALS:
        return f"AWS does not accept these credentials ({code}): {CREDENTIALS}"
    if code.startswith("AccessDenied") or code == "UnauthorizedOperation":
        return f"these credentials may not do {error.operation_name}: {message}"
    return f"{error.operation_name}: {code}: {message}"
