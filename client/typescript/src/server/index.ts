/**
 * The client for a server of the app: events of any user, many at once, and many users' profiles. Its token is of the group
 * streakline/producers. It keeps nothing: whoever needs an event to survive this process has it in a database of their own, and
 * sends it again under the same key until it is stored.
 */

import { Refused } from '../errors.js';
import { Http, pause, refusalOf, UNKNOWN, userPart, type Reply, type Token } from '../http.js';
import type { Applied, Profile, Tie } from '../types.js';

export { Refused, Unreachable } from '../errors.js';
export type { Applied, Profile } from '../types.js';

/**
 * What happened to a user. key: yours, such as order:1007, once a user: the same event sent twice counts once. occurredAt: a Date,
 * or RFC 3339. timezone: IANA name of the place; without it the one that the user has set.
 */
export interface ServerEvent { user: string; type: string; key: string; occurredAt: Date | string; timezone?: string; properties?: Record<string, unknown> }

/**
 * What became of an event. accepted: it is stored. duplicate: it was stored before. conflict: its key was used for another event.
 * rejected: it is refused for good. unavailable: it is not stored; send it again later. code, field, reason: why it is not stored.
 * applied: what it did, if somebody waited for that.
 */
export interface Sent {
  event: ServerEvent;
  status: 'accepted' | 'duplicate' | 'conflict' | 'rejected' | 'unavailable';
  eventId?: string;
  code?: string;
  field?: string | null;
  reason?: string;
  applied?: Applied;
}

interface Result { status: string; event_id?: string; error?: { code: string; field: string | null; message: string }; applied?: Applied }

/** url: the service's address. token: a bearer token of streakline/producers, or a function that returns a fresh one. */
export interface ServerOptions { url: string; token: Token; fetch?: typeof globalThis.fetch }

const EVENTS_MAX = 100;
/** The service takes a million. */
const BATCH_BYTES_MAX = 500_000;
const IDS_MAX = 100;
const ATTEMPTS_MAX = 5;
const WAIT_MAX = 5;
const TEMPORARY = ['unavailable', 'rate_limited', 'unauthorized'];
const BATCH_REFUSED = [400, 413, 422];

export class StreaklineServer {
  private readonly http: Http;

  /** Throws a TypeError for options that cannot work. */
  constructor({ url, token, fetch }: ServerOptions) {
    if (!/^https?:\/\/./.test(String(url))) throw new TypeError(`url must be the service's address, and not ${String(url)}`);
    if (typeof token !== 'function' && !String(token ?? '').trim()) throw new TypeError('token must be a bearer token, or a function that returns one');
    this.http = new Http(url, token, fetch ?? globalThis.fetch.bind(globalThis));
  }

  /**
   * Send an event, and again while that may help; resolves when it is stored. occurredAt: by default now; name it if you may call
   * this again, because another time under the same key is another event, and so a conflict. wait: seconds, at most
   * five, in which the service may say what the event did. Rejects with Refused, with code and reason, if it is not stored; with
   * Unreachable if nobody knows that.
   */
  async send(user: string, type: string, { wait = 0, occurredAt = new Date(), ...more }: Omit<ServerEvent, 'user' | 'type' | 'occurredAt'> & { occurredAt?: Date | string; wait?: number }): Promise<Sent> {
    const seconds = Math.min(WAIT_MAX, Math.ceil(wait));
    const [sent] = await this.sendBatch([{ user, type, occurredAt, ...more }], seconds > 0 ? `wait=${seconds}` : '');
    if (sent?.status === 'accepted' || sent?.status === 'duplicate') return sent;
    const status = sent?.status === 'conflict' ? 409 : sent?.status === 'unavailable' ? 503 : 422;
    throw new Refused(status, sent?.code ?? UNKNOWN, sent?.reason ?? '', [{ field: sent?.field }]);
  }

  /**
   * Send many events, a hundred at once, and yield what became of each, in their order. One that is refused stops no other. Throws
   * Unreachable, or Refused for a request that the service refuses as a whole; what was not yielded may be sent again.
   */
  async *sendAll(events: Iterable<ServerEvent> | AsyncIterable<ServerEvent>): AsyncGenerator<Sent> {
    let batch: ServerEvent[] = [];
    for await (const event of events) {
      batch.push(event);
      if (batch.length < EVENTS_MAX) continue;
      yield* await this.sendBatch(batch);
      batch = [];
    }
    if (batch.length) yield* await this.sendBatch(batch);
  }

  /** Say in which groups a user is, all of them: { class: '4b' }. Divided boards rank each group. */
  async setGroups(user: string, groups: Record<string, string>): Promise<void> {
    await this.http.call('PUT', `/v1/users/${userPart(user)}/groups`, groups);
  }

