"""How a process shows RDS who it is (a token), and how it checks RDS (certificate authorities)."""

import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from urllib.parse import quote

import botocore
import botocore.session
from botocore.model import ServiceId
from botocore.signers import RequestSigner

TOKEN_SECONDS = 900
BUNDLE = "rds-global-bundle.pem"


def token(host: str, port: int, user: str) -> str:
    """Return what RDS takes as a password: a request to connect, signed by the process's AWS role.

    It opens connections for 15 minutes. We sign it here, because a client of RDS would load its service
    model.
    """
    session = botocore.session.get_session()
    region = session.get_config_variable("region") or os.environ["AWS_REGION"]
    credentials = session.get_credentials()
    if credentials is None:
        raise RuntimeError("there are no AWS credentials to sign a database token with")
    events = session.get_component("event_emitter")
    signer = RequestSigner(ServiceId("rds-db"), region, "rds-db", "v4", credentials, events)
    request = {
        "method": "GET",
        "url": f"https://{host}:{port}/?Action=connect&DBUser={quote(user)}",
        "body": {},
        "headers": {},
        "context": {},
    }
    signed: str = signer.generate_presigned_url(request, "connect", TOKEN_SECONDS, region)
    return signed.removeprefix("https://")


@cache
def authorities() -> str:
    """Return a file of the authorities that sign for RDS: its own for instances, common ones for RDS Proxy.

    Raises FileNotFoundError if the layer was built without RDS's (infra/layer/rds-bundle).
    """
    bundles = [path for folder in sys.path if (path := Path(folder) / BUNDLE).is_file()]
    if not bundles:
        raise FileNotFoundError(
            f"{BUNDLE} is not in the function's layer, so RDS's certificate cannot be checked: build the"
            " layer again, without LAYER_RDS_BUNDLE"
        )
    files = [Path(botocore.__file__).parent / "cacert.pem", bundles[0]]
    with tempfile.NamedTemporaryFile(suffix=".pem", delete=False) as out:
        out.write(b"\n".join(each.read_bytes() for each in files))
    return out.name
