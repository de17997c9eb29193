"""The type of notification that a lead leads to."""

from rules.outgoing.notice_kinds import NoticeKind
from rules.parts import Part

LEAD_UPDATED = "lead.updated"  # its features, or the root whose leaf it is, have changed
HOLDER = "lead/"
KINDS = (
    NoticeKind(
        LEAD_UPDATED,
        Part.LEADS,
        HOLDER,
        "lead_id",
        {
            **dict.fromkeys(("lead_id", "organization_id", "merged_into", "computed_at"), str),
            "number": int,
        },
    ),
)


def lead_holder(lead_organization_id: str) -> str:
    """Return the holder of a lead's notifications."""
    return HOLDER + lead_organization_id
