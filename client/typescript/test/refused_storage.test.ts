/** A device that stores nothing, or only in part, or that has other things in its storage, or damaged ones. */

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { browser, inMemory, plain, spared, Streakline, type KeyValues, type Options, type Platform, type SentEvent } from '../src/index.js';
import { inFolder } from '../src/node/index.js';

const denied = (): never => {
  throw new DOMException('The request is denied', 'SecurityError');
};
const broken: KeyValues = { getItem: async () => denied(), setItem: async () => denied(), removeItem: async () => denied(), getAllKeys: async () => denied() };

interface Known { me: Streakline; sent: string[][]; unkept: string[]; be: (isOnline: boolean) => void }

/** A client on a platform, whose service takes all while it can be reached. */
function client(platform: Platform, more: Partial<Options> = {}): Known {
  let isOnline = false;
  const known = { sent: [] as string[][], unkept: [] as string[] };
  const fetch: typeof globalThis.fetch = async (_, options = {}) => {
    if (!isOnline) throw new TypeError('offline');
    const { events } = JSON.parse(String(options.body ?? '{"events":[]}')) as { events: SentEvent[] };
    if (events.length) known.sent.push(events.map((each) => each.idempotency_key));
    return Response.json({ results: events.map(() => ({ status: 'accepted' })) }, { status: 202 });
  };
  const me = new Streakline({ url: 'https://x.test', token: 't', user: 'ann', platform, fetch, onUnkept: ({ idempotency_key }) => known.unkept.push(idempotency_key), ...more });
  return { ...known, me, be: (now) => void (isOnline = now) };
}

/** Put something in the place of what is global, for one test. */
function withGlobals(t: TestContext, given: Record<string, PropertyDescriptor>): void {
  for (const [name, descriptor] of Object.entries(given)) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { configurable: true, ...descriptor });
    t.after(() => {
      if (before) Object.defineProperty(globalThis, name, before);
      else delete (globalThis as Record<string, unknown>)[name];
    });
  }
}

async function keptInMemoryAndSent({ me, sent, unkept, be }: Known): Promise<void> {
  const [one, two] = [await me.track('A'), await me.track('B')];
  assert.deepEqual([one.kept, two.kept], [false, false]);
  assert.deepEqual(unkept, [one.key, two.key]);
  assert.equal(await me.flush(), 2);
  assert.equal((await me.estimate()).current_streak, 1);
  be(true);
  assert.equal(await me.flush(), 0);
  assert.deepEqual(sent, [[one.key, two.key]]);
  me.close();
}

test('a page that may store nothing, and gets no Web Locks, keeps events in memory, says so, and sends them', async (t) => {
  withGlobals(t, {
    BroadcastChannel: { value: class { constructor() { denied(); } } },
    indexedDB: { value: { open: denied } },
    localStorage: { get: denied },
    navigator: { value: { locks: { request: () => Promise.reject(new DOMException('denied', 'SecurityError')) } } },
  });
  await keptInMemoryAndSent(client(browser('private')));
});

test('a page that may not even name what a browser has keeps events in memory, says so, and sends them', async (t) => {
  const refused = Object.fromEntries(['indexedDB', 'localStorage', 'BroadcastChannel'].map((name) => [name, { get: denied }]));
  withGlobals(t, { ...refused, navigator: { value: Object.defineProperty({}, 'locks', { get: denied }) } });
  await keptInMemoryAndSent(client(browser('nameless')));
});

test('a platform without any storage says so, too', async (t) => {
  withGlobals(t, { indexedDB: { value: undefined }, localStorage: { value: undefined } });
  await keptInMemoryAndSent(client(browser('none')));
});

