/** A page of an app: the client and the element of its streak. tests/browser has it bundled. */

import { StreakElement } from '../src/elements/index.js';
import { Streakline } from '../src/index.js';

const { url, token, user } = JSON.parse(document.querySelector('#settings')?.textContent ?? '{}') as Record<string, string>;
const me = new Streakline({ url: url ?? '', token: token ?? '', user: user ?? '' });
const streak = new StreakElement();
streak.client = me;
document.body.append(streak);

/** What this page may store: the names of what the browser refuses. */
async function refusals(): Promise<string[]> {
  const stored: [string, () => unknown][] = [
    ['localStorage', () => localStorage.setItem('a', '1')],
    ['indexedDB', () => new Promise((resolve, reject) => {
      const request = indexedDB.open('a');
      request.onsuccess = resolve;
      request.onerror = () => reject(request.error);
    })],
  ];
  const tried = await Promise.all(stored.map(async ([name, store]) => {
    try {
      await store();
      return '';
    } catch {
      return name;
    }
  }));
  return tried.filter(Boolean);
}

Object.assign(globalThis, { me, streak, refusals });
