/** The queue and the client on storages of this process: what is kept, given up, given back and told. */

import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { estimated, inMemory, plain, spared, Streakline, type KeyValues, type Options, type Platform, type RefusedEvent, type SentEvent, type Trouble } from '../src/index.js';
import { inFolder } from '../src/node/index.js';

interface Sent { path: string; body: { events: SentEvent[]; sent_at: string }; keepalive: boolean }

/** A service that takes all, or answers what it is told to. */
function service(...answers: (Response | Error | undefined)[]): { sent: Sent[]; fetch: typeof fetch } {
  const sent: Sent[] = [];
  return {
    sent,
    fetch: async (target, options = {}) => {
      const path = new URL(String(target)).pathname;
      const body = options.body ? JSON.parse(String(options.body)) : {};
      sent.push({ path, body, keepalive: options.keepalive === true });
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      if (answer) return answer;
      if (path === '/v1/events') {
        const results = body.events.map(({ idempotency_key }: SentEvent) => ({ idempotency_key, status: 'accepted' }));
        return Response.json({ results }, { status: 202, headers: { date: new Date().toUTCString() } });
      }
      return Response.json({ status: 'ok' }, { headers: { date: new Date().toUTCString() } });
    },
  };
}

const client = (platform: Platform, fetch: Options['fetch'] & {}, more: Partial<Options> = {}): Streakline =>
  new Streakline({ url: 'https://x.test/', token: 't', user: 'ann', platform, fetch, ...more });
const failing = (...statuses: number[]): Response[] => statuses.map((status) => new Response('{}', { status }));
const keysOf = (sent: Sent[]): string[][] => sent.filter(({ path }) => path === '/v1/events').map(({ body }) => body.events.map((each) => each.idempotency_key));

test('an event has its key, its local time and its zone when it happens, and keeps them', async () => {
  const zone = process.env.TZ;
  process.env.TZ = 'Asia/Tokyo';
  const platform = { ...plain(inMemory()), wall: () => Date.parse('2026-03-01T20:00:00Z') };
  const { sent, fetch } = service(new Error('offline'), ...failing(503));
  const me = client(platform, fetch);
  const { key, kept } = await me.track('LESSON_COMPLETED', { minutes: 12 });
  process.env.TZ = zone ?? '';
  for (let left = 1; left; ) left = await me.flush();
  assert.equal(kept, true);
  const event = { idempotency_key: key, event_type: 'LESSON_COMPLETED', occurred_at: '2026-03-02T05:00:00.000+09:00', user_id: 'ann', timezone: 'Asia/Tokyo', properties: { minutes: 12 } };
  assert.deepEqual(sent.filter(({ path }) => path === '/v1/events').map(({ body }) => body.events), [[event], [event], [event]]);
  me.close();
});

test('what waits survives, is sent in its order, a hundred at once', async () => {
  const storage = inMemory();
  const before = client(plain(storage), service(...Array(50).fill(new Error('offline'))).fetch);
  const keys: string[] = [];
  for (let number = 0; number < 120; number += 1) keys.push((await before.track('A')).key);
  before.close();
  const { sent, fetch } = service();
  const me = client(plain(storage), fetch);
  assert.equal(await me.flush(), 0);
  assert.deepEqual(keysOf(sent).map((each) => each.length), [100, 20]);
  assert.deepEqual(keysOf(sent).flat(), keys);
  me.close();
});

test('an event has the newest receipt of its device, in another page, too, and the batch carries it', async () => {
  const storage = inMemory();
  const given: string[] = [];
  const requests: [string, string | null, string | undefined][] = [];
  let isOnline = true;
  const withReceipts: typeof fetch = async (target, options = {}) => {
    const path = new URL(String(target)).pathname;
    const body = options.body ? (JSON.parse(String(options.body)) as { events: SentEvent[]; receipt?: string }) : { events: [] };
    requests.push([path, new Headers(options.headers).get('streakline-device'), body.receipt]);
    if (!isOnline) throw new Error('offline');
    given.push(`1.${given.length + 1}.o.s`);
    const results = body.events.map(({ idempotency_key }) => ({ idempotency_key, status: 'accepted' }));
    return Response.json({ results }, { status: path === '/v1/events' ? 202 : 200, headers: { 'streakline-time-receipt': given.at(-1) as string } });
  };
  const before = client(plain(storage), withReceipts);
  await before.profile();
  await before.leaderboard('streaks' as never);
  isOnline = false;
  await before.track('A');
  await before.flush();
  before.close();
  const me = client(plain(storage), withReceipts);
  await me.track('A');
  isOnline = true;
  for (let left = 1; left; ) left = await me.flush();
  await me.track('A');
  for (let left = 1; left; ) left = await me.flush();
  const [first, ...others] = requests.filter(([path]) => path === '/v1/events');
  assert.equal(first?.[2], '1.1.o.s'); // the profile's, not the board's: nobody knows whose token that was
  assert.equal(others.at(-1)?.[2], given.filter((_, number) => number > 1).at(-2));
  assert.match(String(first?.[1]), /^[A-Za-z0-9_-]{8,64}$/);
  assert.equal(new Set(requests.map(([, device]) => device)).size, 1);
  me.close();
});

