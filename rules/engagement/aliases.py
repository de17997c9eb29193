"""Aliases: the names under which users stand on boards. Which ones are taken, and which are refused.

People's names are taken, of any script: José, Анна, 小明, O'Neil, Jean-Luc, J.R., 't Hooft, Ann Lee 7.
What others could not see, could not read in its order, or could take for a pseudonym or for the service's own
name is refused.
"""

import re
import unicodedata

from rules.engagement.boards import ADJECTIVES, ANIMALS

LENGTH_MAX = 24  # characters, in the composed form (NFC)
INNER = " .-_'’·"
VARIANTS = "‘‐‑׳״"  # of these signs, as some keyboards write them
FIRST, LAST = "'’", ".'’׳"  # 't Hooft; Sammy Davis Jr., and George in Hebrew
MARKS_MAX = 3  # on one letter, in a row
# Letters and marks that are not seen (Default_Ignorable_Code_Point).
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Scripts that stand in one name, as Unicode's names of characters begin. Each may have Latin letters, too.
TOGETHER = (frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"}), frozenset({"CJK", "HANGUL"}))
WHOLE_NAMES = ("CJK", "HANGUL SYLLABLE")  # a single one is a name
# Names of the service, and of those who look after it, as `_skeleton` writes them.
OWN_NAME = "streakline"
OWN_WORDS = (
    *(
        "admin",
        "admins",
        "administrator",
        "administrators",
        "moderator",
        "moderators",
        "official",
        "officials",
    ),
    *("operator", "operators", "sysadmin", "support", "system", "helpdesk"),
)
# People have these names, beside another: Joe Root.
OWN_WHOLE_NAMES = ("root", "staff", "mod", "mods", "owner", "team", "security", "help desk", "the team")
# Two words and a number, of which one is of a pseudonym: Red Fox 12, but not Ann Lee 7.
_ADJECTIVE, _ANIMAL = "|".join(ADJECTIVES.split()), "|".join(ANIMALS.split())
PSEUDONYM = re.compile(
    rf"(?:(?:{_ADJECTIVE})[ _.-]+[A-Za-z]+|[A-Za-z]+[ _.-]+(?:{_ANIMAL}))[ _.-]+[0-9]+", re.IGNORECASE
)
# Letters that look like others, beside those whose names say so.
_LOOKS = {
    "абвгеһнікљмопрԛѕтуѵԝхјԁӏсг": "a6breһhiklmonpqstyvwxjdlcr",
    "αβεηικμνορτυχω": "abenikmvoptuxw",
    "ɑɡɩıʟ": "agiil",
}
LOOKS = {shown: plain for texts in _LOOKS.items() for shown, plain in zip(*texts, strict=True)}
DIGITS = str.maketrans("0134579", "oleastg")
LATIN = re.compile(r"LATIN (?:\w+ )?LETTER (?:SMALL CAPITAL )?([A-Z])(?: WITH .*)?")


def alias_of(text: str) -> str:
    """Return an alias in its one spelling (NFC). Raises ValueError with the reason."""
    alias = unicodedata.normalize("NFC", text)
    if not 1 <= len(alias) <= LENGTH_MAX:
        raise ValueError(f"has {len(alias)} characters: it must have 1 to {LENGTH_MAX}")
    for character in alias:
        _check_character(character)
    begin, end = alias.lstrip(FIRST), alias[-1]
    is_whole = len(alias) - len(begin) <= 1 and begin and _is_seen(begin[0])
    if not is_whole or not (unicodedata.category(end)[0] in "LMN" or (end in LAST and _is_seen(alias[-2]))):
        raise ValueError("must begin with a letter or digit, and end with one")
    if re.search(rf"[{re.escape(INNER + VARIANTS)}]{{3}}", alias):
        raise ValueError("has more than two signs between letters")
    if _marks_in_a_row(alias) > MARKS_MAX:
        raise ValueError(f"has more than {MARKS_MAX} marks on a letter")
    if len(alias) == 1 and not unicodedata.name(alias).startswith(WHOLE_NAMES):
        raise ValueError("is one letter: it must have 2 characters or more")
    _check_direction(alias)
    _check_scripts(alias)
    _check_own_names(alias)
    return alias


def _check_character(character: str) -> None:
    kind = unicodedata.category(character)
    if kind in ("Cf", "Cc", "Zl", "Zp") or INVISIBLE.match(character) or (kind == "Zs" and character != " "):
        raise ValueError(f"has {_told(character)}, which nobody sees")
    if not (_is_seen(character) or kind in ("Mn", "Mc") or character in INNER + VARIANTS):
        raise ValueError(
            f"has {_told(character)}: it may have letters, digits, and between them {INNER.strip()}"
        )


def _is_seen(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind[0] == "L" or kind == "Nd"


def _told(character: str) -> str:
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X} {name}".rstrip()


def _marks_in_a_row(alias: str) -> int:
    runs = re.split("[^M]", "".join(unicodedata.category(character)[0] for character in alias))
    return max(map(len, runs))


def _check_direction(alias: str) -> None:
    directions = {unicodedata.bidirectional(character) for character in alias}
    if "L" in directions and directions & {"R", "AL"}:
        raise ValueError("mixes letters that are read from the left with those that are read from the right")


def _check_scripts(alias: str) -> None:
    scripts = {unicodedata.name(each, "").split(" ")[0] for each in alias if each.isalpha()}
    scripts -= {"MODIFIER", "FULLWIDTH", "HALFWIDTH", "FEMININE", "MASCULINE", "IDEOGRAPHIC"}
    if len(scripts) > 1 and not any(scripts <= {*group, "LATIN"} for group in TOGETHER):
        raise ValueError(f"mixes letters of {' and '.join(sorted(map(str.title, scripts)))}")


def _check_own_names(alias: str) -> None:
    words = [_skeleton(word) for word in re.split(rf"[{re.escape(INNER + VARIANTS)}]+", alias)]
    whole = "".join(words)
    own_words, own_names = set(map(_skeleton, OWN_WORDS)), set(map(_skeleton, OWN_WHOLE_NAMES))
    plain = {each.rstrip("0123456789") for each in map(str.casefold, alias.split())}  # admin2
    if (
        _skeleton(OWN_NAME) in whole
        or own_words & {*words, whole, *map(_skeleton, plain)}
        or whole in own_names
    ):
        raise ValueError("is a name of the service or of those who look after it")
    if PSEUDONYM.fullmatch("".join(map(_plain, alias))):
        raise ValueError("is two words and a number, as pseudonyms are")


def _skeleton(text: str) -> str:
    """Return a text so that two that look alike are the same: ɑdmin, Аdmіn, ADMIN and adm1n are `admin`."""
    plain = "".join(map(_plain, text)).casefold().translate(DIGITS)
    return plain.replace("rn", "m").replace("vv", "w").replace("l", "i")


def _plain(character: str) -> str:
    """Return a character without marks and width; a letter of the Latin alphabet as A to Z has it."""
    plain = ""
    for each in unicodedata.normalize("NFKD", character):
        if unicodedata.category(each)[0] != "M":
            folded = LOOKS.get(each.casefold(), each)
            latin = LATIN.fullmatch(unicodedata.name(folded, "")) if folded > "\x7f" else None
            plain += latin[1].lower() if latin else folded
    return plain
