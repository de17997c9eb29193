/** A tab of the TypeScript client in a made-up time: the browser's own clocks are moved. tests/e2e has it bundled. */

import { Streakline, type RefusedEvent, type ShownProfile } from '../src/index.js';
import { through, type World } from './world.js';

const WORLD = 'world';
/** All tabs of the device have one world. */
const world = (): World => JSON.parse(localStorage.getItem(WORLD) ?? '{"elapsed":0,"jump":0,"slept":0,"net":"off","full":false}') as World;
const now = Date.now.bind(Date);
const ticks = performance.now.bind(performance);
Date.now = () => now() + world().elapsed + world().jump;
performance.now = () => ticks() + world().elapsed - world().slept;
globalThis.fetch = through(world, fetch.bind(globalThis));

const put = IDBObjectStore.prototype.put;
IDBObjectStore.prototype.put = function (...given) {
  const request = put.apply(this, given);
  if (world().full) this.transaction.abort(); // as a browser does when storage is full
  return request;
};

const setItem = Storage.prototype.setItem;
Storage.prototype.setItem = function (key, value) {
  if (world().full === 'all' && key !== WORLD) throw new DOMException('full', 'QuotaExceededError');
  setItem.call(this, key, value);
};

const { url, token, user } = JSON.parse(document.querySelector('#settings')?.textContent ?? '{}') as Record<string, string>;
const refused: RefusedEvent[] = [];
const unkept: string[] = [];
const shown: ShownProfile[] = [];
const me = new Streakline({
  url: url ?? '', token: token ?? '', user: user ?? '',
  onRefused: (one) => refused.push(one),
  onUnkept: ({ idempotency_key }) => unkept.push(idempotency_key),
  onProfile: (profile) => shown.push(profile),
});

interface Command { do?: string; name?: string; world?: World }

async function told(command: Command): Promise<unknown> {
  if (command.world) localStorage.setItem(WORLD, JSON.stringify(command.world));
  if (command.do === 'track') return me.track('LESSON_COMPLETED', { name: command.name ?? '' });
  if (command.do === 'flush') return { waiting: await me.flush(), refused, unkept };
  if (command.do === 'profile') return { profile: await me.profile(), shown };
  return me.estimate();
}

Object.assign(globalThis, { told, last: () => shown.at(-1) });
