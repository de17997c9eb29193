/** What an app gives to its client; and what is said where it gives nothing to be told. */

import type { Token } from './http.js';
import type { Platform } from './platform/platform.js';
import type { ShownProfile } from './profile.js';
import type { RefusedEvent, Trouble } from './sender.js';
import type { Applied, SentEvent } from './types.js';

export interface Options {
  /** The service's address. */
  url: string;
  /** A bearer token of the user, or a function that returns a fresh one. */
  token: Token;
  /** Whose events these are: the token's `sub`. Each user has a queue of their own. */
  user: string;
  platform?: Platform;
  fetch?: typeof globalThis.fetch;
  /** How many events may wait. One more, and the oldest goes, and `onDropped` tells. */
  queueMax?: number;
  /** The service refused an event for good. It is told at least once, also in another page. */
  onRefused?: (refused: RefusedEvent) => void;
  /** The queue was full: this event is given up. */
  onDropped?: (event: SentEvent) => void;
  /** Storage is full or away: this event waits in memory, and ends with the page. */
  onUnkept?: (event: SentEvent) => void;
  /** Events wait, and why; or something in storage is damaged, and was put aside. */
  onTrouble?: (trouble: Trouble) => void;
  /** The profile as it is to be shown, whenever it changes: first as an estimate, then as the service says. */
  onProfile?: (profile: ShownProfile) => void;
  /** The service has applied events: points and date of each, the profile after them, achievements and level that are new. */
  onApplied?: (applied: Applied) => void;
  /** Whether an event keeps the streak; by default each does. For the estimate only. */
  keepsStreak?: (event: SentEvent) => boolean;
}

const FUNCTIONS = ['onRefused', 'onDropped', 'onUnkept', 'onTrouble', 'onProfile', 'onApplied', 'keepsStreak', 'fetch'] as const;
const WARNINGS_MAX = 100;

/** Return the options. Throws a TypeError for what cannot work, with the option and the reason. */
export function checked(options: Options): Options {
  const { url, user, token, queueMax, platform } = Object(options) as Record<keyof Options, unknown>;
  const must = (isRight: boolean, name: string, what: string, given?: unknown): void => {
    if (!isRight) throw new TypeError(`${name} must be ${what}${given === undefined ? '' : `, and not ${String(given)}`}`);
  };
  must(isAddress(url), 'url', "the service's address, such as https://api.example.com", url);
  must(isText(user), 'user', "a text: the token's `sub`", user);
  must(typeof token === 'function' || isText(token), 'token', 'a bearer token, or a function that returns one'); // nobody is shown it
  must(queueMax === undefined || (Number.isSafeInteger(queueMax) && (queueMax as number) > 0), 'queueMax', 'a positive whole number of events', queueMax);
  must(platform === undefined || typeof Object(Object(platform).storage).setItem === 'function', 'platform', 'a Platform, such as plain(AsyncStorage)');
  for (const name of FUNCTIONS) must(options[name] === undefined || typeof options[name] === 'function', name, 'a function', options[name]);
  return options;
}

/**
 * Return an event's properties as they are sent: as JSON writes them, so what is undefined is left out. Throws a TypeError for
 * what JSON cannot say, or would make null of.
 */
export function sendable(properties: object): NonNullable<SentEvent['properties']> {
  if (typeof properties !== 'object' || Array.isArray(properties)) throw new TypeError(`properties must be an object, and not ${String(properties)}`);
  try {
    return JSON.parse(JSON.stringify(properties, checkedValue)) as NonNullable<SentEvent['properties']>;
  } catch (error) {
    throw new TypeError(`properties must be JSON: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

function checkedValue(this: Record<string, unknown>, name: string, value: unknown): unknown {
  const is = typeof value === 'bigint' || (typeof value === 'number' && !Number.isFinite(value)) ? `the ${typeof value} ${value}` : '';
  const isNoDate = value === null && this[name] instanceof Date;
  if (is || isNoDate) throw new TypeError(`${name} is ${is || 'an invalid date'}`);
  return value;
}

/** Return an event's type. Throws a TypeError for what is no text. */
export function checkedType(type: unknown): string {
  if (!isText(type)) throw new TypeError(`type must be a text, such as LESSON_COMPLETED, and not ${String(type)}`);
  return type;
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';

function isAddress(url: unknown): boolean {
  try {
    return typeof url === 'string' && /^https?:\/\//i.test(url.trim()) && new URL(url.trim()).search === '' && !url.includes('#');
  } catch {
    return false;
  }
}

/** Return who is told where the app gives no callbacks: the console, of each reason once. */
export function warning(): Required<Pick<Options, 'onRefused' | 'onDropped' | 'onUnkept' | 'onTrouble'>> {
  const known = new Set<string>();
  const warn = (text: string): void => {
    if (known.has(text) || known.size >= WARNINGS_MAX) return;
    known.add(text);
    console.warn(`streakline: ${text}`);
  };
  return {
    onRefused: ({ event, code, field, reason }) => warn(`the service refuses ${event.event_type} for good: ${code}${field ? ` of ${field}` : ''}: ${reason}`),
    onDropped: () => warn('too many events wait: the oldest ones are given up'),
    onUnkept: () => warn('nothing can be stored here: events wait in memory, and end with the page or the process'),
    onTrouble: ({ kind, reason }) => warn(`${kind === 'damaged' ? '' : `events wait: ${kind}: `}${reason}`),
  };
}
