/** What both clients do alike, as client/vectors.json tells it; the Python client's tests read the same file. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { contact, look, newClock, sentAt, shiftOf, type ClockState, type Watch } from '../src/clock.js';
import { dateAt, isZoneName, offsetOf, written } from '../src/moment.js';
import { estimated, nobody } from '../src/profile.js';
import { batchOf, isNewer, type Proof, type Waiting } from '../src/queue.js';
import { rest, verdict } from '../src/sender.js';
import { asked, timeOf } from '../src/http.js';

type Json = any; // eslint-disable-line @typescript-eslint/no-explicit-any
const vectors: Json = JSON.parse(readFileSync(new URL('../../../vectors.json', import.meta.url), 'utf8'));
const HOUR = 3_600_000;

/** The right time, the device's clock and its ticks; and what the client makes of them. */
class MovedClock {
  right = 1_772_426_096_000;
  moved = 0;
  ticks = 1_000;
  next = 1;
  state: ClockState = newClock();
  pages = new Map<string, Watch>();
  events = new Map<string, { number: number; shift: number; wall: number; happened: number }>();
  constructor(readonly countsSleep: boolean) {}
  get wall(): number { return this.right + this.moved; }
  jump(hours: number): void { this.moved += hours * HOUR; }
  pass(hours: number): void { this.right += hours * HOUR; this.ticks += hours * HOUR; }
  sleep(hours: number): void { this.right += hours * HOUR; this.ticks += this.countsSleep ? hours * HOUR : 0; }
  look(page: string): void {
    const reading = { wall: this.wall, ticks: this.ticks, run: this.countsSleep ? 'boot' : page, countsSleep: this.countsSleep };
    this.pages.set(page, look(this.state, this.pages.get(page) ?? null, reading, this.next));
  }
  open(page: string): void { this.look(page); }
  close(page: string): void { this.pages.delete(page); }
  track(page: string, name: string): void {
    this.look(page);
    this.events.set(name, { number: this.next++, shift: this.state.shift, wall: this.wall, happened: this.right });
  }
  contact(page: string): void {
    this.look(page);
    contact(this.state, this.right, this.wall, this.next);
  }
}

for (const told of vectors.clocks) {
  test(`an event is placed where it happened: ${told.name}`, () => {
    const clock = new MovedClock(told.counts_sleep ?? false);
    for (const [name, ...more] of told.story) (clock as Json)[name](...more);
    clock.contact([...clock.pages.keys()].pop() as string);
    for (const [name, event] of clock.events) {
      const off = (event.wall + clock.right - sentAt(clock.state, shiftOf(clock.state, event), clock.wall) - event.happened) / HOUR;
      assert.equal(Math.round(off * 1000) / 1000, told.off?.[name] ?? 0, name);
    }
  });
}

for (const told of vectors.profiles) {
  test(`a profile is estimated: ${told.name}`, () => {
    const shown: Json = estimated({ ...nobody('u'), ...told.profile }, told.dates, told.today);
    assert.deepEqual(Object.fromEntries(Object.keys(told.shown).map((name) => [name, shown[name]])), told.shown);
    for (const name of told.gone ?? []) assert.ok(!(name in shown), name);
    assert.equal(shown.as_of, told.today);
  });
}

for (const told of vectors.replies) {
  test(`a reply is understood: ${told.name}`, () => {
    const event = { idempotency_key: 'k', event_type: 'X', occurred_at: '2026-03-02T00:00:00+00:00', timezone: 'Somewhere' };
    const events: Waiting[] = Array.from({ length: told.events }, (_, number) => ({ number, shift: 0, wall: 0, event }));
    const found = verdict(events, { status: told.status, body: told.body ?? undefined, retryAfter: null, time: null });
    assert.deepEqual(found.taken.map(({ number }) => number), told.taken);
    assert.deepEqual(found.refused.map(([one, refused]) => [one.number, refused.code, refused.field]), told.refused);
    assert.equal(found.trouble?.kind, told.trouble);
    assert.deepEqual(found.misplaced.map(({ number }) => number), told.misplaced ?? []);
    assert.deepEqual([found.halve ?? false, found.bare ?? false], [told.halve ?? false, told.bare ?? false]);
  });
}

for (const told of vectors.proofs) {
  test(`a batch carries the receipt of its first event: ${told.name}`, () => {
    const event = { idempotency_key: 'k', event_type: 'X', occurred_at: '2026-03-02T00:00:00Z' };
    const proofOf = (each: [string, string] | null): { proof?: Proof } => (each ? { proof: { device: each[0], receipt: each[1] } } : {});
    let waiting: Waiting[] = told.waiting.map((each: [string, string] | null, number: number) => ({ number, shift: 0, wall: 0, event, ...proofOf(each) }));
    const batches: Json[] = [];
    while (waiting.length) {
      const some = batchOf(waiting, newClock());
      batches.push([some.length, some[0]?.proof?.receipt ?? null]);
      waiting = waiting.slice(some.length);
    }
    assert.deepEqual(batches, told.batches);
  });
}

for (const told of vectors.times) {
  test(`only a fresh answer of the service tells the time: ${told.name}`, () => {
    assert.equal(timeOf(told.status, told.body ?? undefined, new Headers(told.headers)), told.time);
  });
}

test('the newest receipt is kept', () => {
  for (const [than, receipt, isKept] of vectors.receipts) assert.equal(isNewer(receipt, than ?? undefined), isKept);
});

test('a moment is written', () => {
  for (const told of vectors.moments) {
    assert.equal(written(told.instant, told.offset), told.written);
    assert.equal(offsetOf(told.written), told.offset);
    assert.equal(dateAt(told.instant, told.offset, told.start), told.date);
  }
});

test('a zone is sent by its name if a service may know that', () => {
  for (const [name, isKnown] of vectors.zones) assert.equal(isZoneName(name), isKnown, name);
});

test('a queue rests as long as the service asks, else for a random time', () => {
  for (const { headers, attempt = 0, seconds } of vectors.rests) {
    const rested = rest(attempt, asked(new Headers(headers))) / 1000;
    assert.ok(seconds[0] <= rested && rested <= seconds[1], `${JSON.stringify(headers)}: ${rested}`);
  }
});