test('a full queue gives up the oldest, and says so', async () => {
  const dropped: string[] = [];
  const me = client(plain(inMemory()), service(...Array(50).fill(new Error('offline'))).fetch, { queueMax: 3, onDropped: (event) => dropped.push(event.idempotency_key) });
  const keys: string[] = [];
  for (let number = 0; number < 5; number += 1) keys.push((await me.track('A')).key);
  assert.deepEqual(dropped, keys.slice(0, 2));
  assert.deepEqual((await me.waiting()).map((each) => each.idempotency_key), keys.slice(2));
  me.close();
});

test('a full queue whose events are under way gives up the oldest of those that came since, and never the newest', async () => {
  const dropped: string[] = [];
  const keys: string[] = [];
  const { fetch } = service();
  let isFirst = true;
  const me = client(
    plain(inMemory()),
    async (...given) => {
      if (isFirst && String(given[0]).endsWith('/v1/events')) {
        isFirst = false;
        for (const type of ['B', 'C']) keys.push((await me.track(type)).key);
      }
      return fetch(...given);
    },
    { queueMax: 1, onDropped: (event) => dropped.push(event.idempotency_key) },
  );
  await me.track('A');
  for (let left = 1; left; ) left = await me.flush();
  assert.deepEqual(dropped, keys.slice(0, 1));
  me.close();
});

test('events whose request got no answer are under way no more', async () => {
  const dropped: string[] = [];
  const me = client(plain(inMemory()), service(...Array(50).fill(new Error('offline'))).fetch, { queueMax: 3, onDropped: (event) => dropped.push(event.idempotency_key) });
  const keys: string[] = [];
  for (let number = 0; number < 3; number += 1) keys.push((await me.track('A')).key);
  assert.equal(await me.flush(), 3);
  for (let number = 0; number < 2; number += 1) keys.push((await me.track('A')).key);
  assert.deepEqual(dropped, keys.slice(0, 2));
  assert.deepEqual((await me.waiting()).map((each) => each.idempotency_key), keys.slice(2));
  me.close();
});

test('a full disk keeps nothing, loses nothing, and says so', async () => {
  let isFull = true;
  const real = inMemory();
  const storage: KeyValues = { ...real, setItem: (key, value) => (isFull ? Promise.reject(new Error('quota')) : real.setItem(key, value)) };
  const unkept: string[] = [];
  const { sent, fetch } = service(new Error('offline'));
  const me = client(plain(storage), fetch, { onUnkept: (event) => unkept.push(event.idempotency_key) });
  const one = await me.track('A');
  assert.equal(one.kept, false);
  assert.deepEqual(unkept, [one.key]);
  isFull = false;
  const two = await me.track('A');
  assert.equal(two.kept, true);
  for (let left = 1; left; ) left = await me.flush();
  assert.deepEqual(keysOf(sent).at(-1), [one.key, two.key]);
  me.close();
});

test('what is refused is given back with field and reason, and does not stop the others', async (t) => {
  const refused: RefusedEvent[] = [];
  const platform = plain(inMemory());
  const results = [{ status: 'rejected', error: { code: 'unknown_type', field: 'event_type', message: 'event_type A is in no book' } }, { status: 'accepted' }];
  const offline = client(platform, service(...Array(9).fill(new Error('offline'))).fetch);
  const { key } = await offline.track('A');
  await offline.track('B');
  offline.close();
  const me = client(platform, service(Response.json({ results }, { status: 202 })).fetch, {
    onRefused: (one) => {
      refused.push(one);
      throw new Error("an app's own");
    },
  });
  const told = t.mock.method(console, 'error', () => undefined);
  assert.equal(await me.flush(), 0);
  assert.deepEqual(refused.map(({ event, ...more }) => [event.idempotency_key, more]), [[key, { code: 'unknown_type', field: 'event_type', reason: 'event_type A is in no book' }]]);
  assert.equal(told.mock.callCount(), 1);
  me.close();
});

