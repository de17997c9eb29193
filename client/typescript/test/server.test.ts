/** The client for servers: batches, retries, what is refused, and profiles of many users. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused, StreaklineServer, Unreachable, type Sent, type ServerEvent } from '../src/server/index.js';

type Json = any; // eslint-disable-line @typescript-eslint/no-explicit-any

/** A service that stores events, but for those whose type says otherwise. busy: answers of 503 to come. */
function service(busy = 0): { fetch: typeof fetch; batches: Json[][]; prefers: (string | null)[]; paths: string[]; later: Map<string, number> } {
  const [batches, prefers, paths, stored, later]: [Json[][], (string | null)[], string[], Map<string, string>, Map<string, number>] = [[], [], [], new Map(), new Map()];
  const refusal = (status: number, code: string, details?: Json): Response => Response.json({ error: { code, message: 'no', details } }, { status });
  const result = (event: Json): Json => {
    const key = `${event.user_id} ${event.idempotency_key}`;
    const left = later.get(event.idempotency_key) ?? 0;
    later.set(event.idempotency_key, left - 1);
    const code = left > 0 ? 'unavailable' : { UNKNOWN: 'unknown_type', FORBIDDEN: 'forbidden' }[event.event_type as string];
    if (code) return { status: 'rejected', error: { code, field: 'event_type', message: 'no' } };
    const status = stored.has(key) ? 'duplicate' : 'accepted';
    if (!stored.has(key)) stored.set(key, JSON.stringify(event));
    if (stored.get(key) !== JSON.stringify(event)) return { status: 'conflict', error: { code: 'conflict', field: 'idempotency_key', message: 'no' } };
    return { status, event_id: key };
  };
  const fetch: typeof globalThis.fetch = async (target, options = {}) => {
    const url = new URL(String(target));
    paths.push(url.pathname);
    if (busy-- > 0) return refusal(503, 'unavailable');
    if (options.method === 'GET') {
      const ids = decodeURIComponent(url.search.split('ids=')[1] ?? '').split(',').map(decodeURIComponent);
      return Response.json({ users: ids.filter((id) => id !== 'nobody').map((user_id) => ({ user_id })), missing: [] });
    }
    const { events } = JSON.parse(String(options.body)) as { events: Json[] };
    if (events.some(({ event_type }) => event_type === 'BAD_BATCH')) return refusal(422, 'invalid_field', [{ field: 'events[0].properties', reason: 'is no object' }]);
    batches.push(events);
    const prefer = new Headers(options.headers).get('prefer');
    prefers.push(prefer);
    const results = events.map(result);
    if (events[0].event_type === 'FORBIDDEN') return refusal(403, 'forbidden', results);
    return prefer ? Response.json({ results, profile: { current_streak: 1 } }) : Response.json({ results }, { status: 202 });
  };
  return { fetch, batches, prefers, paths, later };
}

const event = (number: number, type = 'ORDER', more: Partial<ServerEvent> = {}): ServerEvent => ({ user: `u${number % 7}`, type, key: `order:${number}`, occurredAt: '2026-03-01T12:00:00Z', ...more });
const all = async (sent: AsyncIterable<Sent>): Promise<Sent[]> => {
  const found: Sent[] = [];
  for await (const each of sent) found.push(each);
  return found;
};

test('an event is sent as it is said, and who waits learns what it did', async () => {
  const { fetch, batches, prefers } = service();
  const server = new StreaklineServer({ url: 'https://x.test', token: 't', fetch });
  const sent = await server.send('ada', 'ORDER', { key: 'order:1', occurredAt: new Date('2026-03-01T12:00:00Z'), timezone: 'Europe/Berlin', properties: { euros: 12 } });
  assert.equal(sent.status, 'accepted');
  assert.deepEqual(batches, [[{ idempotency_key: 'order:1', event_type: 'ORDER', occurred_at: '2026-03-01T12:00:00.000Z', user_id: 'ada', timezone: 'Europe/Berlin', properties: { euros: 12 } }]]);
  assert.equal((await server.send('ada', 'ORDER', { key: '2', wait: 60 })).applied?.profile.current_streak, 1);
  assert.deepEqual(prefers, [null, 'wait=5']);
  await assert.rejects(server.send('ada', 'UNKNOWN', { key: '3' }), (error: Refused) => error.code === 'unknown_type' && error.status === 422);
  await assert.rejects(server.send('ada', 'FORBIDDEN', { key: '3' }), (error: Refused) => error.code === 'forbidden');
  await assert.rejects(server.send('ada', 'OTHER', { key: '2' }), (error: Refused) => error.code === 'conflict' && error.status === 409);
});

test('many go in batches, and one bad one stops no other', async () => {
  const { fetch, batches } = service();
  const server = new StreaklineServer({ url: 'https://x.test/', token: () => 't', fetch });
  const types = new Map([[7, 'UNKNOWN'], [203, 'BAD_BATCH']]);
  const sent = await all(server.sendAll(Array.from({ length: 250 }, (_, number) => event(number, types.get(number)))));
  assert.deepEqual(sent.map((each) => each.event.key), Array.from({ length: 250 }, (_, number) => `order:${number}`));
  assert.deepEqual(sent.flatMap(({ status, code }, number) => (status === 'accepted' ? [] : [[number, code]])), [[7, 'unknown_type'], [203, 'invalid_field']]);
  assert.equal(sent[203]?.field, 'events[0].properties');
  assert.equal(Math.max(...batches.map((batch) => batch.length)), 100);
  const large = await all(server.sendAll(Array.from({ length: 40 }, (_, number) => event(1000 + number, 'ORDER', { properties: { text: 'ü'.repeat(30_000) } }))));
  assert.ok(large.every(({ status }) => status === 'accepted'));
  assert.ok(Math.max(...batches.map((batch) => Buffer.byteLength(JSON.stringify(batch)))) <= 500_000);
});

test('what cannot be stored yet is sent again, and nobody there is told', async () => {
  const { fetch, batches, later } = service(2);
  later.set('order:1', 1);
  const server = new StreaklineServer({ url: 'https://x.test', token: 't', fetch });
  const sent = await all(server.sendAll([0, 1, 2].map((number) => event(number))));
  assert.deepEqual(sent.map(({ status }) => status), ['accepted', 'accepted', 'accepted']);
  assert.deepEqual(batches.map((batch) => batch.length), [3, 1]);
  const lonely = new StreaklineServer({ url: 'https://x.test', token: 't', fetch: async () => Promise.reject(new TypeError('gone')) });
  await assert.rejects(all(lonely.sendAll([event(1)])), Unreachable);
});

test('profiles of many users, whatever their ids', async () => {
  const { fetch, paths } = service();
  const users = [...Array.from({ length: 150 }, (_, number) => `u${number}`), 'a,b', 'x/y+z=', 'nobody', 'u1'];
  const found = await new StreaklineServer({ url: 'https://x.test', token: 't', fetch }).profiles(users);
  assert.deepEqual([...found.keys()], [...new Set(users)].filter((user) => user !== 'nobody'));
  assert.equal(paths.length, 2);
});

test('options that cannot work are refused at once', () => {
  assert.throws(() => new StreaklineServer({ url: 'x.test', token: 't' }), TypeError);
  assert.throws(() => new StreaklineServer({ url: 'https://x.test', token: ' ' }), TypeError);
});
