"""The tables of questions that another region follows (rules/regions/changes.py)."""

from rules.regions.followed_tables import FollowedTable, UnseenPolicy

TABLES = {
    "Questions": FollowedTable(("question_id",), UnseenPolicy.LISTED),
    "Responses": FollowedTable(("question_id", "response_id"), UnseenPolicy.LISTED),
    "Subscriptions": FollowedTable(("subscription_id",), UnseenPolicy.LISTED),
    "UserStats": FollowedTable(("fingerprint_hash",), UnseenPolicy.DERIVED),
}