test('trouble is told, and the service left in peace for as long as it asks', async () => {
  const troubles: Trouble[] = [];
  const { sent, fetch } = service(new Response('{"message":"Unauthorized"}', { status: 429, headers: { 'retry-after': '100' } }));
  const me = client(plain(inMemory()), fetch, { onTrouble: (trouble) => troubles.push(trouble) });
  await me.track('A');
  await new Promise((go) => setTimeout(go, 250));
  await me.track('A');
  await new Promise((go) => setTimeout(go, 250));
  assert.equal(sent.length, 1);
  assert.deepEqual(troubles.map(({ kind }) => kind), ['unavailable']);
  me.close();
});

test('a token that never comes, or an answer, delays nobody for ever', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  for (const isToken of [true, false]) {
    const never = (): Promise<never> => new Promise(() => undefined);
    const platform = { ...plain(inMemory()) };
    const me = client(platform, isToken ? service().fetch : never, isToken ? { token: never } : {});
    await me.track('A');
    const flushed = me.flush();
    for (let turn = 0; turn < 50; turn += 1) await new Promise((go) => setImmediate(go));
    t.mock.timers.tick(30_000);
    assert.equal(await flushed, 1);
    me.close();
    const { sent, fetch } = service();
    const other = client(platform, fetch);
    assert.equal(await other.flush(), 0);
    assert.equal(keysOf(sent).length, 1);
    other.close();
  }
});

test('a queue that is long is read once, and not for each event and each batch', async () => {
  let reads = 0;
  const real = inMemory();
  const storage: KeyValues = { ...real, getItem: (key) => ((reads += key.includes('event:') ? 1 : 0), real.getItem(key)) };
  const away = client(plain(real), service(...Array(9).fill(new Error('offline'))).fetch);
  for (let number = 0; number < 300; number += 1) await away.track('A');
  away.close();
  const dropped: SentEvent[] = [];
  const { sent, fetch } = service();
  const me = client(plain(storage), async (...given) => (isOnline ? fetch(...given) : Promise.reject(new Error('offline'))), { onProfile: () => undefined, queueMax: 310, onDropped: (event) => dropped.push(event) });
  let isOnline = false;
  for (let number = 0; number < 20; number += 1) await me.track('A');
  isOnline = true;
  for (let left = 1; left; ) left = await me.flush();
  assert.equal(dropped.length, 10);
  assert.equal(keysOf(sent).flat().length, 310);
  assert.ok(reads <= 2 * 320, `${reads} reads`);
  me.close();
});

test('a batch that is too large is sent in parts', async () => {
  const platform = plain(inMemory());
  const offline = client(platform, service(...Array(9).fill(new Error('offline'))).fetch);
  for (let number = 0; number < 4; number += 1) await offline.track('A');
  offline.close();
  const { sent, fetch } = service(...failing(413, 413));
  const me = client(platform, fetch);
  assert.equal(await me.flush(), 0);
  assert.deepEqual(keysOf(sent).map((each) => each.length), [4, 2, 1, 3]);
  me.close();
});

test("at a page's end what waits goes out by a request that outlives it, and is sent again later by the same keys", async () => {
  let part = (): void => undefined;
  const platform: Platform = { ...plain(inMemory()), signs: (_, parting) => ((part = parting), () => undefined) };
  const { sent, fetch } = service(new Error('offline'));
  const me = client(platform, fetch);
  const { key } = await me.track('A');
  await me.flush();
  const late = me.track('B');
  part();
  const last = sent.at(-1) as Sent;
  assert.equal(last.keepalive, true);
  assert.deepEqual(last.body.events.map((each) => each.idempotency_key)[0], key);
  assert.equal(last.body.events.length, 2);
  await late;
  for (let left = 1; left; ) left = await me.flush();
  assert.deepEqual(keysOf(sent).at(-1), last.body.events.map((each) => each.idempotency_key));
  me.close();
});

