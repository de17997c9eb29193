"""The tables of leads that another region follows (rules/regions/changes.py)."""

from rules.regions.followed_tables import FollowedTable, UnseenPolicy

TABLES = {
    "Event": FollowedTable(("lead_organization_id", "occurred_at#id"), UnseenPolicy.CARRIED),
    "Memory": FollowedTable(("lead_organization_id", "memory_type#key"), UnseenPolicy.DERIVED),
    "Feature": FollowedTable(("lead_organization_id",), UnseenPolicy.DERIVED),
    "GroupEvents": FollowedTable(("root_id", "event_type#occurred_at#id"), UnseenPolicy.DERIVED),
}
