"""How steps ask the API: with the status that they want, and with what they want of the answer."""

from typing import Any

from local.smoke.steps import StepFailed
from local.smoke.subject import Subject

Event = dict[str, Any]


def ask(subject: Subject, method: str, path: str, body: Any, wanted: int) -> Any:
    """Return the API's answer; raises StepFailed unless it has the status that is wanted."""
    status, answer = subject.signed_in().call(method, path, body)
    if status != wanted:
        raise StepFailed(f"{method} {path}: {status} instead of {wanted}: {answer}")
    return answer


def must(holds: bool, wanted: str, seen: Any) -> None:
    """Raise StepFailed unless it holds."""
    if not holds:
        raise StepFailed(f"wanted {wanted}, seen: {seen}")


def profile(subject: Subject, user: str) -> dict[str, Any]:
    """Return a user's profile as of the newest day of the test: the same at any hour."""
    path = f"/v1/users/{user}?as_of={subject.days[-1].isoformat()}"
    found: dict[str, Any] = ask(subject, "GET", path, None, 200)
    return found


def shown(subject: Subject, user: str, **wanted: int) -> dict[str, Any]:
    """Wait until a profile shows figures, and return it. Raises TooLate."""

    def look() -> tuple[dict[str, Any] | None, Any]:
        found = profile(subject, user)
        seen = {name: found.get(name) for name in wanted}
        return (found if seen == wanted else None), seen

    return subject.until(look, f"the profile of {user} shows {wanted}", subject.waits.effect)