test('the estimate shows today before the service has answered, and the service corrects it', async () => {
  const today = new Date().toISOString().slice(0, 10);
  const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
  const zone = process.env.TZ;
  process.env.TZ = 'UTC';
  const known = { user_id: 'ann', current_streak: 6, longest_streak: 6, streak_status: 'at_risk', last_activity_date: yesterday, timezone: 'UTC', total_bestie_points: 0, balance: 0, freezes_available: 0, active_days: 6, as_of: today };
  let answered: unknown = known;
  let [isOnline, isApplied] = [false, false];
  const taking = service();
  const me = client(plain(inMemory()), async (target, options) => {
    if (String(target).includes('/users/')) return Response.json(answered);
    if (!isOnline) throw new Error('offline');
    const prefer = new Headers(options?.headers).get('prefer');
    return isApplied && prefer ? Response.json({ results: [], profile: answered }) : taking.fetch(target, options);
  });
  assert.deepEqual([(await me.profile()).current_streak, (await me.profile()).is_estimate], [6, false]);
  await me.track('A');
  assert.deepEqual([(await me.estimate()).current_streak, (await me.estimate()).waiting, (await me.estimate()).is_estimate], [7, 1, true]);
  isOnline = true;
  assert.equal(await me.flush(), 0);
  assert.deepEqual([(await me.profile()).current_streak, (await me.profile()).is_estimate], [7, true], 'taken, but not applied yet');
  answered = { ...known, current_streak: 8, last_activity_date: today, streak_status: 'active' };
  assert.deepEqual([(await me.profile()).current_streak, (await me.profile()).is_estimate], [8, true], 'it may lack an event of the same date');
  isApplied = true;
  assert.deepEqual([(await me.profile()).current_streak, (await me.profile()).is_estimate], [8, false], 'the service knows better');
  process.env.TZ = zone ?? '';
  me.close();
  assert.equal(estimated(known as never, [today], today).current_streak, 7);
});

test('who waits learns what an event did, and the profile is confirmed only then', async () => {
  const profile = { user_id: 'ann', current_streak: 1, longest_streak: 1, streak_status: 'active', last_activity_date: new Date().toISOString().slice(0, 10), timezone: 'UTC', total_bestie_points: 0, balance: 0, freezes_available: 0, active_days: 1, as_of: new Date().toISOString().slice(0, 10) };
  const zone = process.env.TZ;
  process.env.TZ = 'UTC';
  const [asked, applied, points]: [(string | null)[], number[], Set<string>] = [[], [], new Set()];
  let lag = 0;
  const fetch: typeof globalThis.fetch = async (target, options = {}) => {
    if (!String(target).endsWith('/v1/events')) return Response.json({ ...profile, total_bestie_points: 10 * (points.size - 1) });
    const prefer = new Headers(options.headers).get('prefer');
    asked.push(prefer);
    const { events } = JSON.parse(String(options.body)) as { events: SentEvent[] };
    for (const { idempotency_key } of events) points.add(idempotency_key);
    const results = events.map(({ idempotency_key }) => ({ idempotency_key, status: 'accepted', points: 10, activity_date: profile.last_activity_date }));
    if (!prefer || lag-- > 0) return Response.json({ results }, { status: 202 });
    return Response.json({ results, profile: { ...profile, total_bestie_points: 10 * points.size }, new_achievements: [], new_level: null });
  };
  const quiet = client(plain(inMemory()), fetch);
  await quiet.track('A');
  await quiet.flush();
  quiet.close();
  assert.deepEqual(asked, [null], 'nobody waits, so the service need not');
  points.clear();
  const shown: [number, boolean][] = [];
  const me = client(plain(inMemory()), fetch, { onApplied: ({ profile }) => applied.push(profile.total_bestie_points), onProfile: ({ total_bestie_points, is_estimate }) => shown.push([total_bestie_points, is_estimate]) });
  for (let number = 1; number <= 3; number += 1) {
    lag = number === 3 ? 1 : 0; // the third is late: it is asked for again
    const { applied: done, kept } = await me.track('A', undefined, { wait: 5 });
    assert.equal(kept, true);
    assert.deepEqual([done?.profile.total_bestie_points, done?.results[0]?.points], [10 * number, 10]);
  }
  await me.estimate();
  assert.deepEqual(applied, [10, 20, 30]);
  const confirmed = shown.filter(([, isEstimate]) => !isEstimate).map(([total]) => total);
  assert.equal(confirmed.at(-1), 30);
  assert.ok(confirmed.every((total) => [10, 20, 30].includes(total)), `what is confirmed lacks nothing: ${confirmed.join()}`);
  lag = 9;
  const begun = Date.now();
  assert.equal((await me.track('A', undefined, { wait: 0.2 })).applied, undefined);
  assert.ok(Date.now() - begun < 1_500);
  process.env.TZ = zone ?? '';
  me.close();
});

