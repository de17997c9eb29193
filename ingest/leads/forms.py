"""Reads forms of web pages: charset, repeated names, brackets, usual names of fields.

hooks_api.py calls `read_form` on what a browser sent. sources/web_form.py asks `of_kind` for the fields that
hold an address, a number or a message. The file reads in this order: bytes to text, text to a tree, the tree
to flat fields, and last what a field's name says that it holds.

Every page builder writes forms in its own way. All of them are read as one flat {name: text}:

    your-email=a%40b.c                                        your-email: a@b.c
    fields[email]=a@b.c, email[]=a@b.c, {"data": {"email": "a@b.c"}}          email: a@b.c
    {"fields": [{"name": "email", "value": "a@b.c"}]}         email: a@b.c
    fields[email][id]=email&fields[email][value]=a@b.c        email: a@b.c
    topic=a&topic=b, {"topic": ["a", "b"]}                    topic: a, b

Names are in lower case. A name that only groups others, such as `fields` or `data`, is left out. Any other
name stays: `friend[email]` is `friend.email`, which is not the address of the person who filled in the form.
"""

import codecs
import email.policy
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from email.message import Message
from email.parser import BytesParser
from typing import Any, NamedTuple
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
# Which keys name an entry of a list, {"label": "Email", "value": "a@b.c"}: the plainest first.
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
FILLER_WORDS, REPEAT_WORDS, OTHER_WORDS = (frozenset(words.split()) for words in (_FILLERS, _AGAIN, _OTHERS))
# "Contact number": no word in it means a telephone by itself.
NUMBER_WORDS = frozenset({"number", "nummer", "numero", "no", "nr", "num"})
PREFIXES = ("your", "contact", "customer", "user", "field", "input", "my", "txt", *sorted(OTHER_WORDS))


class _FormField(NamedTuple):
    """A field as it came."""

    name: bytes
    value: bytes
    charset: str = ""  # the value's own; "": that of the form


class NoForm(ValueError):
    """Bytes that are no form: the reason, in plain words."""


def read_form(content_type: str, body: bytes) -> dict[str, str]:
    """Read a form's fields, name -> text; files are left out. Raises NoForm."""
    header = Message()
    header["content-type"] = content_type
    media_type, charset = header.get_content_type(), str(header.get_param("charset") or "")
    try:
        if media_type == URLENCODED:
            form = _parse_urlencoded(body, charset)
        elif media_type == MULTIPART:
            form = _parse_multipart(content_type, body, charset)
        elif media_type == JSON:
            form = read_json(text_of(body, charset))
        else:
            raise LookupError(media_type)
    except NoJson as error:
        raise NoForm(f"it is no JSON: {error}"[:300]) from None
    except (RecursionError, LookupError):
        raise NoForm("it cannot be parted into fields") from None
    return flat_fields(form)


def text_of(raw: bytes, charset: str = "") -> str:
    """Return the text of bytes; raises nothing.

    charset: the declared one. If there is none, or it does not fit, the text is read as UTF-8, or else as
    windows-1252, which browsers also mean by latin-1. A byte order mark of UTF-16 overrules it.
    """
    has_utf_16_mark = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    for name in ("utf-16" if has_utf_16_mark else charset, "utf-8", "cp1252"):
        try:
            encoding = codecs.lookup(name.strip().lower()).name
            if encoding in ("ascii", "iso8859-1"):
                encoding = "cp1252"
            if CHARSETS.fullmatch(encoding):
                return raw.decode("utf-8-sig" if encoding == "utf-8" else encoding)
        except (LookupError, ValueError):
            continue
    return raw.decode("latin-1")


def flat_fields(form: Any) -> dict[str, str]:
    """Return the fields of a form, however they are nested; raises NoForm for more than 200.

    Different values of one name are joined by commas.
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


def _parse_urlencoded(body: bytes, charset: str) -> Any:
    if b"\0" in body:  # only UTF-16 has this byte in a form
        body, charset = text_of(body, charset).encode(), "utf-8"
    # Latin-1 has a character for each byte. So escaped and plain characters become the same bytes below.
    try:
        pairs = parse_qsl(
            body.decode("latin-1"), keep_blank_values=True, encoding="latin-1", max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise NoForm(f"it has more than {FIELDS_MAX} fields") from None
    fields = (_FormField(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs)
    return _tree(fields, charset)


def _parse_multipart(content_type: str, body: bytes, charset: str) -> Any:
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    message = BytesParser(policy=email.policy.compat32).parsebytes(head + body)
    if not message.is_multipart():
        raise NoForm("it has no parts")
    return _tree(_form_parts(message), charset)


def _form_parts(message: Message) -> Iterator[_FormField]:
    """Yield the field of each part that is no file."""
    for part in message.get_payload():
        if not isinstance(part, Message) or part.is_multipart() or part.get_filename() is not None:
            continue
        headers = {name.lower(): header for name, header in reversed(list(part.raw_items()))}
        disposition = str(headers.get("content-disposition", "")).encode("ascii", "surrogateescape")
        name, value = PART_NAME.search(disposition), part.get_payload(decode=True)
        if name and isinstance(value, bytes):
            yield _FormField(name[1] or name[2] or b"", value, str(part.get_param("charset") or ""))


def _tree(fields: Iterable[_FormField], charset: str) -> dict[str, Any]:
    """Return the fields as their brackets nest them: `a[b]` is in `a`. Its texts are a list under "".

    charset: of the whole form, as its header says.
    """
    all_fields, tree = list(fields), dict[str, Any]()
    stated = (value.decode("latin-1") for name, value, _ in all_fields if name == CHARSET_FIELD.encode())
    charset = charset or next(stated, "")
    for name, value, value_charset in all_fields:
        path = [key for key in re.split(r"[\[\]]+", text_of(name, charset)) if key]
        if not path or path == [CHARSET_FIELD]:
            continue
        node = tree
        for key in path[: DEPTH_MAX - 1]:
            node = node.setdefault(key, {})
        node.setdefault("", []).append(text_of(value, value_charset or charset))
    return tree


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each field. path: the names around a value, without those that only group others.

    An entry such as {"label": "Email", "value": "a@b.c"} is one field, under the name that it has inside.
    """
    if isinstance(value, dict):
        if entry_name := _entry_name(value, ""):
            yield from _leaves(_entry_value(value), (*path, entry_name))
            return
        for name, inner in value.items():
            key = name.strip().lower()
            is_group = key.isdigit() or (key in GROUPS and isinstance(inner, (dict, list)))
            if isinstance(inner, dict) and (entry_name := _entry_name(inner, key)):
                yield from _leaves(_entry_value(inner), (*path, entry_name))
            elif is_group or key in ("", "value"):
                yield from _leaves(inner, path)
            else:
                yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, path)
    elif value is not None and path:
        yield ".".join(path), value if isinstance(value, str) else json.dumps(value)


