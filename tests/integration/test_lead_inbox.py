"""A webhook's payload that was too large for the queue is read from the bucket."""

import json
from typing import Any

import pytest

from adapters.leads.lead_queue import LeadPayloads
from adapters.platform.queues import PoisonMessage
from tests.support.lead_site import Site, order
from tests.support.webhooks import NOW

pytestmark = pytest.mark.xdist_group("identity")


def by_reference(site: Site, url: str) -> dict[str, Any]:
    message = site.message(None)
    del message["payload"]
    return message | {"payload_ref": url}


def test_a_payload_that_was_put_aside(site: Site) -> None:
    many = [{"sku": f"sku-{number}", "quantity": 1} for number in range(40)]
    url = LeadPayloads(lambda: site.s3, "payloads").put_inbox(json.dumps(order(1, line_items=many)).encode())
    for _ in range(2):
        site.consumer.handle(by_reference(site, url), NOW)
    (event,) = site.stored()
    assert event.raw_payload is None
    key = (event.raw_payload_ref or "").removeprefix("s3://payloads/")
    assert key.startswith(f"leads/{event.id}/")
    assert json.loads(site.s3.get_object(Bucket="payloads", Key=key)["Body"].read()) == order(
        1, line_items=many
    )


def test_another_large_body_does_not_replace_the_first(site: Site) -> None:
    lines = [[{"sku": f"{name}-{number}"} for number in range(60)] for name in "ab"]
    site.send(order(1, line_items=lines[0]))
    with pytest.raises(
        PoisonMessage, match="conflict"
    ):  # its identities are remembered: nobody asks for the claim
        site.send(order(1, line_items=lines[1]))
    (first,) = site.stored()
    key = (first.raw_payload_ref or "").removeprefix("s3://payloads/")
    kept = json.loads(site.s3.get_object(Bucket="payloads", Key=key)["Body"].read())
    assert kept["line_items"] == lines[0]


@pytest.mark.parametrize(
    "url", ["s3://payloads/leads/inbox/none.json", "s3://payloads/leads/other", "s3://x/leads/inbox/y"]
)
def test_a_pointer_that_cannot_be_read_is_told(url: str, site: Site) -> None:
    with pytest.raises(PoisonMessage, match="payload_ref cannot be read"):
        site.consumer.handle(by_reference(site, url), NOW)


def test_a_pointer_to_what_is_no_json_is_told(site: Site) -> None:
    url = LeadPayloads(lambda: site.s3, "payloads").put_inbox(b"{")
    with pytest.raises(PoisonMessage, match="payload_ref holds no JSON"):
        site.consumer.handle(by_reference(site, url), NOW)
