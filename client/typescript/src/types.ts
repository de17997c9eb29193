/** The shapes of the API by short names; all of them are generated. */

import type { components, operations } from './generated/api.js';

type Answer<Name extends keyof operations> = operations[Name] extends { responses: infer All }
  ? { [Status in keyof All]: All[Status] extends { content: { 'application/json': infer Body } } ? Body : never }[keyof All]
  : never;
type Body<Name extends keyof operations> = operations[Name] extends { requestBody?: { content: { 'application/json': infer Sent } } } ? Sent : never;

export type SentEvent = components['schemas']['Event'];
export type ServiceError = components['schemas']['Error']['error'];
export type Profile = Answer<'getUsersUserId'>;
export type Level = NonNullable<Profile['level']>;
export type Explanation = Answer<'getUsersUserIdStreakExplain'>;
export type Activity = Answer<'getUsersUserIdActivity'>;
export type Balance = Answer<'getUsersUserIdBalance'>;
export type Entry = Answer<'postUsersUserIdRedemptions'>;
export type Rewards = Answer<'getUsersUserIdRewards'>;
export type Achievements = Answer<'getUsersUserIdAchievements'>;
export type TakenFreeze = Answer<'postUsersUserIdFreezes'>;
export type RepairedStreak = Answer<'postUsersUserIdStreakRepair'>;
export type Pauses = Answer<'postUsersUserIdPauses'>;
export type RestDays = Answer<'putUsersUserIdRest-Days'>;
export type Weekday = RestDays['rest_days'][number];
export type Zone = Answer<'putUsersUserIdTimezone'>;
export type Alias = Answer<'putUsersUserIdAlias'>;
export type Leaderboard = Answer<'getLeaderboardsBoard'>;
export type Rank = Answer<'getLeaderboardsBoardUsersUserId'>;
export type BoardsOfBook = Answer<'getBoards'>;
export type BoardOfPeriod = Answer<'getBoardsBoardName'>;
export type OwnBoards = Answer<'putUsersUserIdBoards'>;
export type League = Answer<'getUsersUserIdLeague'>;
export type Friends = Answer<'getUsersUserIdFriends'>;
export type FriendsBoard = Answer<'getUsersUserIdFriendsBoard'>;
export type Tie = Answer<'putUsersUserIdFriendsFriendId'>;
export type TakingPart = Answer<'putUsersUserIdLeague'>;
export type Question = Answer<'getQuestionsQuestionId'>;
export type Questions = Answer<'getQuestions'>;
export type Asked = Answer<'postQuestions'>;
export type NewQuestion = Omit<Body<'postQuestions'>, 'idempotency_key'> & { idempotency_key?: string };
export type Responses = Answer<'getQuestionsQuestionIdResponses'>;
export type GivenAnswer = Answer<'postQuestionsQuestionIdResponses'>;
export type NewAnswer = Body<'postQuestionsQuestionIdResponses'>;
export type Stats = Answer<'getStatsFingerprint'>;
type SentEvents = operations['postEvents']['responses'];
export type Results = SentEvents[202]['content']['application/json'];
/** What events have done: points and date of each, the profile after them, and what is new. */
export type Applied = SentEvents[200]['content']['application/json'];
export type Board = operations['getLeaderboardsBoard']['parameters']['path']['board'];
export type Region = NonNullable<NonNullable<operations['getLeaderboardsBoard']['parameters']['query']>['region']>;
