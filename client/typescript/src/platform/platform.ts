/** What a platform gives: a place to keep things, one worker at a time, clocks. */

/** Keeps texts by name, across closing and crashes. AsyncStorage of React Native is one as it is. */
export interface KeyValues {
  getItem(key: string): Promise<string | null>;
  setItem(key: string, value: string): Promise<void>;
  removeItem(key: string): Promise<void>;
  getAllKeys(): Promise<readonly string[]>;
}

/** Lets one worker at a time do something, of all that share the storage. */
export interface Locks {
  exclusive<T>(name: string, work: () => Promise<T>): Promise<T>;
}

/** Tells the other pages of a user something. They need not hear it. */
export interface Channel {
  tell(message: string): void;
  close(): void;
}

export interface Platform {
  storage: KeyValues;
  locks: Locks;
  /** A count of milliseconds that nobody can move, and which count it is: another run begins anew. */
  ticks: () => number;
  run: string;
  /** Whether the ticks go on while the machine sleeps. */
  countsSleep: boolean;
  wall: () => number;
  /** Whether the storage has other things, too, as AsyncStorage has: each user's queue then gets names of its own in it. */
  isShared?: boolean;
  channel?: (name: string, heard: (message: string) => void) => Channel;
  /** Calls back when the network is there again, and when the page may end; returns how to stop that. */
  signs?: (online: () => void, parting: () => void) => () => void;
}

/** Locks for one process: each worker waits for the one before. */
export function ownLocks(): Locks {
  const last = new Map<string, Promise<unknown>>();
  return {
    exclusive<T>(name: string, work: () => Promise<T>): Promise<T> {
      const mine = (last.get(name) ?? Promise.resolve()).then(work, work);
      last.set(name, mine.catch(() => undefined));
      return mine;
    },
  };
}

/**
 * Locks that are had at once where the given ones cannot be: a browser that lets a page store nothing gives it no Web Locks
 * either, and a full disk takes no file. Two senders then cost nothing: the keys make a second sending harmless.
 */
export function sparedLocks(locks: Locks): Locks {
  const own = ownLocks();
  return {
    exclusive: (name, work) =>
      own.exclusive(name, async () => {
        let isBegun = false;
        const begin = (): ReturnType<typeof work> => ((isBegun = true), work());
        try {
          return await locks.exclusive(name, begin);
        } catch (error) {
          if (isBegun) throw error;
          return work();
        }
      }),
  };
}

/** Storage that ends with the process. */
export function inMemory(): KeyValues {
  const kept = new Map<string, string>();
  return {
    getItem: async (key) => kept.get(key) ?? null,
    setItem: async (key, value) => void kept.set(key, value),
    removeItem: async (key) => void kept.delete(key),
    getAllKeys: async () => [...kept.keys()],
  };
}

/** Storage that takes nothing, for a platform that has none. */
export function nowhere(): KeyValues {
  const none = (): Promise<never> => Promise.reject(new Error('there is no storage'));
  return { getItem: none, setItem: none, removeItem: none, getAllKeys: none };
}

const AWAY = 60_000;

/** Return what a promise brings; rejects if that takes longer. late: is called then. */
export function inTime<T>(work: Promise<T>, most: number, late = (): void => undefined): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => (late(), reject(new Error(`nothing came in ${most / 1000} seconds`))), most);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Storage that has not answered in time is away for a minute: nobody waits for it then. */
export function timely(storage: KeyValues, most: number): KeyValues {
  let until = 0;
  const asked = <T>(ask: () => Promise<T>): Promise<T> =>
    performance.now() < until ? Promise.reject(new Error('storage does not answer')) : inTime(ask(), most, () => (until = performance.now() + AWAY));
  return {
    getItem: (key) => asked(() => storage.getItem(key)),
    setItem: (key, value) => asked(() => storage.setItem(key, value)),
    removeItem: (key) => asked(() => storage.removeItem(key)),
    getAllKeys: () => asked(() => storage.getAllKeys()),
  };
}

/** The part of a storage whose names begin alike. */
export const below = (prefix: string, storage: KeyValues): KeyValues => ({
  getItem: (key) => storage.getItem(prefix + key),
  setItem: (key, value) => storage.setItem(prefix + key, value),
  removeItem: (key) => storage.removeItem(prefix + key),
  getAllKeys: async () => (await storage.getAllKeys()).filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length)),
});

/**
 * Storage with another one to fall back on: what the first does not take goes there. Whoever writes holds the lock, so
 * what the spare one has of a name is newer.
 */
export const spared = (storage: KeyValues, spare: KeyValues): KeyValues => ({
  getItem: async (key) => (await spare.getItem(key)) ?? storage.getItem(key),
  setItem: async (key, value) => {
    try {
      await storage.setItem(key, value);
    } catch {
      return spare.setItem(key, value);
    }
    return spare.removeItem(key);
  },
  removeItem: async (key) => {
    await spare.removeItem(key);
    return storage.removeItem(key);
  },
  getAllKeys: async () => {
    const both = await Promise.allSettled([storage.getAllKeys(), spare.getAllKeys()]);
    const found = both.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    if (!found.length) throw (both[0] as PromiseRejectedResult).reason;
    return [...new Set(found.flat())];
  },
});

export const newKey = (): string =>
  globalThis.crypto?.randomUUID?.() ??
  'xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx'.replace(/x/g, () => Math.floor(Math.random() * 16).toString(16));

/** A platform around any storage, for one process: React Native, a worker, tests. What else is in the storage is left alone. */
export const plain = (storage: KeyValues): Platform => ({
  storage,
  isShared: true,
  locks: ownLocks(),
  ticks: () => performance.now(),
  run: newKey(),
  countsSleep: false,
  wall: () => Date.now(),
});
