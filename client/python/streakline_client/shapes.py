"""The shapes of the API by short names; all of them are generated."""

from typing import Literal

from streakline_client.generated import api

Event = api.Event
Applied = api.PostEventsResponse  # what events have done, and what is new by them
Profile = api.GetUsersUserIdResponse
Level = api.GetUsersUserIdResponseLevel
Explanation = api.GetUsersUserIdStreakExplainResponse
Activity = api.GetUsersUserIdActivityResponse
Balance = api.GetUsersUserIdBalanceResponse
Rewards = api.GetUsersUserIdRewardsResponse
Entry = api.PostUsersUserIdRedemptionsResponse
Achievements = api.GetUsersUserIdAchievementsResponse
TakenFreeze = api.PostUsersUserIdFreezesResponse
RepairedStreak = api.PostUsersUserIdStreakRepairResponse
Pauses = api.PostUsersUserIdPausesResponse
RestDays = api.PutUsersUserIdRestDaysResponse
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
Zone = api.PutUsersUserIdTimezoneResponse
Alias = api.PutUsersUserIdAliasResponse
Leaderboard = api.GetLeaderboardsBoardResponse
Rank = api.GetLeaderboardsBoardUsersUserIdResponse
BoardsOfBook = api.GetBoardsResponse
BoardOfPeriod = api.GetBoardsBoardNameResponse
OwnBoards = api.PutUsersUserIdBoardsResponse
League = api.GetUsersUserIdLeagueResponse
Friends = api.GetUsersUserIdFriendsResponse
FriendsBoard = api.GetUsersUserIdFriendsBoardResponse
Tie = api.PutUsersUserIdFriendsFriendIdResponse
TakingPart = api.PutUsersUserIdLeagueResponse
OpenQuestions = api.GetQuestionsResponse
GivenAnswer = api.PostQuestionsQuestionIdResponsesResponse
