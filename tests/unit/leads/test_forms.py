"""Forms as page builders send them: one person, whatever the builder calls things, and however it writes them."""

import json
import time
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.leads import forms
from ingest.leads.readers import DecodeContext, DecodeError
from ingest.leads.sources import web_form
from rules.days import stamp
from tests.support.webhooks import NOW

CONTEXT = DecodeContext("acme", "web_form", "USD", stamp(NOW), "US", delivery_id="d")
ADA, NUMBER = ("email", "ada@example.com"), ("phone", "16505551234")


def who(content_type: str, body: bytes) -> set[tuple[str, str]]:
    (event,) = web_form.decode(web_form.from_browser(forms.read_form(content_type, body)), CONTEXT)
    assert not any(each.is_verified for each in event.identities)
    return {(each.channel, each.external_id) for each in event.identities}


def typed(**fields: str) -> tuple[str, bytes]:
    return forms.URLENCODED, urlencode(fields).encode()


def as_json(held: Any) -> tuple[str, bytes]:
    return f"{forms.JSON}; charset=utf-8", json.dumps(held).encode()


def multipart(*pairs: tuple[bytes, bytes], more: bytes = b"") -> tuple[str, bytes]:
    parts = (
        b'--x\r\nContent-Disposition: form-data; name="%s"\r\n%s\r\n%s\r\n' % (name, more, value)
        for name, value in pairs
    )
    return f'{forms.MULTIPART}; boundary="x"', b"".join(parts) + b"--x--\r\n"


BUILDERS = {
    "Contact Form 7": typed(
        _wpcf7="12", **{"your-name": "Ada", "your-email": ADA[1], "your-tel": "6505551234"}
    ),
    "WPForms": typed(**{"wpforms[fields][Email]": ADA[1], "wpforms[fields][Phone]": "650 555 1234"}),
    "Elementor, fields": typed(**{"form_fields[email]": ADA[1], "form_fields[phone]": "(650) 555-1234"}),
    "Elementor, webhook": typed(
        **{
            "form[id]": "7",
            "fields[field_a1][id]": "field_a1",
            "fields[field_a1][type]": "email",
            "fields[field_a1][title]": "Your e-mail",
            "fields[field_a1][value]": ADA[1],
            "fields[field_a1][raw_value]": ADA[1],
            "fields[phone][title]": "Tel",
            "fields[phone][value]": "6505551234",
            "meta[remote_ip][value]": "192.0.2.1",
        }
    ),
    "Gravity, labels": as_json(
        {"Email Address": ADA[1], "Phone Number": "6505551234", "id": "3", "form_id": "1"}
    ),
    "Webflow": as_json(
        {
            "triggerType": "form_submission",
            "payload": {"name": "Contact", "data": {"Email Address": ADA[1], "Phone": "6505551234"}},
        }
    ),
    "Typeform": as_json(
        {
            "event_type": "form_response",
            "form_response": {
                "definition": {"fields": [{"id": "1", "title": "What is your *email*?", "type": "email"}]},
                "answers": [
                    {"type": "email", "email": ADA[1], "field": {"id": "1", "type": "email"}},
                    {"type": "phone_number", "phone_number": "+16505551234", "field": {"id": "2"}},
                    {"type": "choices", "choices": {"labels": ["a", "b"]}},
                ],
            },
        }
    ),
    "Tally": as_json(
        {
            "data": {
                "fields": [
                    {"key": "question_x", "label": "E-Mail-Adresse", "type": "INPUT_EMAIL", "value": ADA[1]},
                    {
                        "key": "question_y",
                        "label": "Handy",
                        "type": "INPUT_PHONE_NUMBER",
                        "value": "6505551234",
                    },
                    {"key": "question_z", "label": "Topics", "type": "CHECKBOXES", "value": ["a", "b"]},
                ]
            }
        }
    ),
    "HubSpot": as_json(
        {
            "submittedAt": 1772000000000,
            "fields": [
                {"objectTypeId": "0-1", "name": "email", "value": ADA[1]},
                {"objectTypeId": "0-1", "name": "mobilephone", "value": "6505551234"},
            ],
            "context": {"pageUri": "https://acme.example"},
        }
    ),
    "HubSpot, contact": as_json(
        {"properties": {"email": {"value": ADA[1], "type": "string"}, "phone": {"value": "6505551234"}}}
    ),
    "Squarespace": as_json({"formData": {"E-mail": ADA[1], "Phone": "6505551234"}}),
    "Framer": as_json(
        {"Name": "Ada", "Email": ADA[1], "Phone": "+1 650-555-1234", "Topics": ["a", "b"], "Ok": True}
    ),
    "Jotform": multipart((b"q3_email", ADA[1].encode()), (b"q4_phoneNumber[full]", b"(650) 555-1234")),
    "Google Forms": as_json(
        {"Email Address": [ADA[1]], "Contact number": ["6505551234"], "Topics": ["a", "b"]}
    ),
    "jQuery": as_json([{"name": "email", "value": ADA[1]}, {"name": "tel", "value": "6505551234"}]),
    "PHP lists": typed(**{"email[]": ADA[1], "phone_number[0]": "6505551234"}),
    "twice": (
        forms.URLENCODED,
        b"email=ada%40example.com&email=Ada%40Example.com&tel=6505551234&tel=%2B16505551234",
    ),
    "repeated": typed(email=ADA[1], confirm_email="ADA@example.com", Phone="6505551234", email_consent="yes"),
    "Spanish": typed(**{"Correo electrónico": ADA[1], "Teléfono móvil": "6505551234"}),
    "French": typed(**{"Adresse e-mail *": ADA[1], "Téléphone": "6505551234"}),
    "German": typed(**{"E-Mail-Adresse": ADA[1], "Telefonnummer": "6505551234"}),
    "Japanese": typed(メールアドレス=ADA[1], 電話番号="6505551234"),
}


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_builder_s_form_names_its_person(builder: str) -> None:
    assert who(*BUILDERS[builder]) == {ADA, NUMBER}


