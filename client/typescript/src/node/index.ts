/** Node: a folder of files, one for each thing that is kept, and for several processes at once. */

import { mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { readFileSync, readlinkSync } from 'node:fs';
import { uptime } from 'node:os';
import { dirname, join } from 'node:path';
import { ownLocks, newKey, type KeyValues, type Locks, type Platform } from '../platform/platform.js';

const POLL = 15;
const STALE = 60_000;
const TOUCH = 1_000;
/** A process of another container cannot be asked whether it is alive. One that has not touched its lock for so long is gone. */
const QUIET = 5_000;
const has = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code;

/** Return what Node has, in a folder for this user alone; it is made if need be. */
export function inFolder(folder: string): Platform {
  return {
    storage: files(folder),
    locks: fileLocks(folder),
    ticks: () => uptime() * 1000,
    run: BOOT || newKey(), // elsewhere a process knows only its own ticks
    countsSleep: true, // uptime goes on while a machine sleeps, and is the same count for all processes
    wall: () => Date.now(),
  };
}

/** Return what a file of Linux says; elsewhere something else. */
function linux(read: () => string, elsewhere: string): string {
  try {
    return read();
  } catch {
    return elsewhere;
  }
}

/** Which start of which machine this is; "": this system does not tell. */
const BOOT = linux(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(), '');

/** When a process was started, in ticks since the system was: another one may get its id later. */
const startOf = (process_id: number): string =>
  linux(() => readFileSync(`/proc/${process_id}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')[19] ?? '', '');

/** Where process ids are told apart: each container has its own, and begins with 1; so has each machine on a network's storage. */
const PLACE = linux(() => `${BOOT}-${readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')}`, '');

/** What this process is called in locks and drafts: id, a random word, start and place. */
const OWN = [process.pid, newKey(), startOf(process.pid), PLACE].join('_');
const draft = (folder: string): string => join(folder, `${OWN}.${newKey()}.tmp`);

/** Whether the process is gone that is called so. age: of its file, in milliseconds. */
function isGone(name: string, age: number): boolean {
  const [id, , start, place = PLACE] = name.split('_');
  if (place !== PLACE) return age > QUIET;
  if (Number(id) === process.pid) return start ? start !== startOf(process.pid) : name !== OWN;
  return !isAlive(Number(id)) || (start !== undefined && start !== startOf(Number(id)));
}

/** Return what a file keeps; "": somebody else has put it there. */
function keyOf(name: string): string {
  try {
    return decodeURIComponent(name.slice(0, -5));
  } catch {
    return '';
  }
}

function files(folder: string): KeyValues {
  const made = mkdir(folder, { recursive: true });
  void made.then(() => swept(folder)).catch(() => undefined);
  const pathOf = (key: string): string => join(folder, `${encodeURIComponent(key)}.json`);
  return {
    getItem: (key) =>
      readFile(pathOf(key), 'utf8').catch((error: unknown) => {
        if (has(error, 'ENOENT')) return null;
        throw error;
      }),
    async setItem(key, value) {
      await made;
      const path = draft(folder);
      try {
        const file = await open(path, 'wx');
        try {
          await file.writeFile(value);
          await file.datasync(); // a machine that loses power has the old file or the new one
        } finally {
          await file.close();
        }
        await rename(path, pathOf(key));
        await synced(folder);
      } catch (error) {
        await rm(path, { force: true });
        throw error;
      }
    },
    removeItem: (key) => rm(pathOf(key), { force: true }),
    async getAllKeys() {
      await made;
      return (await readdir(folder)).filter((name) => name.endsWith('.json')).map(keyOf).filter((key) => key !== '');
    },
  };
}

/** Remove the drafts of processes that were killed while they wrote. */
async function swept(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.endsWith('.tmp')) continue;
    const path = join(folder, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: 0 }));
    if (isGone(name.split('.')[0] ?? '', Math.abs(Date.now() - mtimeMs))) await rm(path, { force: true });
  }
}

/** Have the names of a folder's files on the disk, too. Not every system can open a folder. */
async function synced(folder: string): Promise<void> {
  const opened = await open(folder, 'r').catch(() => null);
  await opened?.sync().catch(() => undefined);
  await opened?.close();
}

/** A lock is a file with what its holder is called. One whose holder is gone, or has not touched it for a minute, is free. */
function fileLocks(folder: string): Locks {
  const own = ownLocks();
  const taken = async (path: string): Promise<void> => {
    for (;;) {
      try {
        return await writeFile(path, OWN, { flag: 'wx' });
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
    const [holder, { mtimeMs }] = [await readFile(path, 'utf8'), await stat(path)];
    const age = Math.abs(Date.now() - mtimeMs);
    if (holder ? age < STALE && !isGone(holder, age) : age < POLL * 10) return false; // without a name it is being written
    const aside = draft(dirname(path));
    await rename(path, aside);
    await rm(aside, { force: true });
    return true;
  } catch (error) {
    if (has(error, 'ENOENT')) return true;
    throw error;
  }
}

function isAlive(process_id: number): boolean {
  if (!(process_id > 0)) return false; // 0 is the group of this process
  try {
    process.kill(process_id, 0);
    return true;
  } catch (error) {
    return has(error, 'EPERM');
  }
}
