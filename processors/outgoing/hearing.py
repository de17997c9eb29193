"""Reads from records of streams what may have to be told, and of whom."""

from adapters.engagement.account_items import profile_from
from adapters.engagement.rewards import redemption_from
from adapters.leads.feature_store import feature_item_from
from adapters.platform.items import plain
from processors.batches import Record
from rules.book.rewards import Fulfilment, Redemption
from rules.engagement.account_state import Profile
from rules.leads.feature_items import FeatureItem
from rules.outgoing.notices import lead_holder, question_holder
from rules.questions.questions import Question, from_item

Change = Profile | Redemption | FeatureItem | Question


def heard(record: Record) -> tuple[str, Change] | None:
    """Return what a record says, and of which holder; None: nothing that is told.

    Raises KeyError, TypeError, ValueError and AttributeError for what cannot be read.
    """
    image = record["dynamodb"].get("NewImage")
    if not image:
        return None
    if "lead_organization_id" in image:
        item = feature_item_from(image)
        return lead_holder(item.lead_organization_id), item
    if "question_id" in image:
        question = from_item(plain(image))
        return question_holder(question.question_id), question
    if "place" not in image:
        profile = profile_from(plain(image))
        return profile.user_id, profile
    if record["eventName"] != "INSERT" or "fulfilment" not in image:
        return None
    found = redemption_from(image)
    return (found.user_id, found) if found.fulfilment is Fulfilment.REQUESTED else None
