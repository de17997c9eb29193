"""Made by `make clients` from the API with the digest 52f89415d75e06b003908d871c30bd08717e4df11eac5668e134bcb28c1420f5."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class ErrorError(TypedDict):
    code: Literal["already_answered", "already_reversed", "backfill_forbidden", "blocked", "blocked_max", "boards_left", "changes_max", "conflict", "contract_broken", "endpoint_ended", "endpoints_max", "erased", "erasure_open", "forbidden", "freezes_held_max", "friends_max", "friends_not_offered", "hold_ended", "holds_max", "in_the_future", "insufficient_balance", "invalid_field", "invalid_json", "invalid_parameter", "kept_apart", "not_found", "not_repairable", "not_reversible", "open_questions_max", "outgoing_off", "pauses_max", "price_changed", "price_forbidden", "question_closed", "question_expired", "rate_limited", "receipt_refused", "redemption_ended", "requests_max", "rest_days_kept", "rest_days_not_offered", "reward_limit", "reward_not_valid", "sold_out", "subscriptions_max", "too_large", "too_many_entries", "too_many_polls", "too_old", "unauthorized", "unavailable", "under_review", "unknown_reward", "unknown_type", "unsupported_media_type"]
    message: str
    details: NotRequired[Any]


class Error(TypedDict):
    error: ErrorError


class Event(TypedDict):
    idempotency_key: str
    event_type: str
    occurred_at: str
    timezone: NotRequired[str | None]
    source: NotRequired[str]
    user_id: NotRequired[str]
    properties: NotRequired[dict[str, Any]]


class BookEventTypesPoints(TypedDict):
    base: NotRequired[int]
    of: str
    each: float
    earns: int


class BookEventTypesCap(TypedDict):
    points: NotRequired[int]
    events: NotRequired[int]
    per: Literal["day", "week"]


class BookEventTypes(TypedDict):
    points: BookEventTypesPoints | int
    cap: NotRequired[BookEventTypesCap]
    declared_by: NotRequired[Literal["anybody", "server"]]
    keeps_streak: NotRequired[bool]
    properties: NotRequired[dict[str, Any]]
    description: NotRequired[str]


class BookBoost(TypedDict):
    since: str
    until: str
    factor: int
    event_types: NotRequired[list[str]]


class BookFreezes(TypedDict):
    held_max: int
    free_a_month: int
    price_points: int


class BookRepairs(TypedDict):
    price_points: int
    within_days: int
    dates_max: int
    a_year: int


class BookPauses(TypedDict):
    dates_max: int
    dates_a_year: int


class BookDaily(TypedDict):
    rest_days: NotRequired[list[Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]]]
    rest_days_chosen: NotRequired[int]
    day_starts_at: NotRequired[str]


class BookRemindersTexts(TypedDict):
    title: str
    text: str
    text_of_one: NotRequired[str]


class BookReminders(TypedDict):
    at: str
    texts: dict[str, BookRemindersTexts]
    language: NotRequired[str]


class BookOffline(TypedDict):
    days_max: int
    days_a_year: int


class BookExpiry(TypedDict):
    after_days: NotRequired[int]
    end_of: NotRequired[Literal["month", "next_month", "quarter", "next_quarter", "year", "next_year"]]


class BookRewards(TypedDict):
    price_points: int
    brand: str
    stock: NotRequired[int]
    limit_per_user: NotRequired[int]
    valid_from: NotRequired[str]
    valid_until: NotRequired[str]
    title: NotRequired[str]
    description: NotRequired[str]
    image_url: NotRequired[str]


class BookAnswersTiming(TypedDict):
    points: int
    from_ms: int
    to_ms: int


class BookAnswers(TypedDict):
    points: int
    confidence_points: NotRequired[int]
    timing: NotRequired[BookAnswersTiming]
    day_points_max: int


class BookStreaksNeedsSum(TypedDict):
    property: str
    at_least: float


class BookStreaksNeeds(TypedDict):
    active_days: NotRequired[int]
    events: NotRequired[int]
    sum: NotRequired[BookStreaksNeedsSum]


class BookStreaks(TypedDict):
    per: Literal["day", "week", "month"]
    needs: BookStreaksNeeds
    event_types: NotRequired[list[str]]
    freezes: NotRequired[bool]
    pauses: NotRequired[bool]
    rest_days: NotRequired[bool]
    description: NotRequired[str]


class BookAchievementsAllItemSum(TypedDict):
    event_type: str
    property: str


class BookAchievementsAllItem(TypedDict):
    points_earned: NotRequired[int]
    count: NotRequired[str]
    streak: NotRequired[str]
    sum: NotRequired[BookAchievementsAllItemSum]
    at_least: NotRequired[float]


class BookAchievementsAnyItemSum(TypedDict):
    event_type: str
    property: str


class BookAchievementsAnyItem(TypedDict):
    points_earned: NotRequired[int]
    count: NotRequired[str]
    streak: NotRequired[str]
    sum: NotRequired[BookAchievementsAnyItemSum]
    at_least: NotRequired[float]


class BookAchievements(TypedDict):
    all: NotRequired[list[BookAchievementsAllItem]]
    any: NotRequired[list[BookAchievementsAnyItem]]
    withdrawn: NotRequired[Literal["never", "when_untrue"]]
    history: NotRequired[bool]
    points: NotRequired[int]
    secret: NotRequired[bool]
    title: NotRequired[str]
    description: NotRequired[str]
    image_url: NotRequired[str]


BookLevel = TypedDict(
    "BookLevel",
    {
        "name": str,
        "from": int,
        "title": NotRequired[str],
        "image_url": NotRequired[str],
    },
)


BookBoards = TypedDict(
    "BookBoards",
    {
        "per": NotRequired[Literal["week", "month"]],
        "from": NotRequired[str],
        "until": NotRequired[str],
        "group": NotRequired[str],
        "description": NotRequired[str],
    },
)


BookLeaguesDivision: TypeAlias = str


class BookLeagues(TypedDict):
    board: str
    divisions: list[BookLeaguesDivision]
    size: int
    up: int
    down: int


class BookFriends(TypedDict):
    max: int


class Book(TypedDict):
    format: NotRequired[Literal[1]]
    event_types: dict[str, BookEventTypes]
    boosts: NotRequired[list[BookBoost]]
    freezes: NotRequired[BookFreezes]
    repairs: NotRequired[BookRepairs]
    pauses: NotRequired[BookPauses]
    daily: NotRequired[BookDaily]
    reminders: NotRequired[BookReminders]
    offline: NotRequired[BookOffline]
    expiry: NotRequired[BookExpiry]
    rewards: NotRequired[dict[str, BookRewards]]
    answers: NotRequired[BookAnswers]
    streaks: NotRequired[dict[str, BookStreaks]]
    achievements: NotRequired[dict[str, BookAchievements]]
    levels: NotRequired[list[BookLevel]]
    boards: NotRequired[dict[str, BookBoards]]
    leagues: NotRequired[BookLeagues]
    friends: NotRequired[BookFriends]


class GetAgentsAgentIdQuestionsResponseQuestion(TypedDict):
    question_id: str
    agent_id: str
    type: str
    prompt: str
    options: list[str]
    audience: list[str]
    category: str
    required_responses: int
    current_responses: int
    status: Literal["OPEN", "PARTIAL", "CLOSED", "EXPIRED"]
    created_at: str
    closes_at: str
    closed_at: NotRequired[str]
    duplicate: NotRequired[bool]


class GetAgentsAgentIdQuestionsResponse(TypedDict):
    questions: list[GetAgentsAgentIdQuestionsResponseQuestion]
    cursor: str | None


GetAmnestiesResponseAmnesty = TypedDict(
    "GetAmnestiesResponseAmnesty",
    {
        "number": NotRequired[int],
        "from": NotRequired[str],
        "to": NotRequired[str],
        "zones": NotRequired[list[str] | None],
        "listed": NotRequired[bool],
        "reason": NotRequired[str],
        "author": NotRequired[str],
        "declared_at": NotRequired[str],
        "revoked_at": NotRequired[str | None],
    },
)


class GetAmnestiesResponse(TypedDict):
    amnesties: NotRequired[list[GetAmnestiesResponseAmnesty]]


PostAmnestiesRequestZone: TypeAlias = str


PostAmnestiesRequest = TypedDict(
    "PostAmnestiesRequest",
    {
        "from": str,
        "to": str,
        "zones": NotRequired[list[PostAmnestiesRequestZone]],
        "listed": NotRequired[bool],
        "reason": str,
    },
)


PostAmnestiesResponse = TypedDict(
    "PostAmnestiesResponse",
    {
        "number": NotRequired[int],
        "from": NotRequired[str],
        "to": NotRequired[str],
        "zones": NotRequired[list[str] | None],
        "listed": NotRequired[bool],
        "reason": NotRequired[str],
        "author": NotRequired[str],
        "declared_at": NotRequired[str],
        "revoked_at": NotRequired[str | None],
    },
)


PostAmnestiesNumberApplyRequestUser: TypeAlias = str


class PostAmnestiesNumberApplyRequest(TypedDict):
    users: list[PostAmnestiesNumberApplyRequestUser]
    dry_run: NotRequired[bool]


class PostAmnestiesNumberApplyResponseUser(TypedDict):
    user_id: NotRequired[str]
    changed: NotRequired[bool]
    streak_before: NotRequired[int]
    streak_after: NotRequired[int]
    freezes_returned: NotRequired[int]


class PostAmnestiesNumberApplyResponse(TypedDict):
    users: NotRequired[list[PostAmnestiesNumberApplyResponseUser]]


PostAmnestiesNumberRevokeResponse = TypedDict(
    "PostAmnestiesNumberRevokeResponse",
    {
        "number": NotRequired[int],
        "from": NotRequired[str],
        "to": NotRequired[str],
        "zones": NotRequired[list[str] | None],
        "listed": NotRequired[bool],
        "reason": NotRequired[str],
        "author": NotRequired[str],
        "declared_at": NotRequired[str],
        "revoked_at": NotRequired[str | None],
    },
)


class GetBoardsResponseBoardNext(TypedDict):
    period: str
    first: str
    last: str


class GetBoardsResponseBoardPeriod(TypedDict):
    period: str
    first: str
    last: str
    state: Literal["open", "provisional", "final"]
    ends_at: str
    final_at: str


class GetBoardsResponseBoard(TypedDict):
    board: str
    per: Literal["week", "month"] | None
    group: str | None
    next: GetBoardsResponseBoardNext | None
    periods: list[GetBoardsResponseBoardPeriod]


class GetBoardsResponse(TypedDict):
    boards: list[GetBoardsResponseBoard]


class GetBoardsBoardNameResponseGroup(TypedDict):
    name: str
    value: str


class GetBoardsBoardNameResponseEntry(TypedDict):
    rank: int
    alias: str | None
    score: int
    is_me: bool


class GetBoardsBoardNameResponseMe(TypedDict):
    score: int
    rank: int | None


class GetBoardsBoardNameResponseAroundItem(TypedDict):
    rank: int
    alias: str | None
    score: int
    is_me: bool


class GetBoardsBoardNameResponse(TypedDict):
    board: str
    period: str
    first: str
    last: str
    state: Literal["open", "provisional", "final"]
    ends_at: str
    final_at: str
    group: NotRequired[GetBoardsBoardNameResponseGroup]
    as_of: str
    is_old: bool
    users: int
    entries: list[GetBoardsBoardNameResponseEntry]
    me: NotRequired[GetBoardsBoardNameResponseMe]
    around: NotRequired[list[GetBoardsBoardNameResponseAroundItem]]


class GetBoardsBoardNameUsersUserIdResponseGroup(TypedDict):
    name: str
    value: str


class GetBoardsBoardNameUsersUserIdResponseAroundItem(TypedDict):
    rank: int
    alias: str | None
    score: int
    is_me: bool


class GetBoardsBoardNameUsersUserIdResponse(TypedDict):
    board: str
    period: str
    first: str
    last: str
    state: Literal["open", "provisional", "final"]
    ends_at: str
    final_at: str
    group: NotRequired[GetBoardsBoardNameUsersUserIdResponseGroup]
    as_of: str
    is_old: bool
    user_id: str
    alias: str
    score: int
    rank: int | None
    around: list[GetBoardsBoardNameUsersUserIdResponseAroundItem]


class GetErasuresErasureIdResponse(TypedDict):
    erasure_id: str
    status: Literal["open", "finished"]
    started_at: NotRequired[str]
    found: NotRequired[dict[str, int]]
    awaits: NotRequired[list[str]]
    deadline: NotRequired[str]
    certificate: NotRequired[dict[str, Any]]


class PostEventsRequest(TypedDict):
    events: list[Event]
    sent_at: NotRequired[str]
    receipt: NotRequired[str]


class PostEventsResponseResult(TypedDict):
    idempotency_key: str | None
    status: Literal["accepted", "duplicate", "conflict", "rejected"]
    event_id: NotRequired[str]
    error: NotRequired[dict[str, Any]]
    activity_date: NotRequired[str]
    points: NotRequired[int]
    closed_periods: NotRequired[list[str]]


PostEventsResponseProfileLevelNext = TypedDict(
    "PostEventsResponseProfileLevelNext",
    {
        "name": str,
        "title": str,
        "from": int,
        "image_url": NotRequired[str],
        "missing": int,
    },
)


PostEventsResponseProfileLevel = TypedDict(
    "PostEventsResponseProfileLevel",
    {
        "name": str,
        "title": str,
        "from": int,
        "image_url": NotRequired[str],
        "next": PostEventsResponseProfileLevelNext | None,
    },
)


class PostEventsResponseProfilePaus(TypedDict):
    first: str
    last: str


PostEventsResponseProfileRestDaysChosen = TypedDict(
    "PostEventsResponseProfileRestDaysChosen",
    {
        "rest_days": list[Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]],
        "from": str,
    },
)


class PostEventsResponseProfileRepair(TypedDict):
    until: str
    dates: list[str]
    price_points: int


class PostEventsResponseProfile(TypedDict):
    user_id: str
    current_streak: int
    longest_streak: int
    streak_status: Literal["active", "at_risk", "broken", "none"]
    last_activity_date: str | None
    timezone: str
    total_bestie_points: int
    balance: int
    available: NotRequired[int]
    debt: NotRequired[int]
    freezes_available: int
    active_days: int
    level: NotRequired[PostEventsResponseProfileLevel | None]
    as_of: NotRequired[str]
    alias: NotRequired[str | None]
    pauses: NotRequired[list[PostEventsResponseProfilePaus]]
    rest_days: NotRequired[list[Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]]]
    day_starts_at: NotRequired[str]
    rest_days_chosen: NotRequired[PostEventsResponseProfileRestDaysChosen]
    repair: NotRequired[PostEventsResponseProfileRepair]


class PostEventsResponseNewAchievementCondition(TypedDict):
    counts: Literal["points_earned", "count", "sum", "streak"]
    event_type: NotRequired[str]
    property: NotRequired[str]
    streak: NotRequired[str]
    needs: float
    have: float


class PostEventsResponseNewAchievement(TypedDict):
    name: str
    title: str
    image_url: NotRequired[str]
    achieved: bool
    achieved_at: str | None
    points: NotRequired[int]
    paid: NotRequired[int]
    needs: Literal["all", "any"]
    conditions: list[PostEventsResponseNewAchievementCondition]


PostEventsResponseNewLevelNext = TypedDict(
    "PostEventsResponseNewLevelNext",
    {
        "name": str,
        "title": str,
        "from": int,
        "image_url": NotRequired[str],
        "missing": int,
    },
)


PostEventsResponseNewLevel = TypedDict(
    "PostEventsResponseNewLevel",
    {
        "name": str,
        "title": str,
        "from": int,
        "image_url": NotRequired[str],
        "next": PostEventsResponseNewLevelNext | None,
    },
)


class PostEventsResponse(TypedDict):
    accepted: int
    duplicates: int
    rejected: int
    results: list[PostEventsResponseResult]
    profile: PostEventsResponseProfile
    new_achievements: list[PostEventsResponseNewAchievement] | None
    new_level: PostEventsResponseNewLevel | None


class PostEventsResponse1Result(TypedDict):
    idempotency_key: str | None
    status: Literal["accepted", "duplicate", "conflict", "rejected"]
    event_id: NotRequired[str]
    error: NotRequired[dict[str, Any]]


class PostEventsResponse1(TypedDict):
    accepted: int
    duplicates: int
    rejected: int
    results: list[PostEventsResponse1Result]


class GetHealthResponse(TypedDict):
    pass


class OptionsHooksOrganizationSourceResponse(TypedDict):
    pass


class PostHooksOrganizationSourceResponse(TypedDict):
    accepted: int


class GetLeaderboardsBoardResponseEntry(TypedDict):
    rank: int
    alias: str
    score: int
    is_me: bool


class GetLeaderboardsBoardResponse(TypedDict):
    board: str
    region: str
    as_of: str
    is_old: bool
    entries: list[GetLeaderboardsBoardResponseEntry]


class GetLeaderboardsBoardUsersUserIdResponse(TypedDict):
    board: str
    region: str
    user_id: str
    alias: str
    score: int
    rank: int | None
    as_of: str
    is_old: bool


class GetLeadsResponse(TypedDict):
    pass


class PostLeadsChangesChangeReversalRequest(TypedDict):
    reason: str
    organization_id: NotRequired[str]


class PostLeadsChangesChangeReversalResponse(TypedDict):
    pass


class PostLeadsEventsRequest(TypedDict):
    organization_id: str
    source: Literal["ecommerce", "email_campaign", "generic", "web_form", "whatsapp"]
    integration: NotRequired[str]
    payload: dict[str, Any] | list[Any]


class PostLeadsEventsResponseEventOmission(TypedDict):
    field: str
    reason: str


class PostLeadsEventsResponseEvent(TypedDict):
    external_event_id: str
    event_type: str
    omissions: NotRequired[list[PostLeadsEventsResponseEventOmission]]


class PostLeadsEventsResponseRejectedItem(TypedDict):
    field: str
    reason: str


class PostLeadsEventsResponse(TypedDict):
    accepted: int
    events: list[PostLeadsEventsResponseEvent]
    rejected: NotRequired[list[PostLeadsEventsResponseRejectedItem]]


class PostLeadsLiftRequest(TypedDict):
    organization_id: str
    email: NotRequired[str]
    phone: NotRequired[str]
    whatsapp: NotRequired[str]


class PostLeadsLiftResponse(TypedDict):
    lifted: int


class PostLeadsLookupRequest(TypedDict):
    organization_id: str
    email: NotRequired[str]
    phone: NotRequired[str]
    whatsapp: NotRequired[str]


class PostLeadsLookupResponse(TypedDict):
    pass


PostLeadsMergesRequestLead: TypeAlias = str


class PostLeadsMergesRequest(TypedDict):
    leads: list[PostLeadsMergesRequestLead]
    reason: str
    unite: NotRequired[bool]


class PostLeadsMergesResponse(TypedDict):
    pass


class DeleteLeadsLeadIdResponse(TypedDict):
    erasure_id: str
    status: Literal["open", "finished"]
    started_at: NotRequired[str]
    found: NotRequired[dict[str, int]]
    awaits: NotRequired[list[str]]
    deadline: NotRequired[str]
    certificate: NotRequired[dict[str, Any]]


class GetLeadsLeadIdChangesResponse(TypedDict):
    pass


class GetLeadsLeadIdEventsResponse(TypedDict):
    pass


class GetLeadsLeadIdExportResponse(TypedDict):
    export_id: str
    status: Literal["running", "finished"]
    asked_at: str
    finished_at: NotRequired[str]
    url: NotRequired[str]
    url_expires_at: NotRequired[str]
    expires_at: NotRequired[str]
    bytes: NotRequired[int]


class PostLeadsLeadIdExportResponse(TypedDict):
    export_id: str
    status: Literal["running", "finished"]
    asked_at: str
    finished_at: NotRequired[str]
    url: NotRequired[str]
    url_expires_at: NotRequired[str]
    expires_at: NotRequired[str]
    bytes: NotRequired[int]


class GetLeadsLeadIdFeaturesResponseFeatures(TypedDict):
    monetary_total: NotRequired[float | None]
    monetary_30d: NotRequired[float | None]
    monetary_90d: NotRequired[float | None]
    monetary_365d: NotRequired[float | None]
    frequency_purchases_30d: NotRequired[float | None]
    frequency_purchases_90d: NotRequired[float | None]
    frequency_purchases_365d: NotRequired[float | None]
    average_order_value: NotRequired[float | None]
    days_since_last_purchase: NotRequired[float | None]
    tenure_days: NotRequired[float | None]
    has_purchased: NotRequired[bool | None]
    recency_days: NotRequired[float | None]
    sentiment_avg_30d: NotRequired[float | None]
    campaign_ignored: NotRequired[float | None]


class GetLeadsLeadIdFeaturesResponse(TypedDict):
    lead_id: str
    features: GetLeadsLeadIdFeaturesResponseFeatures
    money: NotRequired[dict[str, Any]]
    money_total: NotRequired[dict[str, Any] | None]
    computed_at: str | None
    as_of: NotRequired[dict[str, Any]]


class GetLeadsLeadIdMemoryResponse(TypedDict):
    pass


class GetOpenapiJsonResponse(TypedDict):
    pass


class GetOperationsResponse(TypedDict):
    pass


class GetQuestionsResponseQuestion(TypedDict):
    question_id: str
    agent_id: str
    type: str
    prompt: str
    options: list[str]
    audience: list[str]
    category: str
    required_responses: int
    current_responses: int
    status: Literal["OPEN", "PARTIAL", "CLOSED", "EXPIRED"]
    created_at: str
    closes_at: str
    closed_at: NotRequired[str]
    duplicate: NotRequired[bool]


class GetQuestionsResponse(TypedDict):
    questions: list[GetQuestionsResponseQuestion]
    cursor: str | None


PostQuestionsRequestOption: TypeAlias = str


PostQuestionsRequestAudienceItem: TypeAlias = str


class PostQuestionsRequest(TypedDict):
    idempotency_key: str
    type: Literal["text", "multiple_choice"]
    prompt: str
    options: NotRequired[list[PostQuestionsRequestOption]]
    audience: NotRequired[list[PostQuestionsRequestAudienceItem]]
    category: NotRequired[str]
    required_responses: int
    closes_at: NotRequired[str]


class PostQuestionsResponse(TypedDict):
    question_id: str
    agent_id: str
    type: str
    prompt: str
    options: list[str]
    audience: list[str]
    category: str
    required_responses: int
    current_responses: int
    status: Literal["OPEN", "PARTIAL", "CLOSED", "EXPIRED"]
    created_at: str
    closes_at: str
    closed_at: NotRequired[str]
    duplicate: NotRequired[bool]


class GetQuestionsQuestionIdResponse(TypedDict):
    question_id: str
    agent_id: str
    type: str
    prompt: str
    options: list[str]
    audience: list[str]
    category: str
    required_responses: int
    current_responses: int
    status: Literal["OPEN", "PARTIAL", "CLOSED", "EXPIRED"]
    created_at: str
    closes_at: str
    closed_at: NotRequired[str]
    duplicate: NotRequired[bool]


class GetQuestionsQuestionIdResponsesResponseResponse(TypedDict):
    response_id: str
    number: int
    selected_option: NotRequired[int]
    answer: NotRequired[str]
    confidence: NotRequired[int]
    response_time_ms: NotRequired[int]
    created_at: str


class GetQuestionsQuestionIdResponsesResponse(TypedDict):
    question_id: str
    status: Literal["OPEN", "PARTIAL", "CLOSED", "EXPIRED"]
    current_responses: int
    required_responses: NotRequired[int]
    responses: list[GetQuestionsQuestionIdResponsesResponseResponse]
    cursor: str
    done: bool


class PostQuestionsQuestionIdResponsesRequest(TypedDict):
    selected_option: NotRequired[int]
    answer: NotRequired[str]
    confidence: NotRequired[int]
    response_time_ms: NotRequired[int]
    timezone: NotRequired[str]
    fingerprint: NotRequired[str]


class PostQuestionsQuestionIdResponsesResponse(TypedDict):
    question_id: str
    response_id: str
    number: int
    status: Literal["OPEN", "PARTIAL", "CLOSED", "EXPIRED"]
    current_responses: NotRequired[int]
    points: int
    points_for: dict[str, Any]
    created_at: str
    activity_date: NotRequired[str]
    timezone: NotRequired[str]


class GetReviewResponseAccount(TypedDict):
    user_id: str
    since: str | None
    evidence: list[str]


class GetReviewResponse(TypedDict):
    accounts: list[GetReviewResponseAccount]
    cursor: str | None


class PostReviewUserIdReleaseResponse(TypedDict):
    user_id: str
    under_review: bool
    evidence: list[str]
    released_at: NotRequired[str | None]


class GetRewardsResponseReward(TypedDict):
    reward: str
    title: NotRequired[str]
    description: NotRequired[str]
    image_url: NotRequired[str]
    price_points: int
    brand: str
    limit_per_user: NotRequired[int]
    valid_from: NotRequired[str]
    valid_until: NotRequired[str]
    left: NotRequired[int]


class GetRewardsResponse(TypedDict):
    version: int
    rewards: list[GetRewardsResponseReward]
    cursor: str | None


class GetRulesResponse(TypedDict):
    version: int
    effective_at: str
    published_at: str
    author: NotRequired[str]
    note: str
    book: Book


class PostRulesRequest(TypedDict):
    book: dict[str, Any]
    effective: NotRequired[str]
    note: NotRequired[str]
    rerate: NotRequired[bool]
    dry_run: NotRequired[bool]


class PostRulesResponse(TypedDict):
    version: int
    effective_at: str
    published_at: str
    author: NotRequired[str]
    note: str


class GetRulesVersionsResponseVersion(TypedDict):
    version: int
    effective_at: str
    published_at: str
    author: NotRequired[str]
    note: str


class GetRulesVersionsResponse(TypedDict):
    versions: list[GetRulesVersionsResponseVersion]


PostRulesWhatIfsRequest = TypedDict(
    "PostRulesWhatIfsRequest",
    {
        "book": dict[str, Any],
        "from": NotRequired[str],
        "to": NotRequired[str],
    },
)


class PostRulesWhatIfsResponse(TypedDict):
    what_if_id: str
    status: Literal["running", "finished", "failed"]
    asked_at: str
    finished_at: NotRequired[str]
    reason: NotRequired[str]
    report: NotRequired[dict[str, Any]]


class GetRulesWhatIfsWhatIfIdResponse(TypedDict):
    what_if_id: str
    status: Literal["running", "finished", "failed"]
    asked_at: str
    finished_at: NotRequired[str]
    reason: NotRequired[str]
    report: NotRequired[dict[str, Any]]


class GetStatsResponseEntry(TypedDict):
    rank: int
    alias: str
    points: int
    total_answers: int
    is_me: bool


class GetStatsResponse(TypedDict):
    entries: list[GetStatsResponseEntry]


class GetStatsFingerprintResponseBadgesEarnedItem(TypedDict):
    badge: str
    title: str
    earned_on: str


class GetStatsFingerprintResponse(TypedDict):
    fingerprint: str
    alias: str
    total_points: int
    total_answers: int
    streak_days: int
    longest_streak_days: int
    streak_status: Literal["active", "at_risk", "broken", "none"]
    streak_last_date: str | None
    timezone: str
    badges: list[str]
    badges_earned: NotRequired[list[GetStatsFingerprintResponseBadgesEarnedItem]]
    answers_by_category: dict[str, int]
    created_at: str | None


PostSubscriptionsRequestAudienceItem: TypeAlias = str


PostSubscriptionsRequestQuietHours = TypedDict(
    "PostSubscriptionsRequestQuietHours",
    {
        "from": str,
        "to": str,
    },
)


class PostSubscriptionsRequest(TypedDict):
    fcm_token: str
    audience: NotRequired[list[PostSubscriptionsRequestAudienceItem]]
    min_interval_minutes: NotRequired[int]
    timezone: NotRequired[str]
    quiet_hours: NotRequired[PostSubscriptionsRequestQuietHours | None]
    streak_reminders: NotRequired[bool]
    reminders_at: NotRequired[str | None]
    language: NotRequired[str | None]


PostSubscriptionsResponseAudienceItem: TypeAlias = str


PostSubscriptionsResponseQuietHours = TypedDict(
    "PostSubscriptionsResponseQuietHours",
    {
        "from": str,
        "to": str,
    },
)


class PostSubscriptionsResponse(TypedDict):
    subscription_id: str
    audience: list[PostSubscriptionsResponseAudienceItem]
    min_interval_minutes: int
    timezone: str
    quiet_hours: PostSubscriptionsResponseQuietHours | None
    streak_reminders: bool
    reminders_at: str | None
    language: str | None
    created_at: str
    updated_at: str


PostSubscriptionsResponse1AudienceItem: TypeAlias = str


PostSubscriptionsResponse1QuietHours = TypedDict(
    "PostSubscriptionsResponse1QuietHours",
    {
        "from": str,
        "to": str,
    },
)


class PostSubscriptionsResponse1(TypedDict):
    subscription_id: str
    audience: list[PostSubscriptionsResponse1AudienceItem]
    min_interval_minutes: int
    timezone: str
    quiet_hours: PostSubscriptionsResponse1QuietHours | None
    streak_reminders: bool
    reminders_at: str | None
    language: str | None
    created_at: str
    updated_at: str


class DeleteSubscriptionsSubscriptionIdResponse(TypedDict):
    pass


GetUsersResponseUserLevelNext = TypedDict(
    "GetUsersResponseUserLevelNext",
    {
        "name": str,
        "title": str,
        "from": int,
        "image_url": NotRequired[str],
        "missing": int,
    },
)


GetUsersResponseUserLevel = TypedDict(
    "GetUsersResponseUserLevel",
    {
        "name": str,
        "title": str,
        "from": int,
        "image_url": NotRequired[str],
        "next": GetUsersResponseUserLevelNext | None,
    },
)


class GetUsersResponseUserPaus(TypedDict):
    first: str
    last: str


GetUsersResponseUserRestDaysChosen = TypedDict(
    "GetUsersResponseUserRestDaysChosen",
    {
        "rest_days": list[Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]],
        "from": str,
    },
)


class GetUsersResponseUserRepair(TypedDict):
    until: str
    dates: list[str]
    price_points: int


class GetUsersResponseUser(TypedDict):
    user_id: str
    current_streak: int
    longest_streak: int
    streak_status: Literal["active", "at_risk", "broken", "none"]
    last_activity_date: str | None
    timezone: str
    total_bestie_points: int
    balance: int
    available: NotRequired[int]
    debt: NotRequired[int]
    freezes_available: int
    active_days: int
    level: NotRequired[GetUsersResponseUserLevel | None]
    as_of: NotRequired[str]
    alias: NotRequired[str | None]
    pauses: NotRequired[list[GetUsersResponseUserPaus]]
    rest_days: NotRequired[list[Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]]]
    day_starts_at: NotRequired[str]
    rest_days_chosen: NotRequired[GetUsersResponseUserRestDaysChosen]
    repair: NotRequired[GetUsersResponseUserRepair]


class GetUsersResponse(TypedDict):
    users: list[GetUsersResponseUser]
    missing: list[str]


class DeleteUsersUserIdResponse(TypedDict):
    erasure_id: str
    status: Literal["open", "finished"]
    started_at: NotRequired[str]
    found: NotRequired[dict[str, int]]
    awaits: NotRequired[list[str]]
    deadline: NotRequired[str]
    certificate: NotRequired[dict[str, Any]]


GetUsersUserIdResponseLevelNext = TypedDict(
    "GetUsersUserIdResponseLevelNext",
    {
        "name": str,
        "title": str,
        "from": int,
        "image_url": NotRequired[str],
        "missing": int,
    },
)


GetUsersUserIdResponseLevel = TypedDict(
    "GetUsersUserIdResponseLevel",
    {
        "name": str,
        "title": str,
        "from": int,
        "image_url": NotRequired[str],
        "next": GetUsersUserIdResponseLevelNext | None,
    },
)


class GetUsersUserIdResponsePaus(TypedDict):
    first: str
    last: str


GetUsersUserIdResponseRestDaysChosen = TypedDict(
    "GetUsersUserIdResponseRestDaysChosen",
    {
        "rest_days": list[Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]],
        "from": str,
    },
)


class GetUsersUserIdResponseRepair(TypedDict):
    until: str
    dates: list[str]
    price_points: int


class GetUsersUserIdResponse(TypedDict):
    user_id: str
    current_streak: int
    longest_streak: int
    streak_status: Literal["active", "at_risk", "broken", "none"]
    last_activity_date: str | None
    timezone: str
    total_bestie_points: int
    balance: int
    available: NotRequired[int]
    debt: NotRequired[int]
    freezes_available: int
    active_days: int
    level: NotRequired[GetUsersUserIdResponseLevel | None]
    as_of: NotRequired[str]
    alias: NotRequired[str | None]
    pauses: NotRequired[list[GetUsersUserIdResponsePaus]]
    rest_days: NotRequired[list[Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]]]
    day_starts_at: NotRequired[str]
    rest_days_chosen: NotRequired[GetUsersUserIdResponseRestDaysChosen]
    repair: NotRequired[GetUsersUserIdResponseRepair]


class GetUsersUserIdAchievementsResponseAchievementCondition(TypedDict):
    counts: Literal["points_earned", "count", "sum", "streak"]
    event_type: NotRequired[str]
    property: NotRequired[str]
    streak: NotRequired[str]
    needs: float
    have: float


class GetUsersUserIdAchievementsResponseAchievement(TypedDict):
    name: str
    title: str
    image_url: NotRequired[str]
    achieved: bool
    achieved_at: str | None
    points: NotRequired[int]
    paid: NotRequired[int]
    needs: Literal["all", "any"]
    conditions: list[GetUsersUserIdAchievementsResponseAchievementCondition]


class GetUsersUserIdAchievementsResponse(TypedDict):
    user_id: str
    achievements: list[GetUsersUserIdAchievementsResponseAchievement]
    secrets: NotRequired[int]


class GetUsersUserIdActivityResponseActivityItem(TypedDict):
    activity_date: str
    events_count: int
    points_earned: int
    points_by_type: NotRequired[dict[str, Any]]
    first_event_id: NotRequired[str]


class GetUsersUserIdActivityResponseCoveredItem(TypedDict):
    date: str
    reason: Literal["covered_by_freeze", "repaired", "paused", "rest_day", "short_date", "skipped_by_zone", "amnesty"]


class GetUsersUserIdActivityResponse(TypedDict):
    activity: list[GetUsersUserIdActivityResponseActivityItem]
    covered: NotRequired[list[GetUsersUserIdActivityResponseCoveredItem]]
    cursor: str | None


class PutUsersUserIdAliasRequest(TypedDict):
    alias: str | None


class PutUsersUserIdAliasResponse(TypedDict):
    user_id: str
    alias: str | None
    shown_as: str


class GetUsersUserIdAnswersResponseAnswer(TypedDict):
    question_id: str
    response_id: str
    type: str
    category: str
    selected_option: NotRequired[int]
    answer: NotRequired[str]
    confidence: NotRequired[int]
    response_time_ms: NotRequired[int]
    points: int
    created_at: str
    activity_date: NotRequired[str]
    timezone: NotRequired[str]


class GetUsersUserIdAnswersResponse(TypedDict):
    answers: list[GetUsersUserIdAnswersResponseAnswer]
    cursor: str | None


class GetUsersUserIdBalanceResponseHold(TypedDict):
    hold_id: str
    points: int
    reward_id: str
    held_at: str
    until: str
    status: Literal["held", "captured", "released", "lapsed"]
    duplicate: NotRequired[bool]


class GetUsersUserIdBalanceResponseExpiringItem(TypedDict):
    at: str
    points: int


class GetUsersUserIdBalanceResponse(TypedDict):
    user_id: str
    balance: NotRequired[int]
    held: NotRequired[int]
    available: NotRequired[int]
    debt: NotRequired[int]
    as_of: str
    known_balance: NotRequired[int]
    true_balance: NotRequired[int]
    holds: NotRequired[list[GetUsersUserIdBalanceResponseHold]]
    expiring: NotRequired[list[GetUsersUserIdBalanceResponseExpiringItem]]


class DeleteUsersUserIdBlockedFriendIdResponse(TypedDict):
    user_id: str
    friend_id: str
    state: Literal["friend", "asked", "request", "blocked", "none"]
    since: str | None


class PutUsersUserIdBlockedFriendIdResponse(TypedDict):
    user_id: str
    friend_id: str
    state: Literal["friend", "asked", "request", "blocked", "none"]
    since: str | None


class GetUsersUserIdBoardsResponse(TypedDict):
    user_id: str
    hidden: bool
    groups: dict[str, Any]


class PutUsersUserIdBoardsRequest(TypedDict):
    hidden: bool


class PutUsersUserIdBoardsResponse(TypedDict):
    user_id: str
    hidden: bool
    groups: dict[str, Any]


class PostUsersUserIdClawbacksRequest(TypedDict):
    event_id: str
    reason: str
    idempotency_key: str


class PostUsersUserIdClawbacksResponse(TypedDict):
    entry_id: str
    kind: str
    points: int
    balance: int
    setting: NotRequired[str]
    freeze: NotRequired[str]
    debt: NotRequired[int]
    reason: NotRequired[str]
    created_at: str
    occurred_at: NotRequired[str]
    duplicate: NotRequired[bool]


class GetUsersUserIdEventsResponse(TypedDict):
    pass


class GetUsersUserIdExportResponse(TypedDict):
    export_id: str
    status: Literal["running", "finished"]
    asked_at: str
    finished_at: NotRequired[str]
    url: NotRequired[str]
    url_expires_at: NotRequired[str]
    expires_at: NotRequired[str]
    bytes: NotRequired[int]


class PostUsersUserIdExportResponse(TypedDict):
    export_id: str
    status: Literal["running", "finished"]
    asked_at: str
    finished_at: NotRequired[str]
    url: NotRequired[str]
    url_expires_at: NotRequired[str]
    expires_at: NotRequired[str]
    bytes: NotRequired[int]


class PostUsersUserIdFreezesRequest(TypedDict):
    idempotency_key: NotRequired[str]
    granted_on: NotRequired[str]


class PostUsersUserIdFreezesResponse(TypedDict):
    entry_id: str
    kind: str
    points: int
    balance: int
    setting: NotRequired[str]
    freeze: NotRequired[str]
    debt: NotRequired[int]
    reason: NotRequired[str]
    created_at: str
    occurred_at: NotRequired[str]
    duplicate: NotRequired[bool]


class GetUsersUserIdFriendsResponseFriend(TypedDict):
    user_id: str
    since: str
    alias: str | None
    streak: int
    at_risk: bool
    today: str
    active_today: bool
    friend_active_today: bool


class GetUsersUserIdFriendsResponseRequest(TypedDict):
    user_id: str
    since: str
    alias: str | None


class GetUsersUserIdFriendsResponseAskedItem(TypedDict):
    user_id: str
    since: str


class GetUsersUserIdFriendsResponseBlockedItem(TypedDict):
    user_id: str
    since: str


class GetUsersUserIdFriendsResponse(TypedDict):
    user_id: str
    friends_max: int
    friends: list[GetUsersUserIdFriendsResponseFriend]
    requests: list[GetUsersUserIdFriendsResponseRequest]
    asked: list[GetUsersUserIdFriendsResponseAskedItem]
    blocked: list[GetUsersUserIdFriendsResponseBlockedItem]


class GetUsersUserIdFriendsBoardResponseEntry(TypedDict):
    rank: int
    user_id: str
    alias: str | None
    score: int
    is_me: bool


class GetUsersUserIdFriendsBoardResponse(TypedDict):
    board: str
    period: NotRequired[str]
    entries: list[GetUsersUserIdFriendsBoardResponseEntry]


class DeleteUsersUserIdFriendsFriendIdResponse(TypedDict):
    user_id: str
    friend_id: str
    state: Literal["friend", "asked", "request", "blocked", "none"]
    since: str | None


class PutUsersUserIdFriendsFriendIdRequest(TypedDict):
    since: NotRequired[str]


class PutUsersUserIdFriendsFriendIdResponse(TypedDict):
    user_id: str
    friend_id: str
    state: Literal["friend", "asked", "request", "blocked", "none"]
    since: str | None


PutUsersUserIdGroupsRequest: TypeAlias = dict[str, str]


class PutUsersUserIdGroupsResponse(TypedDict):
    user_id: str
    hidden: bool
    groups: dict[str, Any]


class PostUsersUserIdHoldsRequest(TypedDict):
    points: int
    reward_id: str
    idempotency_key: str
    seconds: NotRequired[int]


class PostUsersUserIdHoldsResponse(TypedDict):
    hold_id: str
    points: int
    reward_id: str
    held_at: str
    until: str
    status: Literal["held", "captured", "released", "lapsed"]
    duplicate: NotRequired[bool]


class PostUsersUserIdHoldsHoldIdCaptureRequest(TypedDict):
    points: NotRequired[int]


class PostUsersUserIdHoldsHoldIdCaptureResponse(TypedDict):
    entry_id: str
    kind: str
    points: int
    balance: int
    setting: NotRequired[str]
    freeze: NotRequired[str]
    debt: NotRequired[int]
    reason: NotRequired[str]
    created_at: str
    occurred_at: NotRequired[str]
    duplicate: NotRequired[bool]


class PostUsersUserIdHoldsHoldIdReleaseResponse(TypedDict):
    hold_id: str
    points: int
    reward_id: str
    held_at: str
    until: str
    status: Literal["held", "captured", "released", "lapsed"]
    duplicate: NotRequired[bool]


class GetUsersUserIdLeagueResponseDivision(TypedDict):
    name: str
    number: int
    of: int


class GetUsersUserIdLeagueResponseLeagueEntry(TypedDict):
    rank: int
    alias: str
    points: int
    is_me: bool
    zone: Literal["up", "stay", "down"]


class GetUsersUserIdLeagueResponseLeague(TypedDict):
    week: str
    state: Literal["open", "closing"]
    closes_at: str
    entries: list[GetUsersUserIdLeagueResponseLeagueEntry]


class GetUsersUserIdLeagueResponseLast(TypedDict):
    week: str
    division: str
    rank: int
    points: int
    zone: Literal["up", "stay", "down"]
    members: int


class GetUsersUserIdLeagueResponse(TypedDict):
    user_id: str
    taking_part: bool
    division: GetUsersUserIdLeagueResponseDivision
    league: GetUsersUserIdLeagueResponseLeague | None
    last: GetUsersUserIdLeagueResponseLast | None


class PutUsersUserIdLeagueRequest(TypedDict):
    taking_part: bool


class PutUsersUserIdLeagueResponse(TypedDict):
    user_id: str
    taking_part: bool


class GetUsersUserIdLedgerResponse(TypedDict):
    pass


class PostUsersUserIdLiftResponse(TypedDict):
    lifted: int


class PostUsersUserIdPausesRequest(TypedDict):
    first: str
    last: str


class PostUsersUserIdPausesResponsePaus(TypedDict):
    first: str
    last: str


class PostUsersUserIdPausesResponse(TypedDict):
    user_id: str
    pauses: list[PostUsersUserIdPausesResponsePaus]


class PostUsersUserIdPausesResponse1Paus(TypedDict):
    first: str
    last: str


class PostUsersUserIdPausesResponse1(TypedDict):
    user_id: str
    pauses: list[PostUsersUserIdPausesResponse1Paus]


class GetUsersUserIdRedemptionsResponseRedemption(TypedDict):
    entry_id: str
    user_id: str
    reward: str
    title: NotRequired[str]
    brand: str
    price_points: int
    rules_version: int
    created_at: str
    fulfilment: Literal["requested", "fulfilled", "failed", "reversed"]
    changed_at: NotRequired[str]
    duplicate: NotRequired[bool]


class GetUsersUserIdRedemptionsResponse(TypedDict):
    redemptions: list[GetUsersUserIdRedemptionsResponseRedemption]
    cursor: str | None


class PostUsersUserIdRedemptionsRequest(TypedDict):
    reward: NotRequired[str]
    price_points: NotRequired[int]
    points: NotRequired[int]
    reward_id: NotRequired[str]
    idempotency_key: str


class PostUsersUserIdRedemptionsResponse(TypedDict):
    entry_id: str
    kind: str
    points: int
    balance: int
    setting: NotRequired[str]
    freeze: NotRequired[str]
    debt: NotRequired[int]
    reason: NotRequired[str]
    created_at: str
    occurred_at: NotRequired[str]
    duplicate: NotRequired[bool]


class GetUsersUserIdRedemptionsEntryIdResponse(TypedDict):
    entry_id: str
    user_id: str
    reward: str
    title: NotRequired[str]
    brand: str
    price_points: int
    rules_version: int
    created_at: str
    fulfilment: Literal["requested", "fulfilled", "failed", "reversed"]
    changed_at: NotRequired[str]
    duplicate: NotRequired[bool]


class PostUsersUserIdRedemptionsEntryIdFailedResponse(TypedDict):
    entry_id: str
    user_id: str
    reward: str
    title: NotRequired[str]
    brand: str
    price_points: int
    rules_version: int
    created_at: str
    fulfilment: Literal["requested", "fulfilled", "failed", "reversed"]
    changed_at: NotRequired[str]
    duplicate: NotRequired[bool]


class PostUsersUserIdRedemptionsEntryIdFulfilledResponse(TypedDict):
    entry_id: str
    user_id: str
    reward: str
    title: NotRequired[str]
    brand: str
    price_points: int
    rules_version: int
    created_at: str
    fulfilment: Literal["requested", "fulfilled", "failed", "reversed"]
    changed_at: NotRequired[str]
    duplicate: NotRequired[bool]


class PostUsersUserIdRedemptionsEntryIdReversalResponse(TypedDict):
    entry_id: str
    kind: str
    points: int
    balance: int
    setting: NotRequired[str]
    freeze: NotRequired[str]
    debt: NotRequired[int]
    reason: NotRequired[str]
    created_at: str
    occurred_at: NotRequired[str]
    duplicate: NotRequired[bool]


class PutUsersUserIdRestDaysRequest(TypedDict):
    rest_days: list[Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]]


PutUsersUserIdRestDaysResponse = TypedDict(
    "PutUsersUserIdRestDaysResponse",
    {
        "user_id": str,
        "rest_days": list[Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]],
        "from": str | None,
    },
)


class GetUsersUserIdRewardsResponseReward(TypedDict):
    reward: str
    title: NotRequired[str]
    description: NotRequired[str]
    image_url: NotRequired[str]
    price_points: int
    brand: str
    limit_per_user: NotRequired[int]
    valid_from: NotRequired[str]
    valid_until: NotRequired[str]
    left: NotRequired[int]
    affordable: bool
    left_for_user: NotRequired[int]


class GetUsersUserIdRewardsResponse(TypedDict):
    version: int
    rewards: list[GetUsersUserIdRewardsResponseReward]
    cursor: str | None
    user_id: str
    available: int


class GetUsersUserIdStreakExplainResponse(TypedDict):
    pass


class PostUsersUserIdStreakRepairRequest(TypedDict):
    idempotency_key: NotRequired[str]
    price_points: NotRequired[int]


class PostUsersUserIdStreakRepairResponseEntry(TypedDict):
    entry_id: str
    kind: str
    points: int
    balance: int
    setting: NotRequired[str]
    freeze: NotRequired[str]
    debt: NotRequired[int]
    reason: NotRequired[str]
    created_at: str
    occurred_at: NotRequired[str]
    duplicate: NotRequired[bool]


class PostUsersUserIdStreakRepairResponse(TypedDict):
    dates: list[str]
    price_points: int
    entries: list[PostUsersUserIdStreakRepairResponseEntry]
    duplicate: NotRequired[bool]


class GetUsersUserIdStreaksResponseStreakPeriod(TypedDict):
    first: str
    last: str
    counts: NotRequired[Literal["active_days", "events", "sum"]]
    property: NotRequired[str]
    needs: NotRequired[float]
    have: NotRequired[float]
    missing: NotRequired[float]


class GetUsersUserIdStreaksResponseStreak(TypedDict):
    name: str
    per: Literal["day", "week", "month"]
    current_streak: int
    longest_streak: int
    status: Literal["active", "at_risk", "broken", "none"]
    reached: int
    last_reached: str | None
    freezes_used: NotRequired[int]
    period: NotRequired[GetUsersUserIdStreaksResponseStreakPeriod]


class GetUsersUserIdStreaksResponse(TypedDict):
    user_id: str
    as_of: str
    streaks: list[GetUsersUserIdStreaksResponseStreak]


class GetUsersUserIdStreaksNameExplainResponsePeriod(TypedDict):
    first: str
    last: str
    counts: NotRequired[Literal["active_days", "events", "sum"]]
    property: NotRequired[str]
    needs: NotRequired[float]
    have: NotRequired[float]
    missing: NotRequired[float]


class GetUsersUserIdStreaksNameExplainResponseContribution(TypedDict):
    date: str
    adds: float


class GetUsersUserIdStreaksNameExplainResponse(TypedDict):
    user_id: str
    name: str
    date: str
    counts: bool
    reason: Literal["reached", "covered_by_freeze", "paused", "rest_day", "skipped_by_zone", "short_date", "missed", "not_over_yet", "not_asked", "before_first_period"]
    rule: str
    rules_version: int
    streak_length: int
    period: GetUsersUserIdStreaksNameExplainResponsePeriod
    contributions: list[GetUsersUserIdStreaksNameExplainResponseContribution]


class PutUsersUserIdTimezoneRequest(TypedDict):
    timezone: str


class PutUsersUserIdTimezoneResponseRecentTzChange(TypedDict):
    at: str
    timezone: str


class PutUsersUserIdTimezoneResponseObservedZone(TypedDict):
    at: str
    timezone: str


class PutUsersUserIdTimezoneResponse(TypedDict):
    user_id: str
    timezone: str
    recent_tz_changes: list[PutUsersUserIdTimezoneResponseRecentTzChange]
    observed_zones: list[PutUsersUserIdTimezoneResponseObservedZone]
    under_review: bool


GetWebhookEndpointsResponseEndpointAgent: TypeAlias = str


class GetWebhookEndpointsResponseEndpointFiltersAchievementEarned(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersBoardFinished(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersFriendAdded(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersFriendEnded(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersFriendRequested(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersHoldExpired(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersLeadUpdated(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersLeagueClosed(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersLevelChanged(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersPointsChanged(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersProfileChanged(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersQuestionClosed(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersRewardRedeemed(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersStreakAtRisk(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersStreakCorrected(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersStreakExtended(TypedDict):
    at_least: float


class GetWebhookEndpointsResponseEndpointFiltersStreakLost(TypedDict):
    at_least: float


GetWebhookEndpointsResponseEndpointFilters = TypedDict(
    "GetWebhookEndpointsResponseEndpointFilters",
    {
        "achievement.earned": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersAchievementEarned]]],
        "board.finished": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersBoardFinished]]],
        "friend.added": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersFriendAdded]]],
        "friend.ended": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersFriendEnded]]],
        "friend.requested": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersFriendRequested]]],
        "hold.expired": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersHoldExpired]]],
        "lead.updated": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersLeadUpdated]]],
        "league.closed": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersLeagueClosed]]],
        "level.changed": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersLevelChanged]]],
        "points.changed": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersPointsChanged]]],
        "profile.changed": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersProfileChanged]]],
        "question.closed": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersQuestionClosed]]],
        "reward.redeemed": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersRewardRedeemed]]],
        "streak.at_risk": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersStreakAtRisk]]],
        "streak.corrected": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersStreakCorrected]]],
        "streak.extended": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersStreakExtended]]],
        "streak.lost": NotRequired[dict[str, list[str | float | bool | GetWebhookEndpointsResponseEndpointFiltersStreakLost]]],
    },
)


class GetWebhookEndpointsResponseEndpoint(TypedDict):
    agents: list[GetWebhookEndpointsResponseEndpointAgent]
    created_at: str
    description: str
    disabled: str
    endpoint_id: str
    filters: GetWebhookEndpointsResponseEndpointFilters
    organization_id: str
    types: list[Literal["achievement.earned", "board.finished", "friend.added", "friend.ended", "friend.requested", "hold.expired", "lead.updated", "league.closed", "level.changed", "points.changed", "profile.changed", "question.closed", "reward.redeemed", "streak.at_risk", "streak.corrected", "streak.extended", "streak.lost"]]
    url: str


class GetWebhookEndpointsResponse(TypedDict):
    endpoints: list[GetWebhookEndpointsResponseEndpoint]


class PostWebhookEndpointsRequestFiltersAchievementEarned(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersBoardFinished(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersFriendAdded(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersFriendEnded(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersFriendRequested(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersHoldExpired(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersLeadUpdated(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersLeagueClosed(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersLevelChanged(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersPointsChanged(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersProfileChanged(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersQuestionClosed(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersRewardRedeemed(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersStreakAtRisk(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersStreakCorrected(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersStreakExtended(TypedDict):
    at_least: float


class PostWebhookEndpointsRequestFiltersStreakLost(TypedDict):
    at_least: float


PostWebhookEndpointsRequestFilters = TypedDict(
    "PostWebhookEndpointsRequestFilters",
    {
        "achievement.earned": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersAchievementEarned]]],
        "board.finished": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersBoardFinished]]],
        "friend.added": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersFriendAdded]]],
        "friend.ended": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersFriendEnded]]],
        "friend.requested": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersFriendRequested]]],
        "hold.expired": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersHoldExpired]]],
        "lead.updated": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersLeadUpdated]]],
        "league.closed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersLeagueClosed]]],
        "level.changed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersLevelChanged]]],
        "points.changed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersPointsChanged]]],
        "profile.changed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersProfileChanged]]],
        "question.closed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersQuestionClosed]]],
        "reward.redeemed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersRewardRedeemed]]],
        "streak.at_risk": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersStreakAtRisk]]],
        "streak.corrected": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersStreakCorrected]]],
        "streak.extended": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersStreakExtended]]],
        "streak.lost": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsRequestFiltersStreakLost]]],
    },
)


PostWebhookEndpointsRequestAgent: TypeAlias = str


class PostWebhookEndpointsRequest(TypedDict):
    organization_id: str
    url: str
    types: NotRequired[list[Literal["achievement.earned", "board.finished", "friend.added", "friend.ended", "friend.requested", "hold.expired", "lead.updated", "league.closed", "level.changed", "points.changed", "profile.changed", "question.closed", "reward.redeemed", "streak.at_risk", "streak.corrected", "streak.extended", "streak.lost"]]]
    filters: NotRequired[PostWebhookEndpointsRequestFilters]
    agents: NotRequired[list[PostWebhookEndpointsRequestAgent]]
    description: NotRequired[str]


PostWebhookEndpointsResponseAgent: TypeAlias = str


class PostWebhookEndpointsResponseFiltersAchievementEarned(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersBoardFinished(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersFriendAdded(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersFriendEnded(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersFriendRequested(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersHoldExpired(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersLeadUpdated(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersLeagueClosed(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersLevelChanged(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersPointsChanged(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersProfileChanged(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersQuestionClosed(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersRewardRedeemed(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersStreakAtRisk(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersStreakCorrected(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersStreakExtended(TypedDict):
    at_least: float


class PostWebhookEndpointsResponseFiltersStreakLost(TypedDict):
    at_least: float


PostWebhookEndpointsResponseFilters = TypedDict(
    "PostWebhookEndpointsResponseFilters",
    {
        "achievement.earned": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersAchievementEarned]]],
        "board.finished": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersBoardFinished]]],
        "friend.added": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersFriendAdded]]],
        "friend.ended": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersFriendEnded]]],
        "friend.requested": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersFriendRequested]]],
        "hold.expired": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersHoldExpired]]],
        "lead.updated": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersLeadUpdated]]],
        "league.closed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersLeagueClosed]]],
        "level.changed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersLevelChanged]]],
        "points.changed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersPointsChanged]]],
        "profile.changed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersProfileChanged]]],
        "question.closed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersQuestionClosed]]],
        "reward.redeemed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersRewardRedeemed]]],
        "streak.at_risk": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersStreakAtRisk]]],
        "streak.corrected": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersStreakCorrected]]],
        "streak.extended": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersStreakExtended]]],
        "streak.lost": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsResponseFiltersStreakLost]]],
    },
)


class PostWebhookEndpointsResponse(TypedDict):
    agents: list[PostWebhookEndpointsResponseAgent]
    created_at: str
    description: str
    disabled: str
    endpoint_id: str
    filters: PostWebhookEndpointsResponseFilters
    organization_id: str
    types: list[Literal["achievement.earned", "board.finished", "friend.added", "friend.ended", "friend.requested", "hold.expired", "lead.updated", "league.closed", "level.changed", "points.changed", "profile.changed", "question.closed", "reward.redeemed", "streak.at_risk", "streak.corrected", "streak.extended", "streak.lost"]]
    url: str
    secret: str


class DeleteWebhookEndpointsEndpointIdResponse(TypedDict):
    pass


class PostWebhookEndpointsEndpointIdEnableRequest(TypedDict):
    pass


PostWebhookEndpointsEndpointIdEnableResponseAgent: TypeAlias = str


class PostWebhookEndpointsEndpointIdEnableResponseFiltersAchievementEarned(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersBoardFinished(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersFriendAdded(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersFriendEnded(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersFriendRequested(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersHoldExpired(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersLeadUpdated(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersLeagueClosed(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersLevelChanged(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersPointsChanged(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersProfileChanged(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersQuestionClosed(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersRewardRedeemed(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersStreakAtRisk(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersStreakCorrected(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersStreakExtended(TypedDict):
    at_least: float


class PostWebhookEndpointsEndpointIdEnableResponseFiltersStreakLost(TypedDict):
    at_least: float


PostWebhookEndpointsEndpointIdEnableResponseFilters = TypedDict(
    "PostWebhookEndpointsEndpointIdEnableResponseFilters",
    {
        "achievement.earned": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersAchievementEarned]]],
        "board.finished": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersBoardFinished]]],
        "friend.added": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersFriendAdded]]],
        "friend.ended": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersFriendEnded]]],
        "friend.requested": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersFriendRequested]]],
        "hold.expired": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersHoldExpired]]],
        "lead.updated": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersLeadUpdated]]],
        "league.closed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersLeagueClosed]]],
        "level.changed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersLevelChanged]]],
        "points.changed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersPointsChanged]]],
        "profile.changed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersProfileChanged]]],
        "question.closed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersQuestionClosed]]],
        "reward.redeemed": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersRewardRedeemed]]],
        "streak.at_risk": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersStreakAtRisk]]],
        "streak.corrected": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersStreakCorrected]]],
        "streak.extended": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersStreakExtended]]],
        "streak.lost": NotRequired[dict[str, list[str | float | bool | PostWebhookEndpointsEndpointIdEnableResponseFiltersStreakLost]]],
    },
)


class PostWebhookEndpointsEndpointIdEnableResponse(TypedDict):
    agents: list[PostWebhookEndpointsEndpointIdEnableResponseAgent]
    created_at: str
    description: str
    disabled: str
    endpoint_id: str
    filters: PostWebhookEndpointsEndpointIdEnableResponseFilters
    organization_id: str
    types: list[Literal["achievement.earned", "board.finished", "friend.added", "friend.ended", "friend.requested", "hold.expired", "lead.updated", "league.closed", "level.changed", "points.changed", "profile.changed", "question.closed", "reward.redeemed", "streak.at_risk", "streak.corrected", "streak.extended", "streak.lost"]]
    url: str


class PostWebhookEndpointsEndpointIdSecretRequest(TypedDict):
    overlap_hours: NotRequired[int]


class PostWebhookEndpointsEndpointIdSecretResponse(TypedDict):
    secret: str
    former_until: str


class PostWebhookEndpointsEndpointIdTestRequest(TypedDict):
    pass


class PostWebhookEndpointsEndpointIdTestResponse(TypedDict):
    message_id: str