@pytest.mark.parametrize(
    ("content_type", "body", "name"),
    [
        (forms.URLENCODED, "email=a@b.c&name=Jürgen".encode("cp1252"), "Jürgen"),
        (forms.URLENCODED, b"email=a@b.c&name=J%FCrgen", "Jürgen"),
        (forms.URLENCODED, b"email=a@b.c&name=J%C3%BCrgen", "Jürgen"),
        (f"{forms.URLENCODED}; charset=ISO-8859-1", b"email=a@b.c&name=J\xfcrgen %80", "Jürgen €"),
        (f"{forms.URLENCODED}; charset=windows-1252", b"email=a@b.c&name=%C3%BC", "Ã¼"),
        (f"{forms.URLENCODED}; charset=utf-8", b"email=a@b.c&name=J%FCrgen", "Jürgen"),
        (f"{forms.URLENCODED}; charset=punycode", b"email=a@b.c&name=J%FCrgen", "Jürgen"),
        (f"{forms.URLENCODED}; charset=nosuch", b"email=a@b.c&name=J%C3%BCrgen", "Jürgen"),
        (forms.URLENCODED, b"_charset_=koi8-r&email=a@b.c&name=%F0", "П"),
        (forms.JSON, '{"email": "a@b.c", "name": "Jürgen"}'.encode("latin-1"), "Jürgen"),
        (forms.JSON, '\ufeff{"email": "a@b.c", "name": "Jürgen"}'.encode(), "Jürgen"),
        (f"{forms.JSON}; charset=utf-16", '{"email": "a@b.c", "name": "Jürgen"}'.encode("utf-16"), "Jürgen"),
        (*multipart((b"email", b"a@b.c"), (b"name", b"J\xfcrgen")), "Jürgen"),
        (*multipart((b"email", b"a@b.c"), (b"name", b"\xf0"), more=b"Content-Type: text/plain; charset=koi8-r\r\n"), "П"),
        (*multipart((b"_charset_", b"koi8-r"), (b"name", b"\xf0")), "П"),
    ],
)  # fmt: skip
def test_bytes_are_text_by_their_charset_or_by_what_they_look_like(
    content_type: str, body: bytes, name: str
) -> None:
    read = forms.read_form(content_type, body)
    assert read["name"] == name
    assert forms.CHARSET_FIELD not in read


