/** What the elements show, and whom they ask for it. */

import type { Board, Region } from '../types.js';

export type { Board, Region };
export type StreakStatus = 'active' | 'at_risk' | 'broken' | 'none';

/** What `<streakline-streak>` shows: a profile, or as much of one. */
export interface StreakData {
  current_streak: number;
  streak_status: StreakStatus;
  longest_streak?: number;
  /** The service has not yet confirmed this. */
  is_estimate?: boolean;
}

/** What a date was. missed: between the first active date and today, without anything that kept the streak. */
export type DateState = 'active' | 'covered_by_freeze' | 'repaired' | 'paused' | 'rest_day' | 'short_date' | 'skipped_by_zone' | 'amnesty' | 'missed';

/** What `<streakline-calendar>` shows. Dates are written YYYY-MM-DD, in the user's own zone. */
export interface CalendarData {
  today: string;
  /** The first date of which there is anything to say; null: there is none. A later date without a state was missed. */
  first: string | null;
  states: Readonly<Record<string, DateState>>;
}

/** alias: null for somebody who was erased, or has left the boards. */
export interface BoardEntry { rank: number; alias: string | null; score: number; is_me?: boolean }

/** What `<streakline-leaderboard>` shows. rank: the user's own, null if he is not on the board. */
export interface BoardData {
  entries: readonly BoardEntry[];
  /** When the board was counted: an ISO 8601 instant. */
  as_of?: string;
  own?: { rank: number | null; alias?: string } | null;
  /** Of a board of the book: the user's own score and rank, the rows around it, and how long the period goes on. */
  me?: { rank: number | null };
  around?: readonly BoardEntry[];
  state?: 'open' | 'provisional' | 'final';
  ends_at?: string;
}

/** A friend, and the streak of the dates on which both were active. today: the pair's. alias: null without one. */
export interface PairData {
  user_id: string;
  alias: string | null;
  streak: number;
  at_risk: boolean;
  active_today: boolean;
  friend_active_today: boolean;
}

/** What `<streakline-friends>` shows. */
export interface FriendsData { friends: readonly PairData[] }

/** Whom the elements ask: a `Streakline`, or any object with these functions. An error may have a `status`, as HTTP has. */
export interface Source {
  profile(): Promise<StreakData & { as_of?: string; last_activity_date: string | null }>;
  activity(query: { from: string; to: string }): Promise<{
    activity: readonly { activity_date: string }[];
    covered?: readonly { date: string; reason: string }[];
  }>;
  explain(date: string): Promise<{ reason?: unknown }>;
  leaderboard(board: Board, query: { region?: Region; limit?: number }): Promise<BoardData>;
  /** Only asked for boards of the book. */
  board?(name: string, query: { period?: string; group?: string; limit?: number }): Promise<BoardData>;
  /** Only asked for friends. */
  friends?(): Promise<FriendsData>;
  rank(board: Board, query: { region?: Region }): Promise<{ rank: number | null; alias?: string }>;
}
