"""What a form means, from its bytes to the person: charset, repeated names, brackets, usual names of fields.

Every page builder writes forms in its own way. They all come to one flat {name: text}:

    your-email=a%40b.c                                        your-email: a@b.c
    fields[email]=a@b.c, email[]=a@b.c, {"data": {"email": "a@b.c"}}          email: a@b.c
    {"fields": [{"name": "email", "value": "a@b.c"}]}         email: a@b.c
    fields[email][id]=email&fields[email][value]=a@b.c        email: a@b.c
    topic=a&topic=b, {"topic": ["a", "b"]}                    topic: a, b

Names are in lower case. A name that only groups others, such as `fields` or `data`, is left out; any other
stays: `friend[email]` is `friend.email`, and nobody takes that for the address of who filled in the form.
"""

import codecs
import email.policy
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.message import Message
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qsl

from rules.json_values import NoJson, read_json

URLENCODED, MULTIPART, JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"
MEDIA_TYPES = (URLENCODED, MULTIPART, JSON)
FIELDS_MAX = 200
DEPTH_MAX = 12
NAME_CHARACTERS_MAX = 64
# A hidden field: https://html.spec.whatwg.org/multipage/form-control-infrastructure.html
CHARSET_FIELD = "_charset_"
# Charsets of pages. Others, such as punycode or idna, are no charsets of a form, and some take long to read.
CHARSETS = re.compile(
    r"utf-?(8|16|16-[bl]e)|iso8859-\d+|cp(125\d|437|850|866|874|932|949|950|936)|koi8-[ru]|shift_jis|euc_(jp|kr)"
    r"|big5|gbk|gb2312|gb18030|mac-roman"
)
# Browsers write the bytes of a name as they are, and a quote in it as %22.
PART_NAME = re.compile(rb';\s*name=(?:"([^"]*)"|([^;\s"]+))', re.IGNORECASE)
_GROUPS = """
fields form_fields field data form formdata form_data payload body values value answers answer form_response
response submission submissions properties inputs contact wpforms wpcf7 full items
field_data item_meta merges
"""
GROUPS = frozenset(_GROUPS.split())
# What names an entry of a list, {"label": "Email", "value": "a@b.c"}, the plainest first.
ENTRY_NAMES = ("name", "label", "title", "key", "id", "type")
EMAIL, PHONE, MESSAGE = "email", "phone", "message"
# Words that mean the field, and words beside them that change nothing. In lower case, without accents.
_EMAIL = """
email mail emailaddress mailaddress emailid emailfield emailinput replyto emailadresse mailadresse
emailadres correo courriel mel electronico electronique elettronica eposta
メールアドレス メール 邮箱 电子邮件 邮件 電子郵件 이메일
"""
_PHONE = """
phone telephone tel mobile mobil mobilephone cell cellphone cellular phonenumber telephonenumber mobilenumber
telnumber telno phoneno mobileno phonefield phoneinput telefon telefono telefone telefoon
telefonnummer telefoonnummer handy handynummer rufnummer celular movil cellulare portable whatsapp
whatsappnumber tlf fon 電話番号 電話 电话 手机
手机号 전화번호 전화
"""
_MESSAGE = """
message messages comment comments msg nachricht kommentar mensaje comentario comentarios messaggio mensagem
bericht question enquiry inquiry textarea
"""
_FILLERS = """
your my the a an deine ihre meine votre tu su field input contact address adresse adres addr direccion posta
indirizzo number nummer numero no nr num id primary main enter required customer client user lead visitor q
text txt full intl international de di e of fur from sender subscriber newsletter signup subscribe billing
form et pb
"""
# A field that repeats another one.
_AGAIN = "confirm confirmation confirmed repeat retype again verify check wiederholen bestatigen"
# An address or number that is of the same person, beside another one.
_OTHERS = "work business office home private personal company other secondary second alternate"
KINDS = {
    word: kind
    for kind, words in ((EMAIL, _EMAIL), (PHONE, _PHONE), (MESSAGE, _MESSAGE))
    for word in unicodedata.normalize("NFKC", words).split()
}
FILLER_WORDS, REPEAT_WORDS, OTHER_WORDS = (frozenset(each.split()) for each in (_FILLERS, _AGAIN, _OTHERS))
# "Contact number": no word in it means a telephone by itself.
NUMBER_WORDS = frozenset({"number", "nummer", "numero", "no", "nr", "num"})
PREFIXES = ("your", "contact", "customer", "user", "field", "input", "my", "txt", *sorted(OTHER_WORDS))