test('events in localStorage are sent where IndexedDB cannot be opened at all', async (t) => {
  const kept: Record<string, string> = {};
  const own = { getItem: (key: string) => kept[key] ?? null, setItem: (key: string, value: string) => void (kept[key] = value), removeItem: (key: string) => void delete kept[key] };
  const localStorage = new Proxy(own, { ownKeys: () => Object.keys(kept), getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }) });
  for (const indexedDB of [{ open: denied }, undefined]) {
    withGlobals(t, { indexedDB: { value: indexedDB }, localStorage: { value: localStorage } });
    const first = client(browser('one'));
    const { key, kept: isKept } = await first.me.track('A');
    assert.equal(isKept, true);
    assert.equal(await first.me.flush(), 1);
    first.me.close();
    const second = client(browser('one'));
    second.be(true);
    assert.equal(await second.me.flush(), 0);
    second.me.close();
    assert.deepEqual([second.sent, first.unkept], [[[key]], []]);
  }
});

test('a connection to IndexedDB that is lost is opened anew', async (t) => {
  let [opened, isLost] = [0, false];
  const done = <T>(target: T): T => (setTimeout(() => (target as { onsuccess?: () => void }).onsuccess?.()), target);
  const transaction = (): unknown => {
    if (isLost) throw new DOMException('The database connection is closing', 'InvalidStateError');
    return { objectStore: () => ({ get: () => done({ result: 'kept' }) }) };
  };
  withGlobals(t, {
    indexedDB: { value: { open: () => ((opened += 1), (isLost = false), done({ result: { transaction } })) } },
    localStorage: { value: undefined },
  });
  const { storage } = browser('lost');
  assert.equal(await storage.getItem('a'), 'kept');
  isLost = true;
  await assert.rejects(storage.getItem('a'), /closing/);
  assert.equal(await storage.getItem('a'), 'kept');
  assert.equal(opened, 2);
});

test('of two storages one that cannot be read hides nothing of the other; none is read where neither can be', async () => {
  const there = inMemory();
  await there.setItem('a', '1');
  assert.deepEqual(await spared(broken, there).getAllKeys(), ['a']);
  assert.deepEqual(await spared(there, broken).getAllKeys(), ['a']);
  await assert.rejects(spared(broken, broken).getAllKeys(), /denied/);
});

test('a folder that takes no file is storage that takes nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'streakline-'));
  await writeFile(join(folder, 'file'), '');
  await keptInMemoryAndSent(client(inFolder(join(folder, 'file', 'below'))));
  await rm(folder, { recursive: true });
});

test("users of one storage have queues and profiles of their own, and an app's own things stay", async () => {
  const storage = inMemory();
  await storage.setItem('profile', 'the app');
  await storage.setItem('state', 'the app');
  await storage.setItem('event:1', 'the app');
  const [ann, bob] = [client(plain(storage), { user: 'ann' }), client(plain(storage), { user: 'ann:event:' })];
  const { key } = await ann.me.track('A');
  assert.deepEqual([(await ann.me.waiting()).map((each) => each.idempotency_key), await bob.me.waiting()], [[key], []]);
  assert.deepEqual([(await ann.me.estimate()).current_streak, (await bob.me.estimate()).current_streak], [1, 0]);
  await bob.me.track('B');
  ann.be(true);
  assert.equal(await ann.me.flush(), 0);
  assert.deepEqual([ann.sent, (await bob.me.waiting()).length], [[[key]], 1]);
  assert.deepEqual([await storage.getItem('profile'), await storage.getItem('state'), await storage.getItem('event:1')], ['the app', 'the app', 'the app']);
  ann.me.close();
  bob.me.close();
});

test('what is damaged in storage stops nothing, is told of once, and is not thrown away', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'streakline-'));
  const first = client(inFolder(folder));
  const keys = [(await first.me.track('A')).key, (await first.me.track('B')).key, (await first.me.track('C')).key];
  await first.me.flush();
  first.me.close();
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json'));
  for (const name of names) if (!name.startsWith('event') || name.includes(keys[1] as string)) await writeFile(join(folder, name), '{"eve');
  await writeFile(join(folder, 'profile.json'), 'null and more');
  const troubles: string[] = [];
  const { me, sent, be } = client(inFolder(folder), { onTrouble: ({ kind, reason }) => void (kind === 'damaged' && troubles.push(reason)) });
  be(true);
  const last = await me.track('D');
  assert.equal(last.kept, true);
  assert.equal(await me.flush(), 0);
  assert.deepEqual(sent.flat(), [keys[0], keys[2], last.key]);
  assert.equal((await me.estimate()).current_streak, 1);
  assert.deepEqual(troubles.length, 3, String(troubles));
  assert.match(troubles.join(), new RegExp(keys[1] as string));
  me.close();
  const left = (await readdir(folder)).filter((name) => name.startsWith('damaged'));
  assert.equal(left.length, 3, 'state, profile, and the event');
  await rm(folder, { recursive: true, maxRetries: 5 });
});

