"""Words by which people end or resume messages to them.

A message counts if it is such a word and nothing else: "Stop!" does, "stop by tomorrow" does not. The English
words are those that carriers and Twilio prescribe; Portuguese, Spanish and German have their usual ones.
"""

import re
import unicodedata
from collections.abc import Mapping

OFF, ON = "off", "on"
NOTIFICATIONS = "notifications"
STOP_WORDS = (
    "stop,stop all,stopall,unsubscribe,cancel,end,quit,revoke,opt out,optout,"
    "sair,parar,pare,cancelar,descadastrar,remover,nao quero mais,"
    "baja,alto,salir,darme de baja,dar de baja,no molestar,"
    "stopp,abmelden,abbestellen"
)
START_WORDS = "start,unstop,subscribe,opt in,optin,resume,iniciar,voltar,inscrever,alta,suscribir,anmelden"
MEANING = dict.fromkeys(STOP_WORDS.split(","), OFF) | dict.fromkeys(START_WORDS.split(","), ON)
CHARACTERS_MAX = 40


def consent_in(text: str) -> Mapping[str, str]:
    """Return {"notifications": "off" or "on"} for a message that is one of the words; {} for any other."""
    if len(text) > CHARACTERS_MAX:
        return {}
    folded = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(each for each in folded if unicodedata.category(each) not in ("Mn", "Cf"))
    said = MEANING.get(" ".join(re.findall(r"[a-z]+", plain)))
    # Letters of another alphabet are words too: they must not be passed over.
    is_all = all(each.isascii() for each in plain if each.isalpha())
    return {NOTIFICATIONS: said} if said and is_all else {}