def _entry_value(entry: Mapping[str, Any]) -> Any:
    return entry.get("value", entry.get("values"))


def _entry_name(entry: Mapping[str, Any], key: str) -> str | None:
    """Return the name of an entry {"name", "value"}; None if it is no entry.

    Of several names, the first one that says what the field holds. An entry may have a list of texts as its
    `values`. key: the name that the entry has where it is, "" in a list.
    """
    texts = entry.get("values")
    has_texts = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    if "value" not in entry and not has_texts:
        return None
    names = [*(_one_text(entry.get(entry_name)).strip().lower() for entry_name in ENTRY_NAMES), key]
    candidates = [name for name in names if name]
    first = candidates[0] if candidates else None
    return next((name for name in candidates if kind_of(name)), first)


def _one_text(value: Any) -> str:
    """Return a text, also if brackets have made it {"": [text]}."""
    texts = value.get("") if isinstance(value, dict) else None
    text = texts[0] if isinstance(texts, list) and texts else value
    return text if isinstance(text, str) else ""


def kind_of(name: str) -> str | None:
    """Return what a field of this name holds, EMAIL, PHONE or MESSAGE; None if that is unknown."""
    return _kind_and_field(name)[0]


def _kind_and_field(name: str) -> tuple[str | None, str]:
    """Return what a field holds, and its name without the words that say that it repeats another one.

    A field holds something if its name has words of one kind, and beside them only words that are known.
    """
    # Accents are taken away, and kana keep their marks.
    decomposed = unicodedata.normalize("NFKD", name[:NAME_CHARACTERS_MAX].casefold())
    plain = unicodedata.normalize("NFKC", re.sub("[\u0300-\u036f]", "", decomposed))
    plain = re.sub(r"(?<![^\W_])e[\W_]{0,3}mail", "email", plain)
    plain = re.sub(r"(?<![^\W_])reply[\W_]to(?![^\W_])", "replyto", plain)
    words = [part for word in re.findall(r"\d+|[^\W\d_]+", plain) for part in _split_words(word)]
    kinds = {KINDS[word] for word in words if word in KINDS}
    if "contact" in words and NUMBER_WORDS & {*words}:
        kinds.add(PHONE)
    all_words = KINDS.keys() | FILLER_WORDS | REPEAT_WORDS | OTHER_WORDS
    is_known = all(word in all_words or word.isdigit() for word in words)
    field = " ".join(word for word in words if word not in REPEAT_WORDS)
    return (kinds.pop(), field) if len(kinds) == 1 and is_known else (None, field)


def _split_words(word: str) -> Iterator[str]:
    """Yield the words that are written as one: `youremail` is `your` and `email`."""
    while word not in KINDS:
        prefixes = (prefix for prefix in PREFIXES if word.startswith(prefix) and word != prefix)
        prefix = next(prefixes, None)
        if prefix is None:
            break
        yield prefix
        word = word.removeprefix(prefix)
    yield word


def of_kind(fields: Mapping[str, str], kind: str) -> dict[str, list[str]]:
    """Return the texts of all fields of a kind, by field: `confirm_email` is the same one as `email`."""
    texts: dict[str, list[str]] = {}
    for name, value in fields.items():
        field_kind, field = _kind_and_field(name)
        if field_kind == kind and value.strip():
            texts.setdefault(field, []).append(value.strip())
    return texts


def with_plain_names(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields, with the only one of a kind under the name `email`, `phone` or `message`."""
    kinds = {name: kind_of(name) for name in fields}
    counts = Counter(kinds.values())
    plain_names = {name: kind for name, kind in kinds.items() if kind and counts[kind] == 1}
    return {plain_names.get(name, name): value for name, value in fields.items()}