def test_a_name_of_bytes_is_read_as_its_value_is() -> None:
    assert forms.read_form(*multipart(("Straße".encode(), b"a"))) == {"straße": "a"}
    assert forms.read_form(forms.URLENCODED, b"Stra%DFe=a") == {"straße": "a"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "email") for name in ("email", "E-Mail", "e_mail", "your-email", "youremail", "Work Email", "email_2")),
        *((name, "phone") for name in ("phone", "Tel.", "mobile", "phone-number", "phoneNumber", "Contact No", "whatsapp")),
        *((name, "message") for name in ("message", "your-message", "Comments", "Nachricht")),
        *((name, None) for name in ("friend_email", "email_consent", "email subject", "phone_country", "house number")),
        *((name, None) for name in ("newsletter", "emailoptin", "telegram", "input_2", "", "  ", "e", "mailing list")),
    ],
)  # fmt: skip
def test_a_name_says_what_a_field_holds(name: str, kind: str | None) -> None:
    assert forms.kind_of(name) == kind


def test_two_addresses_in_one_field_are_refused_and_in_two_fields_are_two() -> None:
    for fields in (
        "email=ada%40example.com&email=eve%40example.com",
        "email=ada%40example.com&confirm_email=eve%40example.com",
        "email[]=ada%40example.com&fields[email]=eve%40example.com",
    ):
        with pytest.raises(DecodeError, match="two different addresses") as refused:
            who(forms.URLENCODED, fields.encode())
        assert refused.value.field == "fields.email"
    assert who(*typed(email="ada@example.com", work_email="eve@example.com")) == {
        ADA,
        ("email", "eve@example.com"),
    }
    assert who(*typed(**{"email": "ada@example.com", "address[email]": "eve@example.com"})) == {
        ADA,
        ("email", "eve@example.com"),
    }
    assert who(*typed(email="ada@example.com", friend_email="eve@example.com")) == {ADA}
    two = b"phone=650+555+1234&mobile=%2B49+151+23456789&phone=%2B49+30+901820"
    assert who(forms.URLENCODED, two) == {NUMBER, ("phone", "4915123456789"), ("phone", "4930901820")}


@pytest.mark.parametrize(
    "fields", [{"message": "hello"}, {"input_2": "a@b.c"}, {"email": "n/a", "phone": "none"}, {}]
)
def test_a_form_of_nobody_is_told_which_names_are_read(fields: dict[str, str]) -> None:
    with pytest.raises(DecodeError) as refused:
        who(*typed(**fields))
    assert refused.value.field == "fields"
    for name in ("email", "your-email", "email[]", "phone", "phone_number", "device_id"):
        assert name in refused.value.reason
    assert ("fields.email" in refused.value.reason) is ("email" in fields)


def test_what_somebody_wrote_is_read_from_all_fields_for_it() -> None:
    content_type, body = typed(email="ada@example.com", **{"your-message": "It is expensive", "topic": "x"})
    payload = web_form.from_browser(forms.read_form(content_type, body))
    assert payload == {"fields": {"email": "ada@example.com", "message": "It is expensive", "topic": "x"}}
    (event,) = web_form.decode(payload, CONTEXT)
    assert event.payload == {"objections": ["price"]}


@given(
    st.sampled_from([forms.URLENCODED, f"{forms.MULTIPART}; boundary=x", forms.JSON]), st.binary(max_size=200)
)
def test_any_bytes_are_a_form_or_are_refused_in_plain_words(content_type: str, body: bytes) -> None:
    for framed in (
        body,
        b'--x\r\nContent-Disposition: form-data; name="' + body,
        b"email[" + body,
        b'{"a": "' + body,
    ):
        try:
            read = forms.read_form(content_type, framed)
        except forms.NoForm as reason:
            assert "codec" not in str(reason)
        else:
            assert all(isinstance(each, str) for pair in read.items() for each in pair)
            json.dumps(read, ensure_ascii=False).encode()


