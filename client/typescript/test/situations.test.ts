/** What both clients do in which situation, as client/situations.json tells it; the Python client's tests walk it, too. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { inMemory, plain, Streakline, type Options, type SentEvent } from '../src/index.js';

type Json = any; // eslint-disable-line @typescript-eslint/no-explicit-any
const { situations }: Json = JSON.parse(readFileSync(new URL('../../../situations.json', import.meta.url), 'utf8'));

interface Seen { token: string; events: SentEvent[]; beside: string[] }

/** A service that answers as a situation tells. */
async function service(t: TestContext, told: Json): Promise<{ url: string; seen: Seen[]; taken: Set<string> }> {
  const [answers, seen, taken]: [Json[], Seen[], Set<string>] = [[...(told.answers ?? [])], [], new Set()];
  const usual = (events: SentEvent[], prefer: unknown): Json => {
    const results = events.map(() => 'accepted');
    return prefer && told.profile?.body && !told.late ? { status: 200, results, more: { profile: told.profile.body } } : { status: 202, results };
  };
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    if (request.url === '/v1/users/ann') return answer(response, told.profile);
    assert.equal(request.url, '/v1/events');
    const { events, ...beside } = JSON.parse(Buffer.concat(parts).toString()) as { events: SentEvent[] };
    seen.push({ token: (request.headers.authorization ?? '').replace('Bearer ', ''), events, beside: Object.keys(beside) });
    const spoilt = events.find(({ event_type }) => told.spoils?.[event_type]);
    const next = answers.shift() ?? (spoilt ? told.spoils[spoilt.event_type] : usual(events, request.headers.prefer));
    next.results?.forEach((each: Json, number: number) => each === 'accepted' && taken.add(events[number]?.idempotency_key ?? ''));
    answer(response, next);
  });
  await new Promise<void>((go) => server.listen(0, '127.0.0.1', go));
  t.after(() => (server.close(), server.closeAllConnections()));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, seen, taken };
}

function answer(response: ServerResponse, told: Json): void {
  if (told === 'gone') return void response.destroy();
  const results = told.results?.map((each: Json) => (typeof each === 'string' ? { status: each } : { status: each[0], error: { code: each[1], field: each[2], message: '' } }));
  const today = new Date().toISOString().slice(0, 10);
  const text = told.text ?? JSON.stringify(results ? { results, ...told.more } : told.body).replaceAll('"today"', `"${today}"`);
  response.writeHead(told.status, { 'content-length': Buffer.byteLength(text) + (told.cut ? 9 : 0), ...told.headers });
  response.write(text, () => (told.cut ? response.destroy() : response.end()));
}

/** A function `token`, which returns the next of these each time. */
const turns = (tokens: Json[]): (() => string) => {
  const left = [...tokens];
  return () => {
    const next = left.length > 1 ? left.shift() : left[0];
    if (next === '!') throw new Error('signed out');
    return next;
  };
};

const nothing = (): Promise<never> => Promise.reject(new Error('denied'));
const NOWHERE = { getItem: nothing, setItem: nothing, removeItem: nothing, getAllKeys: nothing };

for (const told of situations) {
  test(`situation: ${told.name}`, async (t) => {
    const wanted = { sent: [], kept: [], taken: null, refused: [], troubles: [], unkept: [], warnings: [], zones: null, tokens: null, beside: null, ...told.expected };
    const printed = t.mock.method(console, 'warn', () => undefined);
    const zone = process.env.TZ;
    process.env.TZ = told.zone ?? 'UTC';
    t.after(() => (process.env.TZ = zone ?? ''));
    const { url, seen, taken } = await service(t, told);
    const [refused, troubles, unkept]: [Json[], [string, string][], string[]] = [[], [], []];
    const callbacks: Partial<Options> = {
      onRefused: ({ event, code, field }) => refused.push([event.idempotency_key, code, field]),
      onTrouble: ({ kind, reason }) => troubles.push([kind, reason]),
      onUnkept: ({ idempotency_key }) => unkept.push(idempotency_key),
    };
    const platform = plain(told.storage === 'none' ? NOWHERE : inMemory());
    const me = new Streakline({ url, user: 'ann', token: told.tokens ? turns(told.tokens) : 't', platform, ...(told.silent ? {} : callbacks) });
    me.close(); // it sends nothing by itself
    const keys: string[] = [];
    for (const type of told.events ?? ['A']) keys.push((await me.track(type)).key);
    for (let number = told.flushes ?? 1; number > 0; number -= 1) await me.flush();
    const numbers = (some: Iterable<string>): number[] => [...some].map((key) => keys.indexOf(key));
    const keptKeys = (await me.waiting()).map((each) => each.idempotency_key);
    assert.deepEqual(seen.map(({ events }) => numbers(events.map((each) => each.idempotency_key))), wanted.sent);
    assert.deepEqual(numbers(keptKeys), wanted.kept);
    if (wanted.taken) for (const number of wanted.taken) assert.ok(taken.has(keys[number] ?? ''), `${number} is taken`);
    assert.deepEqual(refused.map(([key, ...more]) => [keys.indexOf(key), ...more]), wanted.refused);
    assert.deepEqual(numbers(unkept), wanted.unkept);
    matches(troubles.map(([kind, reason]) => `${kind}: ${reason}`), wanted.troubles.map(([kind, reason]: [string, string]) => `^${kind}: .*${reason}`));
    matches(printed.mock.calls.map(({ arguments: given }) => String((given as unknown[])[0])), wanted.warnings);
    if (wanted.zones) wanted.zones.forEach((some: Json[], request: number) => some.forEach((one, number) => {
      const zone = zoneOf(seen[request]?.events[number] as SentEvent);
      assert.ok(one === null ? zone === null : one.split('|').includes(zone), `${one}: ${zone}`);
    }));
    if (wanted.tokens) assert.deepEqual(seen.map(({ token }) => token), wanted.tokens);
    if (wanted.beside) assert.deepEqual(seen.map(({ beside }) => beside), wanted.beside);
    if (wanted.raised) await assert.rejects(me.profile(), (error) => new RegExp(wanted.raised).test(String(error)));
    if (!wanted.profile) return;
    const shown: Json = await me.profile();
    assert.deepEqual(Object.fromEntries(Object.keys(wanted.profile).map((name) => [name, shown[name]])), wanted.profile);
  });
}

const zoneOf = ({ timezone, occurred_at }: SentEvent): string | null => (timezone && occurred_at.endsWith(timezone) ? 'offset' : timezone ?? null);

function matches(texts: string[], patterns: string[]): void {
  assert.equal(texts.length, patterns.length, `${JSON.stringify(texts)}: ${JSON.stringify(patterns)}`);
  texts.forEach((text, number) => assert.match(text, new RegExp(patterns[number] ?? '', 's')));
}
