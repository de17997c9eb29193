"""A small reading of what people write: which objections does it raise.

It looks for phrases in short lists (English, Portuguese, Spanish) and passes over one that is negated in the
same clause. Anyone can see why a text got its topics, and the same text always gets the same ones.

It knows no irony, no comparison, no context, no fourth language. Whether somebody is pleased it does not
guess: "I would like a refund" has a friendly word in it. A score is what an integration sends.
"""

import re
import unicodedata
from collections.abc import Iterator

# Only the beginning of a longer text is read.
CHARACTERS_MAX = 5_000
# A negation reverses this many words after it, within its clause.
NEGATION_REACH = 3
CLAUSE = re.compile(r"[.,;:!?\n()]+|\b(?:but|however|mas(?! tarde)|porem|pero|aunque)\b")
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

NEGATING = "not never without hardly neither nor nao nunca jamais sem nem jamas ni sin tampoco"
NEGATIONS = frozenset(NEGATING.split())
# "no" negates in English and Spanish, and means "in the" in Portuguese, which these words give away.
NO = "no"
MARKING = "nao voce voces muito muita uma com em eu meu minha obrigado obrigada"
PORTUGUESE = frozenset(MARKING.split())

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
    """Return the topics that a text raises, by name; the same text always gives the same."""
    clauses = list(_clauses(text))
    all_words = {word for clause in clauses for word in clause}
    negations = NEGATIONS if all_words & PORTUGUESE else NEGATIONS | {NO}
    topics: set[str] = set()
    for clause in clauses:
        topics |= _topics(clause, _negated(clause, negations))
    return tuple(sorted(topics))


def _clauses(text: str) -> Iterator[list[str]]:
    """Cut into clauses of words: lower case, without accents and invisible characters."""
    folded = unicodedata.normalize("NFKD", text[:CHARACTERS_MAX].casefold())[:CHARACTERS_MAX]
    seen = "".join(each for each in folded if unicodedata.category(each) not in ("Mn", "Cf"))
    for clause in CLAUSE.split(seen):
        if words := [word.replace("’", "'") for word in WORD.findall(clause)]:
            yield words


def _negated(clause: list[str], negations: frozenset[str]) -> list[bool]:
    """Return for each word whether an odd number of negations reaches it."""
    turns = [word in negations or word.endswith("n't") or word == "cannot" for word in clause]
    return [sum(turns[max(0, at - NEGATION_REACH) : at]) % 2 == 1 for at in range(len(clause))]


def _topics(clause: list[str], negated: list[bool]) -> set[str]:
    """Return the topics raised: "not expensive" raises none; in "not now" the "not" is part of the phrase."""
    return {
        PHRASES[phrase]
        for length in range(1, PHRASE_WORDS_MAX + 1)
        for start in range(len(clause) - length + 1)
        if (phrase := tuple(clause[start : start + length])) in PHRASES and not negated[start]
    }