class NoForm(ValueError):
    """Bytes that are no form: the reason, in plain words."""


def read_form(content_type: str, body: bytes) -> dict[str, str]:
    """Read a form's fields, name -> text; files are left out. Raises NoForm."""
    header = Message()
    header["content-type"] = content_type
    charset = header.get_param("charset")
    readers: dict[str, Callable[[str, bytes, str], Any]] = {
        URLENCODED: _parse_urlencoded,
        MULTIPART: _parse_multipart,
        JSON: _parse_json,
    }
    try:
        form = readers[header.get_content_type()](content_type, body, str(charset or ""))
    except (RecursionError, LookupError):
        raise NoForm("it cannot be parted into fields") from None
    return flat_fields(form)


def text_of(raw: bytes, charset: str = "") -> str:
    """Return the text of bytes, which there always is.

    charset: what was declared. If it is none, or does not fit: UTF-8, or else windows-1252, which browsers
    also mean by latin-1. A byte order mark of UTF-16 says more than what was declared.
    """
    marked = "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else charset
    for name in (marked, "utf-8-sig", "cp1252"):
        try:
            encoding = codecs.lookup(name.strip().lower()).name if name else ""
            if encoding in ("ascii", "iso8859-1"):
                encoding = "cp1252"
            if encoding and (name == "utf-8-sig" or CHARSETS.fullmatch(encoding)):
                return raw.decode("utf-8-sig" if encoding == "utf-8" else encoding)
        except (LookupError, ValueError):
            continue
    return raw.decode("latin-1")


def flat_fields(form: Any) -> dict[str, str]:
    """Return the fields of a form, however they are nested; raises NoForm for more than 200.

    Several values of one name are joined by a comma, the same one once.
    """
    fields: dict[str, list[str]] = {}
    for number, (name, value) in enumerate(_leaves(form, ())):
        if number == FIELDS_MAX:
            raise NoForm(f"it has more than {FIELDS_MAX} fields")
        values = fields.setdefault(_valid_text(name)[:NAME_CHARACTERS_MAX], [])
        text = _valid_text(value)
        if text not in values and (text or not values):
            values.append(text)
    return {name: ", ".join(filter(None, values)) for name, values in fields.items()}


def _valid_text(text: str) -> str:
    """Return a text that is Unicode: a page may cut an emoji in half, and JSON can say so."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _parse_urlencoded(_: str, body: bytes, charset: str) -> Any:
    if b"\0" in body:  # no byte of a form that is not UTF-16
        body, charset = text_of(body, charset).encode(), "utf-8"
    # Latin-1 has a character for each byte, so what was escaped and what was not are bytes again.
    try:
        pairs = parse_qsl(
            body.decode("latin-1"),
            keep_blank_values=True,
            encoding="latin-1",
            max_num_fields=FIELDS_MAX,
        )
    except ValueError:
        raise NoForm(f"it has more than {FIELDS_MAX} fields") from None
    return _tree(((name.encode("latin-1"), value.encode("latin-1"), "") for name, value in pairs), charset)


def _parse_multipart(content_type: str, body: bytes, charset: str) -> Any:
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    whole = BytesParser(policy=email.policy.compat32).parsebytes(head + body)
    if not whole.is_multipart():
        raise NoForm("it has no parts")
    return _tree(_form_parts(whole), charset)


def _form_parts(whole: Message) -> Iterator[tuple[bytes, bytes, str]]:
    for part in whole.get_payload():
        if not isinstance(part, Message) or part.is_multipart() or part.get_filename() is not None:
            continue
        about = next((each for name, each in part.raw_items() if name.lower() == "content-disposition"), "")
        name, value = (
            PART_NAME.search(str(about).encode("ascii", "surrogateescape")),
            part.get_payload(decode=True),
        )
        if name and isinstance(value, bytes):
            yield name[1] or name[2] or b"", value, str(part.get_param("charset") or "")


def _parse_json(_: str, body: bytes, charset: str) -> Any:
    try:
        return read_json(text_of(body, charset))
    except NoJson as error:
        raise NoForm(f"it is no JSON: {error}"[:300]) from None


def _tree(pairs: Iterable[tuple[bytes, bytes, str]], charset: str) -> dict[str, Any]:
    """Return the fields as their brackets nest them: `a[b]` is in `a`.

    pairs: name, value, and the value's own charset. charset: of the whole form, as its header says.
    """
    listed, tree = list(pairs), dict[str, Any]()
    named = (value.decode("latin-1") for name, value, _ in listed if name == CHARSET_FIELD.encode())
    charset = charset or next(named, "")
    for name, value, own in listed:
        path = [each for each in re.split(r"[\[\]]+", text_of(name, charset)) if each]
        if not path or path == [CHARSET_FIELD]:
            continue
        holder = tree
        for each in path[: DEPTH_MAX - 1]:
            holder = holder.setdefault(each, {})
        holder.setdefault("", []).append(text_of(value, own or charset))
    return tree


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each text with its name. path: the names around it, without those that only group others."""
    if isinstance(value, dict):
        if own := _entry_name(value, ""):
            yield from _leaves(value.get("value", value.get("values")), (*path, own))
            return
        for name, each in value.items():
            key = name.strip().lower()
            is_group = key.isdigit() or (key in GROUPS and isinstance(each, (dict, list)))
            if isinstance(each, dict) and (own := _entry_name(each, key)):
                yield from _leaves(each.get("value", each.get("values")), (*path, own))
            elif is_group or key in ("", "value"):
                yield from _leaves(each, path)
            else:
                yield from _leaves(each, (*path, key))
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, path)
    elif value is not None and path:
        yield ".".join(path), value if isinstance(value, str) else json.dumps(value)