test('one file that cannot be read hides no event, and is told of; a name that is none of ours is left alone', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'streakline-'));
  await mkdir(join(folder, 'event%3A000000000000%3Aunreadable.json')); // as one that another user has written
  for (const name of ['100%.json', '%E0%A4%A.json', '._state.json', '.DS_Store']) await writeFile(join(folder, name), 'not ours');
  const troubles: string[] = [];
  const { me, sent, be } = client(inFolder(folder), { onTrouble: ({ kind, reason }) => void (kind === 'damaged' && troubles.push(reason)) });
  be(true);
  const { key, kept } = await me.track('A');
  assert.equal(kept, true);
  assert.equal(await me.flush(), 0);
  assert.deepEqual(sent, [[key]]);
  assert.match(troubles.join(), /unreadable/);
  assert.equal(new Set(troubles).size, 1);
  me.close();
  assert.equal(await readFile(join(folder, '100%.json'), 'utf8'), 'not ours');
  await rm(folder, { recursive: true, maxRetries: 5 });
});

const never = (): Promise<never> => new Promise(() => undefined);
/** An event handler that is set some time, and called then. */
const later = <T extends object>(target: T, name: string): T => (setTimeout(() => (target as Record<string, () => void>)[name]?.()), target);
const open = (base: object): object => ({ open: () => later({ result: base }, 'onsuccess') });

/** A browser's database that gives no answer: where it stops -> indexedDB. */
const SILENT: Record<string, object> = {
  'no answer when it is opened': { open: () => ({}) },
  'it is blocked when it is opened': { open: () => later({}, 'onblocked') },
  'it is anew when it is opened, and no more is heard': { open: () => later({ result: { createObjectStore: () => ({}) } }, 'onupgradeneeded') },
  'no answer to what is asked': open({ transaction: () => ({ objectStore: () => ({ get: () => ({}), put: () => ({}), delete: () => ({}), getAllKeys: () => ({}) }) }) }),
  'a transaction that never ends': open({
    transaction: () => ({ objectStore: () => ({ get: () => later({}, 'onsuccess'), put: () => later({}, 'onsuccess'), delete: () => later({}, 'onsuccess'), getAllKeys: () => later({ result: [] }, 'onsuccess') }) }),
  }),
};

function memoryOfSite(): object {
  const kept: Record<string, string> = {};
  const own = { getItem: (key: string) => kept[key] ?? null, setItem: (key: string, value: string) => void (kept[key] = value), removeItem: (key: string) => void delete kept[key] };
  return new Proxy(own, { ownKeys: () => Object.keys(kept), getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }) });
}

for (const [name, indexedDB] of Object.entries(SILENT)) {
  test(`a browser's database that is silent delays an event by seconds: ${name}`, async (t) => {
    withGlobals(t, { indexedDB: { value: indexedDB }, localStorage: { value: memoryOfSite() } });
    const started = performance.now();
    const first = client(browser('silent'));
    const { key, kept } = await first.me.track('A');
    assert.equal(kept, true, 'localStorage has it');
    first.me.close();
    const second = client(browser('silent'));
    second.be(true);
    assert.equal(await second.me.flush(), 0);
    second.me.close();
    assert.deepEqual(second.sent, [[key]]);
    assert.ok(performance.now() - started < 10_000);
  });
}

