/** Custom elements that show a streak, a calendar and a leaderboard. Importing this defines them. */

import { CalendarElement } from './calendar.js';
import { LeaderboardElement } from './leaderboard.js';
import { StreakElement } from './streak.js';

export { CalendarElement, LeaderboardElement, StreakElement };
export { ENGLISH, type Forms, type Labels } from './texts.js';
export type * from './source.js';

const ELEMENTS = {
  'streakline-streak': StreakElement,
  'streakline-calendar': CalendarElement,
  'streakline-leaderboard': LeaderboardElement,
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
  }
}
