/** Node: a folder of files, one for each thing that is kept, and for several processes at once. */

import { mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { ownLocks, newKey, type KeyValues, type Locks, type Platform } from '../platform/platform.js';

const POLL = 15;
const STALE = 60_000;
const TOUCH = 10_000;
const has = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code;

/** Return what Node has, in a folder for this user alone; it is made if need be. */
export function inFolder(folder: string): Platform {
  return {
    storage: files(folder),
    locks: fileLocks(folder),
    ticks: () => uptime() * 1000,
    run: bootId(),
    countsSleep: true, // uptime goes on while a machine sleeps, and is the same count for all processes
    wall: () => Date.now(),
  };
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return newKey(); // elsewhere a process knows only its own ticks
  }
}

function files(folder: string): KeyValues {
  const made = mkdir(folder, { recursive: true });
  made.catch(() => undefined);
  const pathOf = (key: string): string => join(folder, `${encodeURIComponent(key)}.json`);
  return {
    getItem: (key) =>
      readFile(pathOf(key), 'utf8').catch((error: unknown) => {
        if (has(error, 'ENOENT')) return null;
        throw error;
      }),
    async setItem(key, value) {
      await made;
      const draft = join(folder, `${newKey()}.tmp`);
      try {
        const file = await open(draft, 'wx');
        try {
          await file.writeFile(value);
          await file.datasync(); // a machine that loses power has the old file or the new one
        } finally {
          await file.close();
        }
        await rename(draft, pathOf(key));
        await synced(folder);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
    removeItem: (key) => rm(pathOf(key), { force: true }),
    async getAllKeys() {
      await made;
      const names = await readdir(folder);
      return names.filter((name) => name.endsWith('.json')).map((name) => decodeURIComponent(name.slice(0, -5)));
    },
  };
}

/** Have the names of a folder's files on the disk, too. Not every system can open a folder. */
async function synced(folder: string): Promise<void> {
  const opened = await open(folder, 'r').catch(() => null);
  await opened?.sync().catch(() => undefined);
  await opened?.close();
}

/** A lock is a file with the holder's process id. One whose holder is gone, or has not touched it for a minute, is free. */
function fileLocks(folder: string): Locks {
  const own = ownLocks();
  const taken = async (path: string): Promise<void> => {
    for (;;) {
      try {
        return await writeFile(path, String(process.pid), { flag: 'wx' });
      } catch (error) {
        if (has(error, 'ENOENT')) await mkdir(folder, { recursive: true });
        else if (!has(error, 'EEXIST')) throw error;
        else if (!(await freed(path))) await new Promise((go) => setTimeout(go, POLL * (0.5 + Math.random())));
      }
    }
  };
  return {
    exclusive: (name, work) =>
      own.exclusive(name, async () => {
        const path = join(folder, `${name}.lock`);
        await taken(path);
        const touch = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => undefined), TOUCH);
        touch.unref();
        try {
          return await work();
        } finally {
          clearInterval(touch);
          await rm(path, { force: true });
        }
      }),
  };
}

/** Remove a lock whose holder is gone; returns whether it was. Should two processes see this at once, the keys keep what they do harmless. */
async function freed(path: string): Promise<boolean> {
  try {
    const [holder, { mtimeMs }] = [Number(await readFile(path, 'utf8')), await stat(path)];
    if (holder && isAlive(holder) && Math.abs(Date.now() - mtimeMs) < STALE) return false;
    if (!holder && Math.abs(Date.now() - mtimeMs) < POLL * 10) return false; // it is being written
    const aside = `${path}.${newKey()}.tmp`;
    await rename(path, aside);
    await rm(aside, { force: true });
    return true;
  } catch (error) {
    if (has(error, 'ENOENT')) return true;
    throw error;
  }
}

function isAlive(process_id: number): boolean {
  try {
    process.kill(process_id, 0);
    return true;
  } catch (error) {
    return has(error, 'EPERM');
  }
}
