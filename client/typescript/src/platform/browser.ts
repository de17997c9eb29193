/** Browsers: IndexedDB with localStorage to fall back on, Web Locks, BroadcastChannel. Where one of them is missing, what is left does. */

import { below, inTime, nowhere, ownLocks, plain, spared, timely, type Channel, type KeyValues, type Locks, type Platform } from './platform.js';

const STORE = 'kept';
/** So long a browser may take to answer: storage, and a lock whose holder gives no sign. */
const ANSWER_MAX = 3_000;
const PATIENCE = 5_000;
const BEAT = 1_000;
const AWAY = 60_000;

function asked<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Storage in IndexedDB. */
export function inIndexedDb(name: string): KeyValues {
  let opening: Promise<IDBDatabase> | undefined;
  const open = (): Promise<IDBDatabase> => {
    opening ??= inTime(new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(STORE);
      request.onsuccess = () => {
        // The browser closes it when the user clears what sites keep: then it is opened anew.
        request.result.onclose = () => (opening = undefined);
        resolve(request.result);
      };
      request.onerror = () => reject(request.error);
    }), AWAY).catch((error: unknown) => { // nobody waits so long: after that it is opened anew
      opening = undefined;
      throw error;
    });
    return opening;
  };
  const begin = async (...how: [mode: IDBTransactionMode, options?: IDBTransactionOptions]): Promise<IDBTransaction> => {
    const base = await open();
    try {
      return base.transaction(STORE, ...how);
    } catch (error) {
      opening = undefined; // the connection is lost, as Safari's is at times, and nobody said so
      throw error;
    }
  };
  const read = async <T>(ask: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> => asked(ask((await begin('readonly')).objectStore(STORE)));
  const write = async (change: (store: IDBObjectStore) => IDBRequest): Promise<void> => {
    // strict: when this resolves it is on the disk, and not only with the system, which may lose power.
    const transaction = await begin('readwrite', { durability: 'strict' });
    change(transaction.objectStore(STORE));
    // A full disk shows when the transaction ends, and not at the request.
    await new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = transaction.onerror = () => reject(transaction.error);
    });
  };
  return {
    getItem: async (key) => (await read((store) => store.get(key))) as string | undefined ?? null,
    setItem: (key, value) => write((store) => store.put(value, key)),
    removeItem: (key) => write((store) => store.delete(key)),
    getAllKeys: async () => (await read((store) => store.getAllKeys())) as string[],
  };
}

/** Storage of a few megabytes, which browsers count apart from IndexedDB. */
const inLocalStorage = (): KeyValues => ({
  getItem: async (key) => localStorage.getItem(key),
  setItem: async (key, value) => localStorage.setItem(key, value),
  removeItem: async (key) => localStorage.removeItem(key),
  getAllKeys: async () => Object.keys(localStorage),
});

/** Whether there is such a thing. A page that may store nothing is refused even its name by some browsers. */
function has(ask: () => unknown): boolean {
  try {
    return Boolean(ask());
  } catch {
    return false;
  }
}

/** Return what keeps the queue: IndexedDB, and localStorage where that is full. A page may be refused either. */
function storage(name: string): KeyValues {
  const kept = has(() => indexedDB) ? timely(inIndexedDb(name), ANSWER_MAX) : nowhere();
  return has(() => localStorage) ? spared(kept, below(`${name}:`, inLocalStorage())) : kept;
}

/**
 * The browser's locks. The system may freeze a page that holds one, and does not say so: so who holds a lock for long gives
 * signs, and who hears none gives up, and tries again a minute later.
 */
function webLocks(name: string): Locks {
  const away = new Map<string, number>();
  return {
    exclusive: <T>(part: string, work: () => Promise<T>): Promise<T> => {
      const lock = `${name}:${part}`;
      if (performance.now() < (away.get(part) ?? 0)) return Promise.reject(new Error(`${lock} is not to be had`));
      return new Promise<T>((resolve, reject) => {
        let isLate = false;
        const stop = whenSilent(lock, () => {
          isLate = true;
          away.set(part, performance.now() + AWAY);
          reject(new Error(`who holds ${lock} gives no sign`));
        });
        const held = async (): Promise<void> => {
          stop();
          if (!isLate) resolve(await withSigns(lock, work));
        };
        Promise.resolve().then(() => navigator.locks.request(lock, held)).catch((error: unknown) => (stop(), reject(error)));
      });
    },
  };
}

async function withSigns<T>(lock: string, work: () => Promise<T>): Promise<T> {
  let line: Channel | undefined;
  const timer = setInterval(() => (line ??= channel(lock, () => undefined)).tell(''), BEAT);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    line?.close();
  }
}

/** Call back when nobody has given a sign for too long; returns how to stop that. */
function whenSilent(lock: string, silent: () => void): () => void {
  let line: Channel | undefined;
  let heard = performance.now();
  const stop = (): void => (clearInterval(timer), line?.close());
  const timer = setInterval(() => {
    line ??= channel(lock, () => (heard = performance.now()));
    if (performance.now() - heard > PATIENCE) stop(), silent();
  }, BEAT);
  return stop;
}

/** Return what this browser has. name: of the user's queue. */
export function browser(name: string): Platform {
  return {
    ...plain(storage(name)),
    isShared: false,
    locks: has(() => navigator.locks) ? webLocks(name) : ownLocks(),
    ...(has(() => BroadcastChannel) ? { channel } : {}),
    ...(has(() => document) ? { signs } : {}),
  };
}

function channel(name: string, heard: (message: string) => void): Channel {
  let line: BroadcastChannel;
  try {
    line = new BroadcastChannel(name);
  } catch {
    return { tell: () => undefined, close: () => undefined }; // a page that may store nothing may be refused it, too
  }
  line.onmessage = (event: MessageEvent) => heard(String(event.data));
  (line as { unref?: () => void }).unref?.(); // in Node it would keep the process alive
  return { tell: (message) => line.postMessage(message), close: () => line.close() };
}

function signs(online: () => void, parting: () => void): () => void {
  const hidden = (): void => {
    if (document.visibilityState === 'hidden') parting();
  };
  addEventListener('online', online);
  addEventListener('pagehide', parting);
  document.addEventListener('visibilitychange', hidden);
  return () => {
    removeEventListener('online', online);
    removeEventListener('pagehide', parting);
    document.removeEventListener('visibilitychange', hidden);
  };
}
