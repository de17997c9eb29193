/** One process of the TypeScript client, told what to do by lines of JSON on its input. */

import { createInterface } from 'node:readline';
import { Streakline } from '../src/index.js';
import { inFolder } from '../src/node/index.js';
import { through, type World } from './world.js';

const [url = '', token = '', user = '', folder = ''] = process.argv.slice(2);
let world: World = { elapsed: 0, jump: 0, slept: 0, net: 'off', full: false };
const refused: unknown[] = [];
const unkept: string[] = [];
const realNow = Date.now;
const real = inFolder(folder);
const me = new Streakline({
  url, token, user,
  fetch: through(() => world, fetch),
  onRefused: (one) => refused.push(one),
  onUnkept: ({ idempotency_key }) => unkept.push(idempotency_key),
  platform: {
    ...real,
    wall: () => realNow() + world.elapsed + world.jump,
    ticks: () => real.ticks() + world.elapsed,
    storage: {
      ...real.storage,
      setItem: (key, value) => (world.full ? Promise.reject(new Error('ENOSPC')) : real.storage.setItem(key, value)),
    },
  },
});

interface Command { do: string; name?: string; world?: World; zone?: string }

async function done(command: Command): Promise<unknown> {
  if (command.world) world = command.world;
  if (command.zone) process.env.TZ = command.zone;
  if (command.do === 'track') return me.track('LESSON_COMPLETED', { name: command.name });
  if (command.do === 'flush') return { waiting: await me.flush(), refused, unkept };
  if (command.do === 'estimate') return me.estimate();
  return {};
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await done(JSON.parse(line) as Command)));
}
process.exit(0);