test('an answer confirms what was sent before it, and an older one replaces no newer profile', async () => {
  const zone = process.env.TZ;
  process.env.TZ = 'UTC';
  const today = new Date().toISOString().slice(0, 10);
  const profile = { user_id: 'ann', current_streak: 1, longest_streak: 1, streak_status: 'active', last_activity_date: today, timezone: 'UTC', total_bestie_points: 0, balance: 0, freezes_available: 0, active_days: 1, as_of: today };
  for (const isSecondApplied of [false, true]) {
    const points = new Set<string>();
    const applied: number[] = [];
    let [isApplied, meanwhile] = [false, async (): Promise<void> => undefined];
    const fetch: typeof globalThis.fetch = async (target, options = {}) => {
      if (!String(target).endsWith('/v1/events')) return Response.json(profile);
      const { events } = JSON.parse(String(options.body)) as { events: SentEvent[] };
      for (const { idempotency_key } of events) points.add(idempotency_key);
      const results = events.map(({ idempotency_key }) => ({ idempotency_key, status: 'accepted', points: 10, activity_date: today }));
      if (!isApplied) return Response.json({ results }, { status: 202 });
      const more = { profile: { ...profile, total_bestie_points: 10 * points.size }, new_achievements: [], new_level: null };
      const go = meanwhile;
      meanwhile = async () => undefined;
      await go();
      return Response.json({ results, ...more });
    };
    const me = client(plain(inMemory()), fetch, { onApplied: (each) => applied.push(each.profile.total_bestie_points) });
    await me.track('A');
    await me.flush();
    isApplied = true;
    meanwhile = async () => {
      isApplied = isSecondApplied;
      await me.track('A');
      await me.flush();
      isApplied = true;
    };
    const shown = await me.profile();
    assert.deepEqual([shown.total_bestie_points, shown.is_estimate], isSecondApplied ? [20, false] : [10, true]);
    const later = await me.profile();
    if (!isSecondApplied) assert.deepEqual([later.total_bestie_points, later.is_estimate], [20, false]);
    assert.deepEqual([...applied].sort(), [10, 20]);
    me.close();
  }
  process.env.TZ = zone ?? '';
});

test('a batch that is refused leaves the one before it to be asked for, and an old profile replaces no newer one', async () => {
  const zone = process.env.TZ;
  process.env.TZ = 'UTC';
  const profile = { user_id: 'ann', current_streak: 0, longest_streak: 0, streak_status: 'none', last_activity_date: null, total_bestie_points: 0, freezes_available: 0, active_days: 0, as_of: new Date().toISOString().slice(0, 10) };
  const asked: string[][] = [];
  let [isApplied, meanwhile] = [false, async (): Promise<void> => undefined];
  const fetch: typeof globalThis.fetch = async (target, options = {}) => {
    if (!String(target).endsWith('/v1/events')) {
      await meanwhile();
      return Response.json(profile);
    }
    const { events } = JSON.parse(String(options.body)) as { events: SentEvent[] };
    asked.push(events.map(({ event_type }) => event_type));
    const results = events.map(({ idempotency_key, event_type }) => ({ idempotency_key, ...(event_type === 'BAD' ? { status: 'rejected', error: { code: 'no' } } : { status: 'accepted' }) }));
    return isApplied ? Response.json({ results, profile: { ...profile, total_bestie_points: 10 } }) : Response.json({ results }, { status: 202 });
  };
  const me = client(plain(inMemory()), fetch, { onRefused: () => undefined });
  await me.track('A');
  await me.flush();
  await me.track('BAD');
  await me.flush();
  isApplied = true;
  assert.equal((await me.profile()).total_bestie_points, 10);
  assert.deepEqual(asked, [['A'], ['BAD'], ['A']]);
  me.close();
  const other = client(plain(inMemory()), fetch, { onApplied: () => undefined });
  meanwhile = async () => {
    await other.track('A');
    await other.flush();
  };
  const shown = await other.profile();
  assert.deepEqual([shown.total_bestie_points, shown.is_estimate], [10, false], 'the profile was asked for before the event');
  process.env.TZ = zone ?? '';
  other.close();
});

