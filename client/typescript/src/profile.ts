/** The profile that is shown before the service has answered (rule 2, as far as a device knows it). */

import { daysBetween, plusDays } from './moment.js';
import type { Profile } from './types.js';

/** A profile with what waits. waiting: how many events. is_estimate: the service has not yet seen all that this counts. */
export interface ShownProfile extends Profile { waiting: number; is_estimate: boolean }

/** A user of whom nothing is known. */
export const nobody = (user: string): Profile => ({
  user_id: user, current_streak: 0, longest_streak: 0, streak_status: 'none', last_activity_date: null,
  timezone: 'UTC', total_bestie_points: 0, balance: 0, freezes_available: 0, active_days: 0,
});

// As Date.getUTCDay() counts them.
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];

interface Run { last: string | null; until: string | null; length: number; freezes: number; days: number; rest: readonly number[] }

/**
 * Return what a profile will be when the service has these dates, as of today. Dates up to the last known one are left to
 * the service: they may join runs. So are pauses, points, and types that keep no streak.
 */
export function estimated(profile: Profile, dates: readonly string[], today: string): Profile {
  const known = profile.last_activity_date;
  const later = [...new Set(dates)].filter((date) => known === null || date > known).sort();
  const isAlive = profile.streak_status === 'active' || profile.streak_status === 'at_risk';
  const yesterday = profile.as_of ? plusDays(profile.as_of, -1) : known;
  let run: Run = {
    last: known,
    until: isAlive && known !== null && yesterday !== null ? (yesterday > known ? yesterday : known) : null,
    length: profile.current_streak,
    freezes: profile.freezes_available,
    days: profile.active_days,
    rest: (profile.rest_days ?? []).map((name) => WEEKDAYS.indexOf(name)),
  };
  let longest = profile.longest_streak;
  for (const date of later) {
    // What the service has covered after a late date stays covered.
    run = { ...reached(run, date), last: date, until: run.until !== null && run.until > date ? run.until : date, days: run.days + 1 };
    run.length += 1;
    longest = Math.max(longest, run.length);
  }
  const now = run.last !== null && run.last >= today ? run : reached(run, today);
  const status = run.last === null ? 'none' : run.last >= today ? 'active' : now.length > 0 ? (rests(run, today) ? 'active' : 'at_risk') : 'broken';
  const { repair, ...others } = profile;
  return {
    ...others, ...(repair && repair.until >= today ? { repair } : {}),
    current_streak: now.length, longest_streak: longest, streak_status: status, last_activity_date: run.last,
    freezes_available: now.freezes, active_days: run.days, as_of: today,
  };
}

const rests = (run: Run, date: string): boolean => run.rest.includes(new Date(`${date}T00:00:00Z`).getUTCDay());

/** Return how many dates between two are no rest dates. A gap of years is counted, not walked. */
function missedBetween(run: Run, until: string, date: string): number {
  const between = Math.max(0, daysBetween(until, date) - 1);
  const days = Array.from({ length: between % 7 }, (_, number) => plusDays(until, number + 1));
  return Math.floor(between / 7) * (7 - run.rest.length) + days.filter((day) => !rests(run, day)).length;
}

/** Return a run as it is on the morning of a date: each missed date uses up a freeze, or ends it. */
function reached(run: Run, date: string): Run {
  if (run.until === null) return { ...run, length: 0 };
  const missed = missedBetween(run, run.until, date);
  if (missed > Math.max(0, run.freezes)) return { ...run, length: 0, freezes: Math.min(0, run.freezes) };
  return { ...run, freezes: run.freezes - missed };
}