test("a browser's database that is silent is all there is: events are in memory, and the app is told", async (t) => {
  withGlobals(t, { indexedDB: { value: { open: () => ({}) } }, localStorage: { value: undefined } });
  const started = performance.now();
  await keptInMemoryAndSent(client(browser('silent alone')));
  assert.ok(performance.now() - started < 10_000);
});

test('storage of an app that is silent delays an event by seconds, too', async () => {
  const silent: KeyValues = { getItem: never, setItem: never, removeItem: never, getAllKeys: never };
  const started = performance.now();
  await keptInMemoryAndSent(client(plain(silent)));
  assert.ok(performance.now() - started < 15_000);
});

test('a lock that is never given, as its page is frozen, delays an event by seconds', async (t) => {
  withGlobals(t, { indexedDB: { value: undefined }, localStorage: { value: memoryOfSite() }, navigator: { value: { locks: { request: never } } } });
  const started = performance.now();
  const { me, sent, be } = client(browser('frozen'));
  be(true);
  const { key, kept } = await me.track('A');
  assert.equal(kept, true);
  assert.equal(await me.flush(), 0);
  assert.deepEqual(sent, [[key]]);
  assert.ok(performance.now() - started < 20_000);
  me.close();
});

test('a lock whose page works is waited for, however long that takes', async (t) => {
  const locks = plain(inMemory()).locks;
  withGlobals(t, { indexedDB: { value: undefined }, navigator: { value: { locks: { request: locks.exclusive } } } });
  const [one, other] = [browser('busy').locks, browser('busy').locks];
  const done: string[] = [];
  const first = one.exclusive('send', async () => {
    await new Promise((go) => setTimeout(go, 7_500));
    done.push('first');
  });
  await Promise.all([first, other.exclusive('send', async () => void done.push('second'))]);
  assert.deepEqual(done, ['first', 'second']);
});

for (const [name, Intl] of Object.entries({
  'it throws': { DateTimeFormat: denied },
  'it has no options': { DateTimeFormat: () => ({}) },
  'it has options that throw': { DateTimeFormat: () => ({ resolvedOptions: denied }) },
  'it has no zone': { DateTimeFormat: () => ({ resolvedOptions: () => ({}) }) },
  'its zone is null': { DateTimeFormat: () => ({ resolvedOptions: () => ({ timeZone: null }) }) },
  'its zone is no text': { DateTimeFormat: () => ({ resolvedOptions: () => ({ timeZone: 3 }) }) },
  'its zone is unknown': { DateTimeFormat: () => ({ resolvedOptions: () => ({ timeZone: 'Etc/Unknown' }) }) },
  'its zone throws': { DateTimeFormat: () => ({ resolvedOptions: () => ({ get timeZone() { return denied(); } }) }) },
  'its zone is an offset': { DateTimeFormat: () => ({ resolvedOptions: () => ({ timeZone: '+05:30' }) }) },
  'its zone is a text object': { DateTimeFormat: () => ({ resolvedOptions: () => ({ timeZone: new String('Europe/Oslo') }) }) },
  'its options are null': { DateTimeFormat: () => ({ resolvedOptions: () => null }) },
  'it must be made anew': { DateTimeFormat: class { constructor() { denied(); } } },
  'its zone is empty': { DateTimeFormat: () => ({ resolvedOptions: () => ({ timeZone: '' }) }) },
  'it is empty': {},
  'it is missing': undefined,
})) {
  test(`a platform without a zone's name keeps events by their offset: ${name}`, async (t) => {
    withGlobals(t, { Intl: { value: Intl } });
    const { me } = client(plain(inMemory()));
    assert.equal((await me.track('A')).kept, true);
    const [event] = await me.waiting();
    assert.equal(event?.timezone, event?.occurred_at.slice(-6));
    assert.equal((await me.estimate()).current_streak, 1);
    me.close();
  });
}

const startOf = async (id: number): Promise<string | undefined> => (await readFile(`/proc/${id}/stat`, 'utf8').catch(() => '')).replace(/^.*\) /s, '').split(' ')[19];

