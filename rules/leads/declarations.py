"""By which declarations a lead's state was kept: a digest that is stored with the state.

A state keeps only what the features declared at the time need. Example: the longest window is 365 dates. Then
an order of 500 days ago stays in the totals, but its date is dropped. A feature that is declared later with a
window of 730 dates would be computed without that order, and nothing would tell. The digest tells: a state
that has another digest, or none, is built again from the stored events. That is one reading of the lead's
events, once for each change of the declarations.

An item has one digest and not one for each input: whichever input is built, all events of the lead are read,
so all inputs are built from that one reading. Only the live path knows the digest. The lake has no column for
it, because the warehouse computes features from the events, by the declarations of the day.
"""

import hashlib
import json
from collections.abc import Iterable

from rules.leads.features import CAMPAIGN_DAYS_MAX, FEATURES, TRIGGERS, Feature
from rules.leads.series import AMOUNT_MINOR_MAX, ID_CHARACTERS, SEEN_MAX, SENTIMENT_MILLI_MAX

# Add one when code changes what the same declarations keep or give: what an event contributes, how an
# aggregate is computed, or how a series is written as text.
STATE_VERSION = 3
CHARACTERS = 8
DECLARED = "declared"  # the digest's name among the stored inputs


def digest(features: Iterable[Feature]) -> str:
    """Return 8 hexadecimal characters that say what a state keeps and what is computed from it.

    The names of features are part of it, so that a feature that is new needs no event to appear. Their
    documentation and their order are not, nor is the campaigns' grace: a state has the unanswered campaigns
    of the whole window, so a deployment may change the grace and each state stays right.
    """
    told = {
        "state": (STATE_VERSION, SEEN_MAX, ID_CHARACTERS, AMOUNT_MINOR_MAX, SENTIMENT_MILLI_MAX),
        "campaigns": CAMPAIGN_DAYS_MAX,
        "triggers": {input_: sorted(types) for input_, types in TRIGGERS.items()},
        "features": {
            each.name: (each.input, each.aggregate, each.unit, each.window_days) for each in features
        },
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:CHARACTERS]


DIGEST = digest(FEATURES)
