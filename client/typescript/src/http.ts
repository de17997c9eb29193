/** One request and its reply; and how long to wait before the next attempt. */

import { Refused, Unreachable } from './errors.js';
import { json } from './kept.js';
import type { Proof } from './queue.js';

export interface Reply {
  status: number;
  body: unknown;
  /** Milliseconds that the service asks for; null: it says nothing. */
  retryAfter: number | null;
  /** The service's time, in milliseconds since 1970; null: the browser does not show it. */
  time: number | null;
}

export type Token = string | (() => string | Promise<string>);

const ATTEMPTS_MAX = 5;
const PAUSE = 250;
const PAUSE_MAX = 20_000;
const TIMEOUT = 30_000;
/** The code of a refusal that has none of the service's. */
export const UNKNOWN = 'unknown';
export const isAgain = (status: number): boolean => status === 429 || status === 503;

/** Return the milliseconds to wait: what the service says, else a random time that grows by attempt (full jitter). */
export function pause(attempt: number, retryAfter: number | null, first = PAUSE, most = PAUSE_MAX): number {
  if (retryAfter !== null) return Math.min(most, retryAfter);
  return Math.random() * Math.min(most, first * 2 ** attempt);
}

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

export class Http {
  private lastToken: string | undefined;
  /** What the device is called; "": it gets no receipts. received: it has got one, with an answer to this path. */
  device = (): string => '';
  received = (_path: string, _proof: Proof): void => undefined;

  constructor(private readonly url: string, private readonly token: Token, private readonly fetch: typeof globalThis.fetch) {}

  /** Send a request once, and return a reply of any status; throws Unreachable. */
  async once(method: string, path: string, body?: unknown, timeout = TIMEOUT, device = this.device()): Promise<Reply> {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    // An app's token may never come, nor an answer through its fetch: all pages of the user would wait for this one.
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => (stop.abort(), reject(new Error(`nothing came in ${timeout / 1000} seconds`))), timeout);
    });
    try {
      return await Promise.race([late, this.exchanged(method, path, body, device, stop.signal)]);
    } catch (error) {
      throw new Unreachable(`${method} ${path}: ${String(error)}`);
    } finally {
      clearTimeout(timer);
    }
  }

  private async exchanged(method: string, path: string, body: unknown, device: string, signal: AbortSignal): Promise<Reply> {
    this.lastToken = typeof this.token === 'function' ? await this.token() : this.token;
    if (signal.aborted) throw new Error('the token came too late');
    const answered = await this.send(method, path, body, device, { signal });
    const text = await answered.text();
    const receipt = answered.ok && answered.headers.get('streakline-time-receipt');
    if (receipt) this.received(path, { device, receipt });
    return { status: answered.status, body: json(text), retryAfter: asked(answered.headers), time: timeOf(answered) };
  }

  private send(method: string, path: string, body: unknown, device: string, more: RequestInit): Promise<Response> {
    return this.fetch(this.url.replace(/\/$/, '') + path, {
      method,
      headers: {
        authorization: `Bearer ${this.lastToken ?? ''}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(device ? { 'streakline-device': device } : {}),
      },
      // A redirect would carry the token to another address.
      redirect: 'error',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...more,
    });
  }

  /** Send a request that outlives the page. Nobody reads its answer. */
  parting(path: string, body: unknown, device = this.device()): void {
    if (this.lastToken) void this.send('POST', path, body, device, { keepalive: true }).catch(() => undefined);
  }

  /** Send a request, and again while that may help; it reads only, or has a key. Throws Refused, Unreachable. */
  async call<T>(method: string, path: string, body?: unknown, timeout = TIMEOUT): Promise<T> {
    for (let attempt = 0; ; attempt += 1) {
      const isLast = attempt === ATTEMPTS_MAX - 1;
      try {
        const reply = await this.once(method, path, body, timeout);
        if (isLast || !isAgain(reply.status)) return content(reply) as T;
        await sleep(pause(attempt, reply.retryAfter));
      } catch (error) {
        if (isLast || !(error instanceof Unreachable)) throw error;
        await sleep(pause(attempt, null));
      }
    }
  }
}

/** Return a path with its query. What is undefined is left out. */
export function withQuery(path: string, query: Record<string, string | number | undefined>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return given.length ? `${path}?${given.map(([name, value]) => `${name}=${encodeURIComponent(value as string)}`).join('&')}` : path;
}

/** Return the error that a reply tells; a gateway's own is {"message"}, without {"error"} around it. */
export function refusalOf({ status, body }: Reply): Refused {
  const told = (body ?? {}) as { error?: { code?: string; message?: string; details?: unknown }; message?: string };
  const { code = UNKNOWN, message = 'no reason given', details } = told.error ?? { ...(told.message ? { message: told.message } : {}) };
  return new Refused(status, code, message, details);
}

function content(reply: Reply): unknown {
  if (reply.status < 200 || reply.status > 299) throw refusalOf(reply);
  if (typeof reply.body !== 'object' || reply.body === null) throw new Refused(reply.status, UNKNOWN, 'the answer is no JSON object');
  return reply.body;
}

/** Return the milliseconds that Retry-After asks for, as seconds or as a date; null: it says nothing. */
export function asked(headers: Headers): number | null {
  const text = headers.get('retry-after')?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const until = Date.parse(text);
  const now = Date.parse(headers.get('date') ?? '');
  return /^[A-Z]/i.test(text) && !Number.isNaN(until - now) ? Math.max(0, until - now) : null;
}

function timeOf(answered: Response): number | null {
  const time = Date.parse(answered.headers.get('date') ?? '');
  return Number.isNaN(time) ? null : time + 500; // it is cut to seconds
}
