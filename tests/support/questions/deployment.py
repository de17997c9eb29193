"""Parameters with which a deployment tells phones (tests/support/template.py)."""

from infra.intrinsics import REGION
from infra.stacks import ACCOUNT, PARTITION

PHONES = f"arn:{PARTITION}:sns:{REGION}:{ACCOUNT}:app/GCM/phones"
PARAMETERS = {"PlatformApplicationArn": PHONES}