test('a folder is shared: a lock whose holder is gone is free, and a draft is no event', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'streakline-'));
  await writeFile(join(folder, 'write.lock'), '999999999');
  await writeFile(join(folder, 'send.lock'), String(process.pid));
  await utimes(join(folder, 'send.lock'), new Date(0), new Date(0));
  await writeFile(join(folder, 'left.tmp'), '{');
  const { sent, fetch } = service();
  const [one, two] = [client(inFolder(folder), fetch), client(inFolder(folder), fetch)];
  const keys = await Promise.all([one.track('A'), two.track('A'), one.track('A')]);
  await one.flush();
  assert.equal(await two.flush(), 0);
  assert.deepEqual(new Set(keysOf(sent).flat()), new Set(keys.map(({ key }) => key)));
  assert.equal(keysOf(sent).flat().length, 3, 'one sender at a time: nothing is sent twice');
  assert.deepEqual((await readdir(folder)).filter((name) => name.includes('event')), []);
  one.close();
  two.close();
  await rm(folder, { recursive: true, maxRetries: 5 });
});

/** Storage that takes only so many texts, unless they replace one. */
function bounded(most: () => number): KeyValues & { kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return {
    kept,
    getItem: async (key) => kept.get(key) ?? null,
    setItem: async (key, value) => {
      if (kept.size >= most()) throw new Error('full');
      kept.set(key, value);
    },
    removeItem: async (key) => void kept.delete(key),
    getAllKeys: async () => [...kept.keys()],
  };
}

test('what storage does not take is in the spare one until it does, and the newer text counts', async () => {
  let most = 1;
  const [first, spare] = [bounded(() => most), bounded(() => 10)];
  const both = spared(first, spare);
  await both.setItem('a', '1');
  await both.setItem('a', '2');
  await both.setItem('b', '1');
  assert.deepEqual([[...first.kept], [...spare.kept]], [[['a', '1']], [['a', '2'], ['b', '1']]]);
  assert.deepEqual([await both.getItem('a'), await both.getItem('b'), await both.getItem('c')], ['2', '1', null]);
  assert.deepEqual([...(await both.getAllKeys())].sort(), ['a', 'b']);
  most = 10;
  await both.setItem('a', '3');
  assert.deepEqual([[...first.kept], [...spare.kept]], [[['a', '3']], [['b', '1']]]);
  await both.removeItem('a');
  await both.removeItem('b');
  assert.deepEqual(await both.getAllKeys(), []);
  await both.setItem('a', '4');
  assert.equal(await both.getItem('a'), '4');
});

test('storage with a spare one that is full, too, says so, and what it had stays', async () => {
  const both = spared(bounded(() => 0), bounded(() => 1));
  await both.setItem('a', '1');
  await assert.rejects(both.setItem('b', '1'), /full/);
  assert.equal(await both.getItem('a'), '1');
});

test('events that only the spare storage took are sent by the next page', async () => {
  const platform = { ...plain(spared(bounded(() => 0), inMemory())) };
  const away = service(...Array.from({ length: 20 }, () => new Error('offline')));
  const first = client(platform, away.fetch);
  const { kept, key } = await first.track('READ');
  assert.equal(kept, true);
  first.close();
  const there = service();
  const second = client(platform, there.fetch);
  assert.equal(await second.flush(), 0);
  second.close();
  assert.deepEqual(keysOf(there.sent), [[key]]);
});

test('a flush ends although events go on', { timeout: 20_000 }, async () => {
  const { sent, fetch } = service();
  let isOver = false;
  const me: Streakline = client(plain(inMemory()), async (...given) => {
    if (!isOver && String(given[0]).endsWith('/v1/events')) await me.track('B'); // before each answer
    return fetch(...given);
  });
  const { key } = await me.track('A');
  const left = await me.flush();
  assert.ok(left > 0);
  assert.equal(keysOf(sent)[0]?.[0], key);
  isOver = true;
  for (let turn = 0; turn < 100 && (await me.waiting()).length; turn += 1) await new Promise((go) => setTimeout(go, 50));
  assert.deepEqual(await me.waiting(), [], 'what came meanwhile is sent, too');
  me.close();
});

