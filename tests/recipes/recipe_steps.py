"""The recipes of docs/recipes, each with the steps that its module tells."""

from collections.abc import Mapping

from tests.recipes.add_a_lake_column import COLUMN
from tests.recipes.add_a_lead_feature import FEATURE
from tests.recipes.add_a_stream_consumer import STREAM_CONSUMER
from tests.recipes.add_a_webhook_source import SOURCE
from tests.recipes.add_an_endpoint import ENDPOINT
from tests.recipes.scratch import Step

RECIPES: Mapping[str, tuple[Step, ...]] = {
    "add-a-webhook-source": SOURCE,
    "add-a-lead-feature": FEATURE,
    "add-a-lake-column": COLUMN,
    "add-an-endpoint": ENDPOINT,
    "add-a-stream-consumer": STREAM_CONSUMER,
}