@given(
    st.sampled_from(
        [
            "utf-8",
            "utf-7",
            "idna",
            "punycode",
            "rot13",
            "base64",
            "hex",
            "unicode_escape",
            "utf-16",
            "cp437",
            "",
            "\x00",
            "é",
        ]
    ),
    st.binary(max_size=40),
)
def test_bytes_always_have_a_text(charset: str, raw: bytes) -> None:
    forms.text_of(raw, charset).encode()


def test_a_form_that_was_written_to_cost_much_costs_little() -> None:
    started = time.process_time()
    label = {"label": "your" * 20_000 + "email", "value": "a"}
    for content_type, body in (
        (forms.URLENCODED, b"email=a@b.c&phone=" + b"1, " * 30_000),
        (forms.URLENCODED, b"email=a@b.c&" + b"&".join(b"phone%d=1, 2, 3" % n for n in range(190))),
        (forms.URLENCODED, b"email=a@b.c&" + b"[" * 90_000),
        as_json([label, {"label": "email", "value": "a@b.c"}]),
    ):
        assert who(content_type, body) >= {("email", "a@b.c")}
    assert time.process_time() - started < 5


def test_a_form_of_many_fields_is_refused_and_so_is_a_deep_one() -> None:
    for body in (b"&".join(b"f%d=1" % n for n in range(201)), b"email=a@b.c" + b"&x=1" * 200):
        with pytest.raises(forms.NoForm, match="more than 200 fields"):
            forms.read_form(forms.URLENCODED, body)
    deep = b"a" + b"[b]" * 5000 + b"=1"
    assert len(forms.read_form(forms.URLENCODED, deep)) == 1


@pytest.mark.parametrize(
    ("held", "phones"),
    [
        ({"_replyto": ADA[1], "_subject": "hello"}, 0),
        ({"Reply-To": ADA[1], "from_name": "Ada"}, 0),
        ({"newsletter_email": ADA[1], "newsletter": "yes"}, 0),
        ({"sender-email": ADA[1], "emailField2": "n/a"}, 0),
        ({"et_pb_contact_email_0": ADA[1], "et_pb_contact_name_0": "Ada"}, 0),
        ({"billing_email": ADA[1], "billing_phone": "6505551234"}, 1),
        (
            {
                "field_data": [
                    {"name": "email", "values": [ADA[1]]},
                    {"name": "phone_number", "values": ["6505551234"]},
                ]
            },
            1,
        ),
        ({"name": "A form", "values": {"email": ADA[1]}}, 0),
        ({"data": {"email": "n/a", "merges": {"EMAIL": ADA[1], "PHONE": "6505551234"}}}, 1),
    ],
)
def test_more_names_that_builders_give_their_fields(held: Any, phones: int) -> None:
    assert who(*as_json(held)) == {ADA, *[NUMBER] * phones}


def test_half_an_emoji_in_a_message_loses_no_form() -> None:
    body = b'{"email": "ada@example.com", "message": "Well done \\ud83d", "age": 1e400, "\\ud83d": "x"}'
    assert who(forms.JSON, body) == {ADA}
    assert forms.read_form(forms.JSON, body)["message"] == "Well done \ufffd"


@pytest.mark.parametrize("charset", ["", "; charset=utf-16", "; charset=utf-16le"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (forms.URLENCODED, "email=ada%40example.com&name=J%C3%BCrgen"),
        (forms.JSON, '{"email": "ada@example.com"}'),
    ],
)
def test_a_form_in_utf_16_is_read_by_its_mark_or_as_declared(
    kind: str, text: str, encoding: str, charset: str
) -> None:
    if encoding == "utf-16" or charset.endswith("le"):
        assert who(kind + charset, text.encode(encoding)) == {ADA}