test('who is closed while events are sent hears of no trouble', async () => {
  const troubles: Trouble[] = [];
  const channel = (): { tell: () => void; close: () => void } => {
    let isClosed = false;
    return { tell: () => { if (isClosed) throw new DOMException('it is closed', 'InvalidStateError'); }, close: () => void (isClosed = true) };
  };
  const { sent, fetch } = service();
  const me: Streakline = client({ ...plain(inMemory()), channel }, async (...given) => {
    const answer = await fetch(...given);
    if (String(given[0]).endsWith('/v1/events')) me.close();
    return answer;
  }, { onTrouble: (trouble) => void troubles.push(trouble) });
  const { key } = await me.track('A');
  assert.equal(await me.flush(), 0);
  assert.deepEqual([keysOf(sent), troubles], [[[key]], []]);
});

/** A shop that redeems once for each key, and a client at it. */
function shop(platform: Platform): { me: Streakline; entries: Map<string, number>; keys: string[]; be: (status: number, words?: object) => void } {
  const [entries, keys] = [new Map<string, number>(), [] as string[]];
  let [status, words] = [201, undefined as object | undefined];
  const fetch: typeof globalThis.fetch = async (_, options = {}) => {
    const { idempotency_key: key } = JSON.parse(String(options.body ?? '{}')) as { idempotency_key?: string };
    if (key === undefined) return Response.json({});
    keys.push(key);
    if (status === 201 || status === 0) if (!entries.has(key)) entries.set(key, entries.size);
    if (status === 0) throw new TypeError('the answer was lost');
    if (status === 201) return Response.json({ question_id: 'q', points: entries.get(key) }, { status });
    return words ? Response.json(words, { status }) : new Response('<html>Sign in', { status });
  };
  return { me: client(platform, fetch), entries, keys, be: (now, say) => void ([status, words] = [now, say]) };
}

test('a redemption whose answer was lost is the same when it is asked for again, also after a restart', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'streakline-'));
  const { me, entries, be } = shop(inFolder(folder));
  be(0);
  await assert.rejects(me.redeem('mug', { price_points: 120 }), /lost/);
  me.close();
  const again = shop(inFolder(folder));
  const [key = ''] = entries.keys();
  again.entries.set(key, 0);
  assert.equal((await again.me.redeem('mug', { price_points: 120 })).points, 0);
  assert.equal(again.entries.size, 1);
  assert.equal((await again.me.redeem('mug', { price_points: 120 })).points, 1, 'who has the answer may want another one');
  assert.equal((await again.me.redeem('mug', { price_points: 100 })).points, 2);
  assert.equal((await again.me.redeem('mug', { price_points: 100, key: 'my-own' })).points, 3);
  again.me.close();
  await rm(folder, { recursive: true, maxRetries: 5 });
});

test('a redemption that is refused has another key the next time; one whose outcome is not known has the same', async () => {
  const own = { error: { code: 'c', message: 'm' } };
  // What the service says in its words, and what somebody on the way says, perhaps after an attempt that arrived.
  for (const [status, words, isSame] of [
    ...[422, 409, 403, 404].map((each) => [each, own, false] as const),
    ...[401, 500].map((each) => [each, own, true] as const),
    ...[400, 403, 404, 407, 422, 451].map((each) => [each, undefined, true] as const),
    [403, { message: 'Forbidden' }, true],
    [200, { portal: 'sign in' }, true],
  ] as const) {
    const { me, keys, be } = shop(plain(inMemory()));
    be(status, words);
    await assert.rejects(me.redeem('mug'));
    be(201);
    await me.redeem('mug');
    assert.equal(keys[0] === keys.at(-1), isSame, `${status} ${JSON.stringify(words)}`);
    me.close();
  }
});

test('two redemptions at once are two, and keys are kept where nothing can be stored, too', async () => {
  const nothing = (): Promise<never> => Promise.reject(new Error('denied'));
  const { me, entries, be } = shop(plain({ getItem: nothing, setItem: nothing, removeItem: nothing, getAllKeys: nothing }));
  await Promise.all([me.redeem('mug'), me.redeem('mug')]);
  assert.equal(entries.size, 2);
  be(0);
  await assert.rejects(me.redeem('mug'), /lost/);
  be(201);
  await me.redeem('mug');
  assert.equal(entries.size, 3);
  me.close();
});

