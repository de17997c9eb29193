"""Of whom the messages are."""

from rules.outgoing.notices import (
    KINDS_OF_PARTS,
    Notice,
    NoticeType,
    Notification,
    holder_names,
    holder_of,
    is_user,
)

AT = "2026-03-01T12:00:00.000000Z"


def test_messages_say_of_whom_they_are() -> None:
    of_parts = {f"{kind.holder}q1": {kind.holder_name: "q1"} for kind in KINDS_OF_PARTS.values()}
    holders = ["ann", "lead", "lead:7", *of_parts]
    said = [holder_names(each) for each in holders]
    assert said == [{"user_id": "ann"}, {"user_id": "lead"}, {"user_id": "lead:7"}, *of_parts.values()]
    assert [holder_of(each) for each in said] == holders
    assert [is_user(each) for each in holders] == [True, True, True, *(False for _ in of_parts)]
    ids = {Notification(each, 1, AT, Notice(NoticeType.TEST, {})).message_id for each in holders}
    assert len(ids) == len(holders)
