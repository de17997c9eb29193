"""Which types of lead events each queue gets: what the template's filters say (infra/marks.py)."""

from rules.leads.features import FEATURES
from rules.leads.lead_events import IDENTITY_TYPES
from rules.leads.memory import DERIVATIONS

FILTERS = {  # by the fragment's mark
    "memory_events": sorted(set(DERIVATIONS) | IDENTITY_TYPES),
    "feature_events": sorted(
        {trigger for feature in FEATURES for trigger in feature.triggers} | IDENTITY_TYPES
    ),
}