test('a question whose answer was lost is asked once', async () => {
  const { me, entries, be } = shop(plain(inMemory()));
  const question = { type: 'text', prompt: 'Why?'.repeat(100), required_responses: 1 } as const;
  be(0);
  await assert.rejects(me.ask(question), /lost/);
  be(201);
  await me.ask(question);
  await me.ask(question);
  assert.equal(entries.size, 2);
  me.close();
});

const HOUR = 3_600_000;

test('a time that is not the service\'s own, or old, moves no event', async () => {
  for (const foreign of ['login page', 'login with JSON', 'proxy', 'cache', 'asleep', '']) {
    let [right, ticks] = [Date.parse('2026-03-02T12:00:00Z'), 1_000];
    let kind = foreign;
    const [happened, placed] = [new Map<string, number>(), new Map<string, number>()];
    const fetch: typeof globalThis.fetch = async (target, options = {}) => {
      const isHealth = String(target).endsWith('/v1/health');
      const [date, wrong, old] = [0, HOUR, -3 * HOUR].map((off) => new Date(right + off).toUTCString()) as [string, string, string];
      const { events = [], sent_at = '' } = JSON.parse(String(options.body ?? '{}')) as { events?: SentEvent[]; sent_at?: string };
      if (kind === 'login page') return new Response('<html>', { headers: { date: wrong } });
      if (kind === 'login with JSON') return Response.json({ redirect: '/login' }, { headers: { date: wrong } });
      if (kind === 'proxy') return new Response('<html>', { status: 511, headers: { date: wrong } });
      if (kind === 'cache' && isHealth) return Response.json({ status: 'ok' }, { headers: { date: old, age: '10800' } });
      for (const each of events) placed.set(each.event_type, Date.parse(each.occurred_at) + right - Date.parse(sent_at));
      if (kind === 'asleep') right += 3 * HOUR; // with the answer on its way
      return Response.json(isHealth ? { status: 'ok' } : { results: events.map(() => ({ status: 'accepted' })) }, { status: isHealth ? 200 : 202, headers: { date } });
    };
    const storage = inMemory();
    const opened = (): Streakline => client({ ...plain(storage), wall: () => right, ticks: () => ticks }, fetch);
    let me = opened();
    const track = async (name: string): Promise<void> => {
      happened.set(name, right);
      await me.track(name);
    };
    await track('A');
    await me.flush();
    await track('B');
    right += 3 * HOUR; // it sleeps, or its clock was moved: nobody knows
    await track('C');
    await me.flush();
    me.close();
    right += HOUR;
    me = opened();
    await track('D');
    kind = '';
    for (let left = 1; left; ) left = await me.flush();
    me.close();
    ticks += 1;
    for (const [name, at] of happened) assert.ok(Math.abs((placed.get(name) ?? 0) - at) < 2_000, `${foreign}: ${name} is off by ${((placed.get(name) ?? 0) - at) / HOUR} hours`);
  }
});

test('freezes, repairs, pauses, zone and name are asked for by their routes', async () => {
  const sent: [string, string, unknown][] = [];
  const me = client(plain(inMemory()), async (url, options = {}) => {
    sent.push([options.method ?? 'GET', new URL(String(url)).pathname, JSON.parse(String(options.body ?? 'null'))]);
    return Response.json({ points: 0, price_points: 200 });
  });
  await me.takeFreeze({ key: 'own' });
  await me.repairStreak({ price_points: 200, key: 'own' });
  await me.pause({ first: '2026-03-02', last: '2026-03-04' });
  await me.setTimezone('Europe/Berlin');
  await me.setAlias(null);
  assert.deepEqual(sent.map(([method, path, body]) => [method, path.split('/').at(-1), body]), [
    ['POST', 'freezes', { idempotency_key: 'own' }],
    ['POST', 'repair', { price_points: 200, idempotency_key: 'own' }],
    ['POST', 'pauses', { first: '2026-03-02', last: '2026-03-04' }],
    ['PUT', 'timezone', { timezone: 'Europe/Berlin' }],
    ['PUT', 'alias', { alias: null }],
  ]);
  me.close();
});
