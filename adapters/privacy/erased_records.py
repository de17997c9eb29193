"""Whether a record of a table's stream is of somebody who was erased (rule 10)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from adapters.privacy.tombstones import Erased
from rules.days import stamp
from rules.privacy.tombstones import lead_subject, user_subject

# Whose an item is. No item has two of these of two persons; a stock is a holder, too, that nobody is called.
OF_USER, OF_LEAD = ("user_id", "account_id", "owner", "holder"), "lead_organization_id"


def is_erased_record(record: Mapping[str, Any], erased: Erased) -> bool:
    """Whether a change is of somebody who was erased, and came before that was lifted, if it was."""
    change = record["dynamodb"]
    if not (subject := subject_of(change.get("NewImage", {}))):
        return False
    try:
        arrived = datetime.fromtimestamp(float(change["ApproximateCreationDateTime"]), UTC)
    except (KeyError, TypeError, ValueError):
        found = erased.of(subject)
        return found is not None and found.stands
    return erased.forbids(subject, stamp(arrived))


def subject_of(image: Mapping[str, Any]) -> str:
    """Return what is hashed of the person whose item it is; "" if it tells of nobody by name."""
    for name in OF_USER:
        if user := image.get(name, {}).get("S"):
            return user_subject(user)
    lead = image.get(OF_LEAD, {}).get("S")
    return lead_subject(lead) if lead else ""
