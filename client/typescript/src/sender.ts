/** Sends what waits, one sender of all pages at a time, and goes by what the service says of each event. */

import { Unreachable } from './errors.js';
import { offsetText } from './moment.js';
import { pause, refusalOf, UNKNOWN, type Http, type Reply } from './http.js';
import type { Locks } from './platform/platform.js';
import type { Batch, Queue, Waiting } from './queue.js';
import type { Applied, SentEvent } from './types.js';

/** An event that the service refuses for good: which field, and why. */
export interface RefusedEvent { event: SentEvent; code: string; field: string | null; reason: string }

/** What keeps events waiting. damaged: something in storage cannot be read, and was put aside. */
export interface Trouble { kind: 'unreachable' | 'unauthorized' | 'other_user' | 'unavailable' | 'damaged'; reason: string }

export interface Told {
  refused(event: RefusedEvent): void;
  trouble(trouble: Trouble): void;
  /** These events are settled: the service has them, or has refused them. applied: what they did, if the service says it. */
  settled(events: Waiting[], taken: Waiting[], applied?: Applied): Promise<void> | void;
  /** Whether somebody wants to know what the events did. */
  isAwaited(): boolean;
}

/**
 * What a reply says of a batch. misplaced: the service does not know their zones. halve: less of it may be sent at once.
 * bare: it may be sent without what stands beside the events.
 */
interface Verdict { taken: Waiting[]; refused: [Waiting, RefusedEvent][]; misplaced: Waiting[]; trouble?: Trouble; halve?: boolean; bare?: boolean }

interface Result { status?: string; error?: { code?: string; field?: string | null; message?: string } | null }

const FIRST = 1_000;
const MOST = 300_000;
/** No answer asks for a longer rest; nor can it put an end to sending. */
const REST_MAX = 86_400_000;
const KEEPALIVE_BYTES_MAX = 60_000;
const WHOLE = [400, 413, 422];
const ZONE = 'timezone';
/** What a batch says of itself. */
const BESIDE = ['sent_at', 'receipt'];
/** The service has judged the event itself. Of anything else it may think better. */
const JUDGED = ['rejected', 'conflict'];
/** What says nothing against an event. */
const TEMPORARY = ['unavailable', 'rate_limited', 'unauthorized'];
const TOO_LARGE = 413;
/** So long the service may wait until events are applied. */
export const WAIT = 'wait=2';

export class Sender {
  private attempt = 0;
  private size = 100;
  private isBare = false;
  /** In place of zones that the service does not know: the offset of the moment; undefined: nothing. By the event's key. */
  private readonly zones = new Map<string, string | undefined>();

  constructor(
    private readonly queue: Queue,
    private readonly http: Http,
    private readonly locks: Locks,
    private readonly told: Told,
  ) {}

  /**
   * Send what waits. Returns null then, else the milliseconds after which to try again. It ends although others go on: what comes
   * meanwhile is left for the next call.
   */
  drain(): Promise<number | null> {
    return this.locks.exclusive('send', async () => {
      const newest = (await this.queue.waiting()).at(-1)?.number ?? 0;
      for (;;) {
        const wait = await this.step(newest);
        if (wait !== 0) return wait;
      }
    });
  }

  /** Send one batch. Returns 0: go on; null: nothing waits; else the milliseconds to wait. */
  private async step(newest: number): Promise<number | null> {
    try {
      if (await this.queue.isInDoubt()) {
        const asked = this.queue.wall();
        const { time } = await this.http.once('GET', '/v1/health');
        await this.queue.heard(time, asked);
      }
      const found = await this.queue.batch(this.size, newest);
      if (found === null) return null;
      const batch = { ...found, events: found.events.map((one) => this.placed(one)) };
      const body = this.isBare ? { events: bodyOf(batch).events } : bodyOf(batch);
      const asked = this.queue.wall();
      // Only the last batch: the others shall go at once.
      const prefer = this.told.isAwaited() && (found.events.at(-1)?.number ?? 0) >= newest ? WAIT : '';
      const reply = await this.http.once('POST', '/v1/events', body, undefined, batch.proof?.device, prefer);
      return await this.judged(batch, reply, asked);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      await this.queue.settle([]); // nothing is under way any more
      return this.again({ kind: 'unreachable', reason: error.message }, null);
    }
  }

  /** Return an event as it is sent: with its offset where the service does not know its zone. */
  private placed(one: Waiting): Waiting {
    if (!this.zones.has(one.event.idempotency_key)) return one;
    const { timezone: _, ...event } = one.event;
    const zone = this.zones.get(event.idempotency_key);
    return { ...one, event: zone ? { ...event, timezone: zone } : event };
  }