/** What a lock says that a client holds: its own name. */
async function ownName(folder: string): Promise<string> {
  let name = '';
  await inFolder(folder).locks.exclusive('name', async () => void (name = await readFile(join(folder, 'name.lock'), 'utf8')));
  return name;
}

test('a lock of a process that was killed is free at once, also if another one has its id now', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'streakline-'));
  const [id = '', word = '', start = '', place = ''] = (await ownName(folder)).split('_');
  assert.equal(id, String(process.pid));
  const left: Record<string, string> = {
    'of a container that has begun anew': [id, 'another', '1', place].join('_'),
    'of an older client': id,
    'of a process whose id another one has': [process.ppid, 'another', '1', place].join('_'),
    'of nobody': '999999999',
    'of a process group': '0',
    damaged: 'x',
  };
  if (!start) delete left['of a process whose id another one has']; // this system does not tell
  for (const [name, text] of Object.entries(left)) {
    for (const lock of ['write', 'send']) await writeFile(join(folder, `${lock}.lock`), text);
    const started = performance.now();
    const { me, be } = client(inFolder(folder));
    be(true);
    assert.equal((await me.track('A')).kept, true);
    assert.equal(await me.flush(), 0);
    me.close();
    assert.ok(performance.now() - started < 3_000, name);
  }
  assert.ok(word.length > 8);
  await rm(folder, { recursive: true, maxRetries: 5 });
});

test('a lock of a process that lives is not taken from it, nor one of another container while it is touched', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'streakline-'));
  const own = await ownName(folder);
  const [, , , place = ''] = own.split('_');
  const living = [process.ppid, 'another', (await startOf(process.ppid)) ?? '', place].join('_');
  // Another machine on the same network storage has this process id, too, in a namespace of the same number.
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')).trim();
  assert.ok(place.includes(boot));
  const elsewhere = [`${place}7`, ...(boot ? [place.replace(boot, '0')] : [])].map((other) => [process.pid, 'another', '1', other].join('_'));
  for (const holder of [own, living, ...elsewhere]) {
    const lock = join(folder, 'write.lock');
    await writeFile(lock, holder);
    const touch = setInterval(() => void utimes(lock, new Date(), new Date()), 500);
    let isTaken = false;
    const taken = inFolder(folder).locks.exclusive('write', async () => void (isTaken = true));
    await new Promise((go) => setTimeout(go, 1_500));
    assert.equal(isTaken, false, holder);
    clearInterval(touch);
    await rm(lock);
    await taken;
  }
  await rm(folder, { recursive: true, maxRetries: 5 });
});

test('a lock of another container that nobody touches any more is free in seconds', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'streakline-'));
  const [id, word, start, place] = (await ownName(folder)).split('_');
  await writeFile(join(folder, 'write.lock'), [id, word, start, `${place}7`].join('_'));
  const started = performance.now();
  const { me } = client(inFolder(folder));
  assert.equal((await me.track('A')).kept, true);
  assert.ok(performance.now() - started < 9_000);
  me.close();
  await rm(folder, { recursive: true, maxRetries: 5 });
});

test('drafts of processes that were killed while they wrote are removed, and no others', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'streakline-'));
  const own = await ownName(folder);
  const [, , , place] = own.split('_');
  const names = ['left.tmp', '3f1c0a52-0000-4000-8000-000000000000.tmp', `999999999_word_1_${place}.x.tmp`, `${process.pid}_another_1_${place}.x.tmp`, 'write.lock.x.tmp', `${own}.x.tmp`, 'app.txt'];
  for (const name of names) await writeFile(join(folder, name), '{');
  const { me } = client(inFolder(folder));
  await me.track('A');
  for (let turn = 0; turn < 100 && (await readdir(folder)).includes('left.tmp'); turn += 1) await new Promise((go) => setTimeout(go, 20));
  await new Promise((go) => setTimeout(go, 100));
  const left = (await readdir(folder)).filter((name) => names.includes(name));
  assert.deepEqual(left.sort(), ['app.txt', `${own}.x.tmp`].sort());
  me.close();
  await rm(folder, { recursive: true, maxRetries: 5 });
});