  /** Return users' profiles by id; who is not known, or was erased, is left out. */
  async profiles(users: Iterable<string>): Promise<Map<string, Profile>> {
    const found = new Map<string, Profile>();
    const ids = [...new Set(users)];
    for (let first = 0; first < ids.length; first += IDS_MAX) {
      // A comma within an id is encoded twice, because commas part the ids.
      const text = ids.slice(first, first + IDS_MAX).map((id) => encodeURIComponent(id.replaceAll(',', '%2C'))).join(',');
      const answer = await this.http.call<{ users: Profile[] }>('GET', `/v1/users?ids=${text}`);
      for (const profile of answer.users) found.set(profile.user_id, profile);
    }
    return found;
  }

  /**
   * Make two users friends at once: both have agreed, and you know it. since: when; by default now. Rejects with Refused, such as of
   * the code blocked or friends_max.
   */
  befriend(user: string, friend: string, since?: Date): Promise<Tie> {
    return this.http.call('PUT', `/v1/users/${userPart(user)}/friends/${userPart(friend)}`, since ? { since: since.toISOString() } : {});
  }

  /** End what two users have: a pair, or a request. */
  unfriend(user: string, friend: string): Promise<Tie> {
    return this.http.call('DELETE', `/v1/users/${userPart(user)}/friends/${userPart(friend)}`);
  }

  private async sendBatch(batch: ServerEvent[], prefer = ''): Promise<Sent[]> {
    const outcomes: Sent[] = [];
    let left = batch.map((_, number) => number);
    for (let attempt = 0; attempt < ATTEMPTS_MAX && left.length; attempt += 1) {
      if (attempt) await sleep(pause(attempt - 1, null));
      const results = await this.results(left.map((number) => bodyOf(batch[number] as ServerEvent)), prefer);
      left.forEach((number, place) => (outcomes[number] = sentOf(batch[number] as ServerEvent, results[place] as Result)));
      left = left.filter((number) => outcomes[number]?.status === 'unavailable');
    }
    return outcomes;
  }

  /** Return the service's result for each event; of a refused batch, those of its halves. */
  private async results(events: object[], prefer: string): Promise<Result[]> {
    const halves = async (): Promise<Result[]> => [
      ...(await this.results(events.slice(0, events.length >> 1), prefer)), ...(await this.results(events.slice(events.length >> 1), prefer)),
    ];
    if (events.length > 1 && new TextEncoder().encode(JSON.stringify(events)).length > BATCH_BYTES_MAX) return halves();
    const reply = await this.post(events, prefer);
    const { results, profile } = Object(reply.body) as { results?: Result[]; profile?: unknown };
    if (reply.status < 300 && results?.length === events.length) return profile ? results.map((each) => ({ ...each, applied: reply.body as Applied })) : results;
    const refused = refusalOf(reply);
    const details = refused.details as (Result & { field?: string })[] | undefined;
    if (Array.isArray(details) && details.length === events.length && details.every((each) => typeof each.status === 'string')) return details;
    if (!BATCH_REFUSED.includes(reply.status)) throw refused;
    if (events.length > 1) return halves();
    return [{ status: 'rejected', error: { code: refused.code, field: details?.[0]?.field ?? null, message: refused.reason } }];
  }

  private async post(events: object[], prefer: string): Promise<Reply> {
    for (let attempt = 0; ; attempt += 1) {
      const isLast = attempt === ATTEMPTS_MAX - 1;
      const reply = await this.http.once('POST', '/v1/events', { events }, undefined, '', prefer).catch((error: unknown) => {
        if (isLast) throw error;
      });
      if (reply && (isLast || (reply.status !== 429 && reply.status !== 503))) return reply;
      await sleep(pause(attempt, reply?.retryAfter ?? null));
    }
  }
}

const sleep = (milliseconds: number): Promise<void> => new Promise((go) => setTimeout(go, milliseconds));

function bodyOf({ user, type, key, occurredAt, timezone, properties }: ServerEvent): object {
  const occurred_at = occurredAt instanceof Date ? occurredAt.toISOString() : occurredAt;
  return { idempotency_key: key, event_type: type, occurred_at, user_id: user, timezone, properties };
}

function sentOf(event: ServerEvent, { status, event_id, error, applied }: Result): Sent {
  const isLater = TEMPORARY.includes(error?.code ?? '');
  return {
    event,
    status: isLater ? 'unavailable' : (status as Sent['status']),
    ...(event_id ? { eventId: event_id } : {}),
    ...(error ? { code: error.code, field: error.field, reason: error.message } : {}),
    ...(applied ? { applied } : {}),
  };
}