def _entry_name(entry: Mapping[str, Any], key: str) -> str | None:
    """Return the name of an entry {"name", "value"}, by what says most of it; None if it is no entry.

    An entry may have a list of texts as its `values`. key: under which the entry is, "" in a list.
    """
    texts = entry.get("values")
    has_texts = isinstance(texts, list) and all(isinstance(each, str) for each in texts)
    if "value" not in entry and not has_texts:
        return None
    names = [*(_one_text(entry.get(each)).strip().lower() for each in ENTRY_NAMES), key]
    written = [each for each in names if each]
    return next((each for each in written if kind_of(each)), written[0] if written else None)


def _one_text(value: Any) -> str:
    """Return a text, also if brackets have made it {"": [text]}."""
    texts = value.get("") if isinstance(value, dict) else None
    text = texts[0] if isinstance(texts, list) and texts else value
    return text if isinstance(text, str) else ""


def kind_of(name: str) -> str | None:
    """Return what a field of this name holds, EMAIL, PHONE or MESSAGE; None if that is unknown."""
    return _kind_and_field(name)[0]


def _kind_and_field(name: str) -> tuple[str | None, str]:
    """Return what a field holds, and its name without the words that say that it repeats another one."""
    spelled = unicodedata.normalize("NFKD", name[:NAME_CHARACTERS_MAX].casefold())
    plain = unicodedata.normalize(
        "NFKC", re.sub("[\u0300-\u036f]", "", spelled)
    )  # accents, and no kana's marks
    plain = re.sub(r"(?<![^\W_])e[\W_]{0,3}mail", "email", plain)
    plain = re.sub(r"(?<![^\W_])reply[\W_]to(?![^\W_])", "replyto", plain)
    words = [part for word in re.findall(r"\d+|[^\W\d_]+", plain) for part in _split_words(word)]
    kinds = {KINDS[each] for each in words if each in KINDS}
    if "contact" in words and NUMBER_WORDS & {*words}:
        kinds.add(PHONE)
    all_words = KINDS.keys() | FILLER_WORDS | REPEAT_WORDS | OTHER_WORDS
    is_known = all(each in all_words or each.isdigit() for each in words)
    field = " ".join(each for each in words if each not in REPEAT_WORDS)
    return (kinds.pop(), field) if len(kinds) == 1 and is_known else (None, field)


def _split_words(word: str) -> Iterator[str]:
    """Yield the words of what somebody wrote as one: `youremail` is `your` and `email`."""
    while word not in KINDS:
        prefix = next((each for each in PREFIXES if word.startswith(each) and word != each), None)
        if prefix is None:
            break
        yield prefix
        word = word.removeprefix(prefix)
    yield word


def of_kind(fields: Mapping[str, str], kind: str) -> dict[str, list[str]]:
    """Return the texts of all fields of a kind, by field: `confirm_email` is the same one as `email`."""
    texts: dict[str, list[str]] = {}
    for name, value in fields.items():
        its_kind, field = _kind_and_field(name)
        if its_kind == kind and value.strip():
            texts.setdefault(field, []).append(value.strip())
    return texts


def with_plain_names(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields, with the only one of a kind under the name `email`, `phone` or `message`."""
    kinds = [each for each in map(kind_of, fields) if each]
    plain = {each for each in kinds if kinds.count(each) == 1}
    return {kind if (kind := kind_of(name)) in plain else name: value for name, value in fields.items()}
