/** An app, as small as it can be: compiled in strict mode by the tests. */

import { Refused, Streakline, type KeyValues, type ShownProfile, plain } from 'streakline';
import type { CalendarData } from 'streakline/elements';
import { inFolder } from 'streakline/node';

export function inABrowser(url: string, user: string, freshToken: () => Promise<string>, show: (text: string) => void): Streakline {
  const me = new Streakline({
    url, user, token: freshToken,
    onProfile: (profile: ShownProfile) => show(`${profile.current_streak} days${profile.is_estimate ? ' ...' : ''}`),
    onRefused: ({ event, field, reason }) => show(`${event.event_type} was refused: ${field ?? ''} ${reason}`),
    onDropped: (event) => show(`${event.event_type} of ${event.occurred_at} is given up`),
    onTrouble: ({ kind }) => show(kind === 'unauthorized' ? 'please sign in' : 'offline'),
  });
  void me.track('LESSON_COMPLETED', { lesson: 'greetings', minutes: 12 });
  return me;
}

/** React Native: `storage` is AsyncStorage, as it is. */
export const onAPhone = (url: string, user: string, token: string, storage: KeyValues): Streakline =>
  new Streakline({ url, user, token, platform: plain(storage) });

export const onAServer = (url: string, user: string, token: string): Streakline =>
  new Streakline({ url, user, token, platform: inFolder(`/var/lib/app/${user}`) });

export async function spend(me: Streakline): Promise<string> {
  const { available = 0 } = await me.balance();
  const best = (await me.leaderboard('streaks', { limit: 3 })).entries[0]?.alias ?? 'nobody';
  const open = (await me.openQuestions()).questions.map(({ prompt }) => prompt);
  try {
    const { points, balance } = await me.redeem('mug', { price_points: 120 });
    return `${points} of ${available}, ${balance} left; ${best} leads; ${open.length} questions`;
  } catch (error) {
    if (error instanceof Refused && error.code === 'insufficient_balance') return 'too dear';
    throw error;
  }
}

/** The elements ask the client, or show what they are given. */
export function onAPage(me: Streakline, given: CalendarData): void {
  for (const name of ['streakline-streak', 'streakline-leaderboard'] as const) {
    const element = document.createElement(name);
    element.client = me;
    document.body.append(element);
  }
  const calendar = document.querySelector('streakline-calendar');
  if (calendar) Object.assign(calendar, { data: given, labels: { week: 'Woche' } });
}

// What types are for: each of these would be a mistake.
export async function mistakes(me: Streakline): Promise<void> {
  // @ts-expect-error no such board
  await me.leaderboard('coins');
  // @ts-expect-error a price is a number
  await me.redeem('mug', { price_points: '120' });
  // @ts-expect-error no such field
  (await me.profile()).streak;
  // @ts-expect-error properties are an object
  await me.track('LESSON_COMPLETED', 12);
  // @ts-expect-error a client has a user
  new Streakline({ url: '', token: '' });
}
