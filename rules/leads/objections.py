"""The objections that a text raises, in English, Portuguese and Spanish."""

import re
import unicodedata
from collections.abc import Collection, Iterator

# Only the beginning of a longer text is read.
READ_CHARACTERS_MAX = 5_000
# A negation reverses this many words after it, within its clause.
NEGATION_REACH = 3
# In decomposed text. So "mas" (but) ends a clause, and "más" (more) does not.
_CONJUNCTIONS = r"(?:but|however|mas(?! tarde)|pore\u0301?m|pero|aunque)"
_LETTER = r"[\w\u0300-\u036f]"  # or an accent
NEGATION_CLAUSE = re.compile(rf"[.,;:!?\n()]+|(?<!{_LETTER}){_CONJUNCTIONS}(?!{_LETTER})")
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
NEGATION_WORDS = "not never without hardly neither nor nao nunca jamais sem nem jamas ni sin tampoco"
NEGATIONS = frozenset(NEGATION_WORDS.split())
# "no" negates in English and Spanish, and means "in the" in Portuguese, which these words give away. The end
# of a domain's name gives nothing away.
NO = "no"
PORTUGUESE = re.compile(r"(?<![.'’])\b(?:nao|voces?|muit[oa]|uma|com|em|(?<!the )eu|meu|minha|obrigad[oa])\b")
# Phrases by topic, in lower case and without accents.
OBJECTIONS = {
    "price": (
        "expensive,overpriced,costs too much,too much money,too pricey,no budget,out of budget,cannot afford,"
        "can't afford,caro,cara,caros,caras,carissimo,sem orcamento,sem dinheiro,nao tenho dinheiro,"
        "carisimo,costoso,costosa,sin presupuesto,no tengo dinero"
    ),
    "timing": (
        "not now,not yet,later,next month,next quarter,next year,too busy,bad time,agora nao,mais tarde,"
        "mes que vem,ano que vem,sem tempo,ahora no,mas tarde,proximo mes,proximo ano,sin tiempo,todavia no"
    ),
    "competitor": (
        "competitor,another provider,another supplier,already use,already using,concorrente,outro fornecedor,"
        "ja uso,ja usamos,competidor,competencia,otro proveedor,ya uso,ya usamos"
    ),
    "trust": (
        "don't trust,do not trust,not sure about,scam,fraud,suspicious,nao confio,golpe,fraude,desconfio,"
        "suspeito,no confio,estafa,desconfio,sospechoso"
    ),
    "need": (
        "don't need,do not need,no need,not interested,useless for,nao preciso,nao precisamos,sem interesse,"
        "nao tenho interesse,no necesito,no necesitamos,sin interes,no me interesa"
    ),
}
PHRASES = {
    tuple(phrase.split()): topic for topic, phrases in OBJECTIONS.items() for phrase in phrases.split(",")
}
PHRASE_WORDS_MAX = max(map(len, PHRASES))


def objections_in(text: str) -> tuple[str, ...]:
    """Return the topics that a text raises, sorted by name."""
    decomposed = unicodedata.normalize("NFKD", text[:READ_CHARACTERS_MAX].casefold())[:READ_CHARACTERS_MAX]
    negations = NEGATIONS if PORTUGUESE.search(without_marks(decomposed)) else NEGATIONS | {NO}
    topics: set[str] = set()
    for clause in _clauses(decomposed):
        topics |= _topics(clause, _negation_flags(clause, negations))
    return tuple(sorted(topics))


def without_marks(decomposed: str, categories: Collection[str] = ("Mn", "Cf")) -> str:
    """Return a decomposed text without these categories: Mn are accents, Cf are invisible characters."""
    return "".join(character for character in decomposed if unicodedata.category(character) not in categories)


def _clauses(decomposed: str) -> Iterator[list[str]]:
    """Yield the words of each clause, without accents and invisible characters."""
    visible = without_marks(decomposed, ("Cf",))
    for clause in NEGATION_CLAUSE.split(visible):
        if words := [word.replace("’", "'") for word in WORD.findall(without_marks(clause))]:
            yield words


def _negation_flags(clause: list[str], negations: frozenset[str]) -> list[bool]:
    """Return for each word whether an odd number of negations reaches it."""
    negates = [word in negations or word.endswith("n't") or word == "cannot" for word in clause]
    return [sum(negates[max(0, index - NEGATION_REACH) : index]) % 2 == 1 for index in range(len(clause))]


def _topics(clause: list[str], negated: list[bool]) -> set[str]:
    """Return the topics raised: "not expensive" raises none; in "not now" the "not" is part of the phrase."""
    topics = set[str]()
    for length in range(1, PHRASE_WORDS_MAX + 1):
        for start in range(len(clause) - length + 1):
            phrase = tuple(clause[start : start + length])
            if phrase in PHRASES and not negated[start]:
                topics.add(PHRASES[phrase])
    return topics
