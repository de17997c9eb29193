/** What components show of one client: each answer once, however many components show it. Nothing here knows React. */

import type { Streakline } from '../client.js';
import type { ShownProfile } from '../profile.js';

/** An answer, or what there is of it. data: the newest one that came; it stays when a later question fails. */
export interface Loaded<T> {
  data: T | undefined;
  /** Why the newest question failed: a `Refused` or `Unreachable`; undefined if it did not. */
  error: unknown;
  /** Whether there is no answer yet, and none has failed. */
  isLoading: boolean;
  /** Ask again. Resolves when that is answered or has failed. */
  refresh: () => Promise<void>;
}

/** Who comes back to a page after so long a time sees a fresh answer. */
const STALE = 60_000;

export const LOADING: Loaded<never> = { data: undefined, error: undefined, isLoading: true, refresh: async () => undefined };

/** One answer, asked for while somebody shows it. Its state is the same object until what it says is different. */
export class Answer<T> {
  private readonly listeners = new Set<() => void>();
  private asking: Promise<void> | undefined;
  private asked = 0;
  private stop: (() => void) | undefined;
  private state: Loaded<T>;

  /** follow: calls back with each further answer; returns how to end that. */
  constructor(private readonly ask: () => Promise<T>, private readonly follow?: (tell: (data: T) => void) => () => void) {
    this.state = { ...LOADING, refresh: () => this.refresh() };
  }

  readonly get = (): Loaded<T> => this.state;

  readonly subscribe = (listener: () => void): (() => void) => {
    const one = (): void => listener(); // the same function may subscribe twice
    this.listeners.add(one);
    if (this.listeners.size === 1) this.begin();
    return () => {
      if (this.listeners.delete(one) && this.listeners.size === 0) this.stop?.();
    };
  };

  private begin(): void {
    const unfollow = this.follow?.((data) => this.change({ data, error: this.state.error, isLoading: false }));
    const unwatch = whenSeen(() => {
      if (Date.now() - this.asked > STALE) void this.refresh();
    });
    this.stop = () => (unfollow?.(), unwatch());
    void this.refresh();
  }

  private refresh(): Promise<void> {
    this.asking ??= this.ask()
      .then(
        (data) => this.change({ data, error: undefined, isLoading: false }),
        (error: unknown) => this.change({ data: this.state.data, error, isLoading: false }),
      )
      .finally(() => {
        this.asked = Date.now();
        this.asking = undefined;
      });
    return this.asking;
  }

  private change(next: Omit<Loaded<T>, 'refresh'>): void {
    const { data, error, isLoading, refresh } = this.state;
    const same = JSON.stringify(next.data) === JSON.stringify(data);
    if (same && next.error === error && next.isLoading === isLoading) return;
    this.state = { ...next, data: same ? data : next.data, refresh };
    for (const listener of [...this.listeners]) listener();
  }
}

/** The answers of one client. */
export class Store {
  readonly profile: Answer<ShownProfile>;
  private readonly answers = new Map<string, Answer<unknown>>();

  constructor(private readonly client: Streakline) {
    let isAsked = false;
    const shown = async (): Promise<ShownProfile> => {
      try {
        return await client.profile();
      } catch (error) {
        // Offline what the device knows is an answer; it says itself that it is an estimate.
        if ((error as { status?: unknown } | null)?.status !== undefined) throw error;
        return await client.estimate();
      } finally {
        isAsked = true;
      }
    };
    this.profile = new Answer(shown, (tell) => client.subscribe((profile) => {
      // Of a user of whom the device knows nothing yet, the service speaks first: no streak of 0 that becomes 12.
      if (isAsked || profile.last_activity_date !== null || profile.waiting > 0) tell(profile);
    }));
  }

  /** Return the answer of a name; the first who names it says how to ask. */
  answer<T>(name: string, ask: (client: Streakline) => Promise<T>): Answer<T> {
    const known = this.answers.get(name) ?? new Answer<unknown>(() => ask(this.client));
    this.answers.set(name, known);
    return known as Answer<T>;
  }
}

const stores = new WeakMap<Streakline, Store>();

/** Return a client's answers, always the same. */
export function storeOf(client: Streakline): Store {
  const store = stores.get(client) ?? new Store(client);
  stores.set(client, store);
  return store;
}

/** Call back whenever the page is seen again; returns how to end that. Where there is no page, nobody is called. */
function whenSeen(seen: () => void): () => void {
  if (typeof document === 'undefined' || typeof document.addEventListener !== 'function') return () => undefined;
  const look = (): void => {
    if (document.visibilityState === 'visible') seen();
  };
  document.addEventListener('visibilitychange', look);
  return () => document.removeEventListener('visibilitychange', look);
}
