/** One request and its reply; and how long to wait before the next attempt. */

import { Refused, Unreachable } from './errors.js';
import { json } from './kept.js';
import { inMemory, newKey, type KeyValues } from './platform/platform.js';
import type { Proof } from './queue.js';

export interface Reply {
  status: number;
  body: unknown;
  /** Milliseconds that the service asks for; null: it says nothing. */
  retryAfter: number | null;
  /** The service's time, in milliseconds since 1970; null: the answer does not tell it, or is not the service's. */
  time: number | null;
  /** The header www-authenticate: what is wrong with the token. */
  challenge?: string | null;
}

export type Token = string | (() => string | Promise<string>);

const ATTEMPTS_MAX = 5;
const PAUSE = 250;
const PAUSE_MAX = 20_000;
const TIMEOUT_MS = 30_000;
/** The code of a refusal that has none of the service's. */
export const UNKNOWN = 'unknown';
export const isAgain = (status: number): boolean => status === 429 || status === 503;
const UNAUTHORIZED = 401;
/** After these a command may have taken effect, or may yet: nobody says that it was refused. */
const UNCERTAIN = [UNAUTHORIZED, 408, 425, 429];
const DAY = 86_400_000;
/** What a gateway has against a token, by its words, and the code that tells it. */
const TOKEN_CODES: [RegExp, string][] = [
  [/expired/i, 'token_expired'], [/audience/i, 'wrong_audience'], [/issuer/i, 'unknown_issuer'], [/decode|malformed|parse|segment/i, 'malformed_token'],
];

/** Return the milliseconds to wait: what the service says, else a random time that grows by attempt (full jitter). */
export function pause(attempt: number, retryAfter: number | null, first = PAUSE, most = PAUSE_MAX): number {
  if (retryAfter !== null) return Math.min(most, retryAfter);
  return Math.random() * Math.min(most, first * 2 ** attempt);
}

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Node says "fetch failed", and why only in the error's cause: of several addresses, one by one. */
function inWords(error: unknown): string {
  const { cause } = Object(error) as { cause?: unknown };
  const [first] = (Object(cause) as { errors?: unknown[] }).errors ?? [cause];
  return first === undefined ? String(error) : `${String(error)}: ${first instanceof Error ? first.message : String(first)}`;
}

export class Http {
  private lastToken: string | undefined;
  /** What the device is called; "": it gets no receipts. received: it has got one, with an answer to this path. */
  device = (): string => '';
  received = (_path: string, _proof: Proof): void => undefined;
  /** Keeps the keys of commands whose answer is missing. */
  keys: KeyValues = inMemory();
  private readonly busy = new Set<string>();

  constructor(private readonly url: string, private readonly token: Token, private readonly fetch: typeof globalThis.fetch) {}