  private async judged({ events }: Batch, reply: Reply, asked: number): Promise<number> {
    const { taken, refused, misplaced, trouble, halve, bare } = verdict(events, reply);
    const isBare = bare === true && !this.isBare; // once: what it refuses then is something else
    this.isBare = isBare;
    for (const [, event] of refused) this.told.refused(event);
    const done = [...taken, ...refused.map(([one]) => one)];
    for (const { event } of done) this.zones.delete(event.idempotency_key);
    for (const { event } of misplaced) {
      const offset = offsetText(event.occurred_at);
      this.zones.set(event.idempotency_key, event.timezone === offset ? undefined : offset);
    }
    await this.queue.settle(done);
    await this.queue.heard(reply.time, asked);
    if (done.length) await this.told.settled(done, taken, appliedOf(reply));
    this.size = halve ? Math.max(1, Math.floor(events.length / 2)) : 100;
    if (trouble && !isBare) return this.again(trouble, reply.retryAfter);
    this.attempt = 0;
    return 0;
  }

  private again(trouble: Trouble, retryAfter: number | null): number {
    this.told.trouble(trouble);
    return rest(this.attempt++, retryAfter);
  }

  /** The page may end: send what it knows to wait, by a request that outlives it. The keys make a second sending harmless. */
  parting(): void {
    const batch = this.queue.parting();
    if (!batch) return;
    const size = (): number => new TextEncoder().encode(JSON.stringify(bodyOf(batch))).length;
    while (batch.events.length && size() > KEEPALIVE_BYTES_MAX) batch.events.pop();
    if (batch.events.length) this.http.parting('/v1/events', bodyOf(batch), batch.proof?.device);
  }
}

/** Return the milliseconds until the next attempt: what the service asks for, else a random time that grows. */
export function rest(attempt: number, retryAfter: number | null): number {
  // All clients that a service has sent away at once do not come back at once.
  if (retryAfter !== null) return Math.min(REST_MAX, retryAfter) + Math.random() * FIRST;
  return Math.max(1, pause(attempt, null, FIRST, MOST));
}

const bodyOf = ({ events, sent_at, proof }: Batch): { events: SentEvent[]; sent_at: string; receipt: string | undefined } => ({ events: events.map(({ event }) => event), sent_at, receipt: proof?.receipt });

/** Return what a reply says of a batch. */
export function verdict(events: Waiting[], reply: Reply): Verdict {
  const results = resultsOf(reply);
  if (results?.length === events.length) return ofEach(events, results);
  const { status } = reply;
  const { code, reason, details, message } = refusalOf(reply);
  const nothing: Verdict = { taken: [], refused: [], misplaced: [] };
  if (status === 401 || status === 403) return { ...nothing, trouble: { kind: 'unauthorized', reason: message } };
  // Without a code of the service it is somebody on the way, such as a network's login page. That a body is too large each of them may say.
  const isIts = WHOLE.includes(status) && (code !== UNKNOWN || status === TOO_LARGE);
  if (!isIts) return { ...nothing, trouble: { kind: 'unavailable', reason: message } };
  const field = fieldOf(details);
  if (field !== null && BESIDE.includes(field)) return { ...nothing, bare: true, trouble: { kind: 'unavailable', reason: message } };
  if (events.length > 1) return { ...nothing, halve: true };
  return ofEach(events, events.map(() => ({ status: 'rejected', error: { code, field, message: reason } })));
}

/** Return the field of which details tell first: its own name, whatever it is part of (events[0].timezone). */
function fieldOf(details: unknown): string | null {
  const field: unknown = Array.isArray(details) ? Object(details[0]).field : undefined;
  return typeof field === 'string' ? field.replace(/^events?\W.*?(\w+)$/, '$1') : null;
}

/** One result for each event: in the answer, or in the details of a refusal that all of them share. */
function resultsOf({ status, body }: Reply): Result[] | undefined {
  const told = body as { results?: Result[]; error?: { details?: Result[] } } | null | undefined;
  const results = status === 200 || status === 202 ? told?.results : told?.error?.details;
  return Array.isArray(results) && results.every((each) => typeof each?.status === 'string') ? results : undefined;
}

/** Return what events did, if a reply says it. */
export function appliedOf({ status, body }: Reply): Applied | undefined {
  const { profile } = Object(body) as Partial<Applied>;
  return status === 200 && typeof profile?.current_streak === 'number' ? (body as Applied) : undefined;
}

function ofEach(events: Waiting[], results: Result[]): Verdict {
  const found: Verdict = { taken: [], refused: [], misplaced: [] };
  events.forEach((one, number) => {
    const { status = '', error } = results[number] as Result;
    const { code = UNKNOWN, field = null, message: reason = '' } = error ?? {};
    if (status === 'accepted' || status === 'duplicate') found.taken.push(one);
    else if (!JUDGED.includes(status) || TEMPORARY.includes(code)) found.trouble = { kind: 'unavailable', reason: reason || status };
    else if (field === ZONE && one.event.timezone) found.misplaced.push(one);
    // The token is another user's: this says nothing against the event.
    else if (code === 'forbidden' && field === 'user_id') found.trouble = { kind: 'other_user', reason };
    else found.refused.push([one, { event: one.event, code, field, reason }]);
  });
  return found;
}
