"""Points are spent once, and never overdrawn."""

from typing import Any

from local.smoke.asking import ask, must, profile, shown
from local.smoke.steps import SmokeStep
from local.smoke.subject import Subject

PRICE, TOO_MUCH = 20, 1_000_000


def redemption(subject: Subject) -> str:
    """A redemption lowers the balance; the same one again gives the same entry."""
    before = profile(subject, subject.name)["balance"]
    first, again = (_redeem(subject, PRICE, "mug", 201) for _ in range(2))
    must(first["balance"] == before - PRICE, f"a balance of {before - PRICE} in the entry", first)
    same = again.get("duplicate") is True and again["entry_id"] == first["entry_id"]
    must(same, f"the entry {first['entry_id']} again, as a duplicate", again)
    shown(subject, subject.name, balance=before - PRICE)
    return f"{PRICE} of {before} points spent, once"


def overdraft(subject: Subject) -> str:
    """More than the balance is refused, and the ledger adds up."""
    before = profile(subject, subject.name)["balance"]
    refused = _redeem(subject, TOO_MUCH, "yacht", 409)
    must(refused["error"]["code"] == "insufficient_balance", "the code insufficient_balance", refused)
    entries = ask(subject, "GET", f"/v1/users/{subject.name}/ledger", None, 200)["entries"]
    total = sum(each["points"] for each in entries)
    after = profile(subject, subject.name)["balance"]
    must(before == after == total, f"a balance of {before}, as the entries add up", (after, total))
    return f"{TOO_MUCH} points are refused, the balance stays {after}"


def _redeem(subject: Subject, points: int, reward: str, wanted: int) -> dict[str, Any]:
    body = {"points": points, "reward_id": reward, "idempotency_key": reward}
    path = f"/v1/users/{subject.name}/redemptions"
    answer: dict[str, Any] = ask(subject, "POST", path, body, wanted)
    return answer


STEPS = (
    SmokeStep("redemption", redemption, ("late events",)),
    SmokeStep("overdraft", overdraft, ("redemption",)),
)