  /** Send a request once, and return a reply of any status; throws Unreachable. */
  async once(method: string, path: string, body?: unknown, timeout = TIMEOUT_MS, device = this.device(), prefer = ''): Promise<Reply> {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    // An app's token may never come, nor an answer through its fetch: all pages of the user would wait for this one.
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => (stop.abort(), reject(new Error(`nothing came in ${timeout / 1000} seconds`))), timeout);
    });
    try {
      return await Promise.race([late, this.exchanged(method, path, body, device, prefer, stop.signal)]);
    } catch (error) {
      throw new Unreachable(`${method} ${path}: ${inWords(error)}${this.originHint()}`);
    } finally {
      clearTimeout(timer);
    }
  }

  /** A browser does not tell a network that is away from a service that does not allow the page's origin. */
  private originHint(): string {
    const { origin } = (globalThis as { location?: { origin?: string } }).location ?? {};
    return !origin || this.url.trim().startsWith(`${origin}/`) ? '' : ` (or the service does not allow pages of ${origin}: AllowedOrigins)`;
  }

  private async exchanged(method: string, path: string, body: unknown, device: string, prefer: string, signal: AbortSignal): Promise<Reply> {
    const before = await this.freshToken(signal);
    let answered = await this.send(method, path, body, device, { signal }, prefer);
    // The app may have a newer one: it has kept this one for too long.
    if (answered.status === UNAUTHORIZED && typeof this.token === 'function' && (await this.freshToken(signal)) !== before) {
      answered = await this.send(method, path, body, device, { signal }, prefer);
    }
    const text = await answered.text();
    const { status, headers } = answered;
    const receipt = answered.ok && isFresh(headers) && headers.get('streakline-time-receipt');
    if (receipt) this.received(path, { device, receipt });
    const answer = json(text);
    return { status, body: answer, retryAfter: asked(headers), time: timeOf(status, answer, headers), challenge: answered.headers.get('www-authenticate') };
  }

  private async freshToken(signal: AbortSignal): Promise<string> {
    const token: unknown = typeof this.token === 'function' ? await this.token() : this.token;
    if (signal.aborted) throw new Error('the token came too late');
    if (typeof token !== 'string' || !token.trim()) throw new Error('the function `token` returned no token');
    return (this.lastToken = token.trim());
  }

  private send(method: string, path: string, body: unknown, device: string, more: RequestInit, prefer = ''): Promise<Response> {
    return this.fetch(this.url.trim().replace(/\/+$/, '') + path, {
      method,
      headers: {
        authorization: `Bearer ${this.lastToken ?? ''}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(device ? { 'streakline-device': device } : {}),
        ...(prefer ? { prefer } : {}),
      },
      // A redirect would carry the token to another address.
      redirect: 'error',
      cache: 'no-store',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...more,
    });
  }

  /** Send a request that outlives the page. Nobody reads its answer. */
  parting(path: string, body: unknown, device = this.device()): void {
    if (this.lastToken) void this.send('POST', path, body, device, { keepalive: true }).catch(() => undefined);
  }

  /**
   * Send a command that has an effect, once. field: one of each answer, which an answer of somebody on the way lacks. own: the
   * app's key. Without one, if the answer is lost, the next command of the same body has the same key, for a day. Of two at once
   * each has its own. Throws Refused, Unreachable.
   */
  async command<T extends object>(path: string, body: object, field: keyof T & string, own?: string): Promise<T> {
    const effect = async (key: string): Promise<T> => {
      const answer = await this.call<T>('POST', path, { ...body, idempotency_key: key });
      if (!(field in answer)) throw new Unreachable(`POST ${path}: the answer is not the service's`);
      return answer;
    };
    if (own !== undefined) return effect(own);
    const text = `${path} ${JSON.stringify(body)}`;
    let hash = 0;
    for (const sign of text) hash = (Math.imul(31, hash) + (sign.codePointAt(0) ?? 0)) | 0;
    let name = `key:${hash}`;
    while (this.busy.has(name)) name += '+';
    this.busy.add(name);
    const forget = (): Promise<void> => this.keys.removeItem(name).catch(() => undefined);
    try {
      const kept = json((await this.keys.getItem(name).catch(() => null)) ?? '') as { text: string; key: string; at: number } | null | undefined;
      const key = kept?.text === text && Math.abs(Date.now() - kept.at) < DAY ? kept.key : newKey();
      await this.keys.setItem(name, JSON.stringify({ text, key, at: Date.now() })).catch(() => undefined);
      const answer = await effect(key);
      await forget();
      return answer;
    } catch (error) {
      // An attempt before may have taken effect. Only the service itself says that none has.
      if (error instanceof Refused && error.status < 500 && error.code !== UNKNOWN && !UNCERTAIN.includes(error.status)) await forget();
      throw error;
    } finally {
      this.busy.delete(name);
    }
  }

  /** Send a request, and again while that may help; it reads only, or has a key. Throws Refused, Unreachable. */
  async call<T>(method: string, path: string, body?: unknown, timeout = TIMEOUT_MS): Promise<T> {
    for (let attempt = 0; ; attempt += 1) {
      const isLast = attempt === ATTEMPTS_MAX - 1;
      let reply: Reply | undefined;
      try {
        reply = await this.once(method, path, body, timeout);
      } catch (error) {
        if (isLast || !(error instanceof Unreachable)) throw error;
      }
      if (reply && (isLast || !isAgain(reply.status))) return content(reply) as T;
      await sleep(pause(attempt, reply?.retryAfter ?? null));
    }
  }
}

/**
 * Return a user's or an agent's id as it is written in one part of a path. A slash is encoded twice: an HTTP API of
 * AWS decodes a path before it looks for the route.
 */
export function userPart(text: string): string {
  return encodeURIComponent(text).replaceAll('%2F', '%252F');
}

/** Return a path with its query. What is undefined is left out. */
export function withQuery(path: string, query: Record<string, string | number | undefined>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return given.length ? `${path}?${given.map(([name, value]) => `${name}=${encodeURIComponent(value as string)}`).join('&')}` : path;
}

/**
 * Return the error that a reply tells; a gateway's own is {"message"}, without {"error"} around it. Why it takes no token it
 * says in the header www-authenticate (RFC 6750).
 */
export function refusalOf({ status, body, challenge }: Reply): Refused {
  const told = objectOf(body);
  const { code, message, details } = isObject(told.error) ? told.error : { ...told, code: undefined, details: undefined };
  const [, described] = /error_description="([^"]*)"/.exec(status === UNAUTHORIZED ? challenge ?? '' : '') ?? [];
  const words = described || String(message ?? (status < 300 ? "the answer is not the service's" : 'no reason given'));
  const fallback = status === UNAUTHORIZED ? TOKEN_CODES.find(([pattern]) => pattern.test(words))?.[1] ?? 'unauthorized' : UNKNOWN;
  return new Refused(status, String(code ?? fallback), code && message ? String(message) : words, details);
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);
const objectOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});

/** Return what an answer has. A page of a network's login, or half an answer, is none. */
function content(reply: Reply): unknown {
  if (reply.status < 200 || reply.status > 299) throw refusalOf(reply);
  if (!isObject(reply.body)) throw new Unreachable(`the service answered ${reply.status} without a JSON object`);
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

/** Whether an answer is new, and not one that a cache has kept. */
const isFresh = (headers: Headers): boolean => (headers.get('age') ?? '0').trim() === '0';

/**
 * Return the service's time; null: this answer does not tell it. Others answer, too: a network's login page, a proxy, a cache,
 * each with a clock of its own or with an old time. So the answer must be in the service's words, and fresh.
 */
export function timeOf(status: number, body: unknown, headers: Headers): number | null {
  const { results, status: health, error } = objectOf(body);
  const { code, message } = objectOf(error);
  const isOwn = status < 300 ? Array.isArray(results) || health === 'ok' : typeof code === 'string' && typeof message === 'string';
  const time = Date.parse(headers.get('date') ?? '');
  return !isOwn || !isFresh(headers) || Number.isNaN(time) ? null : time + 500; // it is cut to seconds
}
