"""The objections that a text raises, in English, Portuguese and Spanish."""

import re
import unicodedata
from collections.abc import Iterator

# Only the beginning of a longer text is read.
READ_CHARACTERS_MAX = 5_000
# A negation reverses this many words after it, within its clause.
NEGATION_REACH = 3
NEGATION_CLAUSE = re.compile(r"[.,;:!?\n()]+|\b(?:but|however|mas(?! tarde)|porem|pero|aunque)\b")
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
NEGATION_WORDS = "not never without hardly neither nor nao nunca jamais sem nem jamas ni sin tampoco"
NEGATIONS = frozenset(NEGATION_WORDS.split())
# "no" negates in English and Spanish, and means "in the" in Portuguese, which these words give away.
NO = "no"
PORTUGUESE_WORDS = "nao voce voces muito muita uma com em eu meu minha obrigado obrigada"
PORTUGUESE = frozenset(PORTUGUESE_WORDS.split())
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
    clauses = list(_clauses(text))
    all_words = {word for clause in clauses for word in clause}
    negations = NEGATIONS if all_words & PORTUGUESE else NEGATIONS | {NO}
    topics: set[str] = set()
    for clause in clauses:
        topics |= _topics(clause, _negation_flags(clause, negations))
    return tuple(sorted(topics))


def without_marks(text: str) -> str:
    """Return a decomposed text without accents and invisible characters (categories of Unicode)."""
    return "".join(character for character in text if unicodedata.category(character) not in ("Mn", "Cf"))


def _clauses(text: str) -> Iterator[list[str]]:
    """Yield the words of each clause: lower case, without accents and invisible characters."""
    folded = unicodedata.normalize("NFKD", text[:READ_CHARACTERS_MAX].casefold())[:READ_CHARACTERS_MAX]
    for clause in NEGATION_CLAUSE.split(without_marks(folded)):
        if words := [word.replace("’", "'") for word in WORD.findall(clause)]:
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
