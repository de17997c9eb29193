"""A small reading of what people write: is it pleased or not, and which objections does it raise.

What this is: a fallback for integrations that send no score of their own. It looks up words in short lists
(English, Portuguese, Spanish), reverses a word after a negation in the same clause, and averages. Anyone can
see why a text got its score, and the same text always gets the same one.

What it is not: a model of language. It knows no irony, no comparison, no context, no fourth language. Most
texts hold none of its words: then it says that it does not know (None), not that the text is neutral. A score
that an integration gives always wins over this one.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

# Only the beginning of a longer text is read.
CHARACTERS_MAX = 5_000
# A negation reverses this many words after it, within its clause.
NEGATION_REACH = 3
CLAUSE = re.compile(r"[.,;:!?\n()]+|\b(?:but|however|mas(?! tarde)|porem|pero|aunque)\b")
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

STRONG, MILD = 1000, 500
POSITIVE = (
    "love loved amazing excellent awesome perfect fantastic wonderful great best delighted "
    "amo amei adoro adorei incrivel excelente perfeito perfeita maravilhoso maravilhosa otimo otima melhor "
    "encanta encanto increible perfecto perfecta maravilloso maravillosa genial mejor"
)
PLEASED = (
    "good nice happy like liked thanks thank helpful easy interested recommend glad fine "
    "bom boa feliz gosto gostei obrigado obrigada util facil legal interessado interessada recomendo "
    "bueno buena contento contenta gusta gusto gracias facil interesado interesada recomiendo"
)
NEGATIVE = (
    "hate hated terrible awful horrible worst useless scam disgusting furious "
    "odeio odiei terrivel horrivel pior pessimo pessima inutil golpe nojento "
    "odio pesimo pesima peor inutil estafa asqueroso asquerosa"
)
DISPLEASED = (
    "bad poor slow sad angry disappointed disappointing problem problems broken difficult annoying late "
    "ruim mau lento lenta triste decepcionado decepcionada problema problemas quebrado dificil chato "
    "atrasado "
    "malo mala enojado enojada roto rota molesto retrasado"
)
WEIGHTS = {
    **dict.fromkeys(POSITIVE.split(), STRONG),
    **dict.fromkeys(PLEASED.split(), MILD),
    **dict.fromkeys(NEGATIVE.split(), -STRONG),
    **dict.fromkeys(DISPLEASED.split(), -MILD),
}
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


@dataclass(frozen=True, slots=True)
class TextReading:
    """What a text says.

    sentiment_milli: from -1000 to 1000; None if none of its words tells. objections: topics by name.
    """

    sentiment_milli: int | None = None
    objections: tuple[str, ...] = ()


def read_text(text: str) -> TextReading:
    """Read a text; the same text always reads the same."""
    clauses = list(_clauses(text))
    all_words = {word for clause in clauses for word in clause}
    negations = NEGATIONS if all_words & PORTUGUESE else NEGATIONS | {NO}
    weights: list[int] = []
    topics: set[str] = set()
    for clause in clauses:
        negated = _negated(clause, negations)
        weights += [
            -WEIGHTS[word] if turned else WEIGHTS[word]
            for word, turned in zip(clause, negated, strict=True)
            if word in WEIGHTS
        ]
        topics |= _topics(clause, negated)
    return TextReading(_average(weights), tuple(sorted(topics)))


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


def _average(weights: list[int]) -> int | None:
    """Return the mean, rounded half away from 0, so that reversing every word reverses the mean exactly."""
    if not weights:
        return None
    total, count = sum(weights), len(weights)
    size = (2 * abs(total) + count) // (2 * count)
    return -size if total < 0 else size
