/** Custom elements that show a streak, a calendar, a leaderboard and friends. Importing this defines them. */

import { CalendarElement } from './calendar.js';
import { FriendsElement } from './friends.js';
import { LeaderboardElement } from './leaderboard.js';
import { StreakElement } from './streak.js';

export { CalendarElement, FriendsElement, LeaderboardElement, StreakElement };
export { ENGLISH, type Forms, type Labels } from './texts.js';
export type * from './source.js';

const ELEMENTS = {
  'streakline-streak': StreakElement,
  'streakline-calendar': CalendarElement,
  'streakline-leaderboard': LeaderboardElement,
  'streakline-friends': FriendsElement,
};

// A page may load two copies of this package: the first one counts. A server has no registry.
for (const [name, element] of Object.entries(ELEMENTS)) {
  if (globalThis.customElements && !customElements.get(name)) customElements.define(name, element);
}

declare global {
  interface HTMLElementTagNameMap {
    'streakline-streak': StreakElement;
    'streakline-calendar': CalendarElement;
    'streakline-leaderboard': LeaderboardElement;
    'streakline-friends': FriendsElement;
  }
}
