"""Bodies of webhooks in the shape that each vendor documents, as the bytes that it sends.

Shopify: https://shopify.dev/docs/api/webhooks, with the sample order of the notification settings.
WhatsApp: https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/payload-examples
SendGrid: https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
"""

import json
from datetime import datetime
from typing import Any

SAMPLE_ID = 820982911946154508


def money(amount: str, currency: str = "USD") -> dict[str, Any]:
    held = {"amount": amount, "currency_code": currency}
    return {"shop_money": held, "presentment_money": held}


def shopify_order(number: int, created: datetime, amount: str = "398.00", **more: Any) -> dict[str, Any]:
    """An order as orders/create, orders/updated, orders/paid and orders/cancelled send it, abridged."""
    at, currency = created.isoformat(timespec="seconds"), more.get("currency", "USD")
    order = {
        "id": number,
        "admin_graphql_api_id": f"gid://shopify/Order/{number}",
        "buyer_accepts_marketing": True,
        "cancel_reason": None,
        "cancelled_at": None,
        "confirmed": True,
        "contact_email": f"jon{number}@example.com",
        "created_at": at,
        "currency": currency,
        "current_total_price": amount,
        "current_total_price_set": money(amount, currency),
        "email": f"jon{number}@example.com",
        "financial_status": "paid",
        "fulfillment_status": None,
        "name": f"#{number}",
        "note": None,
        "order_number": 1234,
        "phone": None,
        "presentment_currency": currency,
        "processed_at": at,
        "test": False,
        "total_price": amount,
        "total_price_set": money(amount, currency),
        "updated_at": at,
        "customer": {
            "id": 115310627314723954,
            "email": f"jon{number}@example.com",
            "created_at": None,
            "updated_at": None,
            "first_name": "Jon",
            "last_name": "Snow",
            "state": "disabled",
            "verified_email": True,
            "phone": None,
            "currency": currency,
            "tags": "",
        },
        "line_items": [
            {
                "id": 866550311766439020,
                "admin_graphql_api_id": "gid://shopify/LineItem/866550311766439020",
                "name": "IPod Nano - 8GB",
                "price": "199.00",
                "product_id": 632910392,
                "quantity": 1,
                "sku": "IPOD2008PINK",
                "title": "IPod Nano - 8GB",
                "variant_id": 808950810,
            }
        ],
        "refunds": [],
        "shipping_lines": [],
    }
    return {**order, **more}


def shopify_sample(created: datetime) -> dict[str, Any]:
    """What "send test notification" sends: an order that nobody placed."""
    return shopify_order(
        SAMPLE_ID,
        created,
        confirmed=False,
        cancel_reason="customer",
        cancelled_at=created.isoformat(timespec="seconds"),
        financial_status="voided",
        test=True,
    )


def shopify_refund(
    number: int, order: int, created: datetime, amount: str, status: str = "success", **more: Any
) -> dict[str, Any]:
    """A refund as refunds/create sends it: it names an order, and no customer."""
    at = created.isoformat(timespec="seconds")
    return {
        "id": number,
        "order_id": order,
        "created_at": at,
        "note": "Things were damaged",
        "user_id": 548380009,
        "processed_at": at,
        "restock": False,
        "duties": [],
        "admin_graphql_api_id": f"gid://shopify/Refund/{number}",
        "refund_line_items": [],
        "transactions": [
            {
                "id": 10 * number,
                "admin_graphql_api_id": f"gid://shopify/OrderTransaction/{10 * number}",
                "amount": amount,
                "authorization": "authorization-key",
                "created_at": at,
                "currency": more.get("currency", "USD"),
                "gateway": "bogus",
                "kind": "refund",
                "order_id": order,
                "parent_id": 801038806,
                "processed_at": at,
                "status": status,
                "test": False,
            }
        ],
        "order_adjustments": [],
        **{name: each for name, each in more.items() if name != "currency"},
    }


def whatsapp_message(words: str, sender: str, at: datetime, number: int = 1) -> dict[str, Any]:
    """A text that somebody wrote to a business."""
    value = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "15550783881", "phone_number_id": "106540352242922"},
        "contacts": [{"profile": {"name": "Sheena Nelson"}, "wa_id": sender}],
        "messages": [
            {
                "from": sender,
                "id": f"wamid.HBgLMTY1MDM4Nzk0MzkVAgASGBQzQTRBNjU5OUFFRTAzODEwMTQ0RgA{number}",
                "timestamp": str(int(at.timestamp())),
                "type": "text",
                "text": {"body": words},
            }
        ],
    }
    return {
        "object": "whatsapp_business_account",
        "entry": [{"id": "102290129340398", "changes": [{"value": value, "field": "messages"}]}],
    }


def sendgrid_event(name: str, email: str, at: datetime, number: int = 1) -> dict[str, Any]:
    """One event of a batch."""
    return {
        "email": email,
        "timestamp": int(at.timestamp()),
        "smtp-id": "<14c5d75ce93.dfd.64b469@ismtpd-555>",
        "event": name,
        "category": ["cat facts"],
        "sg_event_id": f"ZHJvcC0xMDk5NDkxOS1MUnpYbF9{number}",
        "sg_message_id": "14c5d75ce93.dfd.64b469.filter0001.16648.5515E0B88.0",
        "marketing_campaign_id": 12345,
        "marketing_campaign_name": "campaign name",
    }


def generic_event(number: str, email: str, at: datetime) -> dict[str, Any]:
    """An event in our own words, as an integration sends it by Standard Webhooks."""
    return {
        "external_event_id": number,
        "event_type": "preference_stated",
        "occurred_at": at.isoformat(timespec="seconds"),
        "identities": {"email": email},
        "data": {"preferences": {"contact_channel": "whatsapp"}},
    }


def sample_of(source: str, tag: str, at: datetime) -> Any:
    """A body of a source that leaves one event. tag: makes it different from others."""
    number = int(at.timestamp()) * 1000 + sum(tag.encode())
    if source == "ecommerce":
        return shopify_order(number, at)
    if source == "whatsapp":
        return whatsapp_message("Does it come in another color?", "16505551234", at, number)
    if source == "email_campaign":
        return [sendgrid_event("open", f"{tag}@example.com", at, number)]
    return generic_event(f"{tag}-{number}", f"{tag}@example.com", at)


def as_sent(source: str, body: Any) -> bytes:
    """The bytes that a vendor sends: SendGrid ends a batch with a line, Meta escapes what is not ASCII."""
    if source == "ecommerce":
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    return json.dumps(body, separators=(",", ":")).encode() + b"\r\n" * (source == "email_campaign")
