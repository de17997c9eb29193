/** What a client is given; and that it keeps no process alive. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inMemory, plain, Streakline, type Options } from '../src/index.js';

const right: Options = { url: 'https://x.test', user: 'ann', token: 't', platform: plain(inMemory()) };

for (const [name, values] of Object.entries({
  url: ['example', '', undefined, null, 7, '/api', 'ftp://x.test', 'http://', 'https://x.test/?a=1', 'https://x.test/#a', 'javascript:1'],
  user: ['', ' ', undefined, null, 7, {}],
  token: ['', ' \n', undefined, null, 7, {}, Promise.resolve('t')],
  queueMax: [0, -1, 1.5, NaN, '10', null],
  platform: [{}, 'here', { storage: {} }, 7],
  onRefused: ['print', {}],
  onTrouble: [1],
  fetch: ['fetch'],
})) {
  test(`an option that cannot work is refused at once, with its name: ${name}`, () => {
    for (const value of values) {
      assert.throws(() => new Streakline({ ...right, [name]: value } as Options), { name: 'TypeError', message: new RegExp(`^${name} must be `) }, String(value));
    }
  });
}

test('no options at all are refused with a sentence', () => {
  for (const given of [undefined, null, 'https://x.test', {}]) assert.throws(() => new Streakline(given as never), /^TypeError: url must be /);
});

test('what is right is taken, and what is undefined is as if it were not given', () => {
  for (const url of ['https://x.test', 'http://127.0.0.1:9/_aws/x/$default/', ' HTTPS://x.test ', 'http://[::1]:8080']) {
    new Streakline({ ...right, url, onRefused: undefined, fetch: undefined, queueMax: undefined } as unknown as Options).close();
  }
  new Streakline({ ...right, token: async () => 't', queueMax: 1 }).close();
});

test('no error shows a token', () => {
  assert.throws(() => new Streakline({ ...right, token: ['secret'] as never }), (error) => !String(error).includes('secret'));
});

const circle: Record<string, unknown> = {};
circle.itself = circle;

for (const [type, properties, message] of [
  [undefined, {}, /^type must be a text/],
  ['', {}, /^type must be a text/],
  [7, {}, /^type must be a text/],
  ['A', { minutes: NaN }, /^properties must be JSON: minutes is the number NaN/],
  ['A', { deep: [{ minutes: -Infinity }] }, /^properties must be JSON: minutes is the number -Infinity/],
  ['A', { points: 10n }, /^properties must be JSON: points is the bigint 10/],
  ['A', { at: new Date('x') }, /^properties must be JSON: at is an invalid date/],
  ['A', circle, /^properties must be JSON: .*circular/i],
  ['A', 'minutes', /^properties must be an object, and not minutes/],
  ['A', 0, /^properties must be an object, and not 0/],
  ['A', [1], /^properties must be an object/],
  ['A', () => 1, /^properties must be an object/],
  ['A', { toJSON: () => undefined }, /^properties must be JSON/],
] as const) {
  test(`what cannot be sent is refused at once, and nothing waits: ${String(message)} ${typeof properties}`, async () => {
    const me = new Streakline({ ...right, platform: plain(inMemory()) });
    me.close();
    await assert.rejects(me.track(type as string, properties as never), { name: 'TypeError', message });
    assert.deepEqual(await me.waiting(), []);
  });
}

test('what JSON can say is sent, and what is undefined is left out', async () => {
  const me = new Streakline({ ...right, platform: plain(inMemory()) });
  me.close();
  await me.track('A', { at: new Date(0), none: undefined, nothing: null, tags: ['a'] } as never);
  await me.track('A', null as never);
  const [first, second] = await me.waiting();
  assert.deepEqual(first?.properties, { at: '1970-01-01T00:00:00.000Z', nothing: null, tags: ['a'] });
  assert.equal(second?.properties, undefined);
});

for (const [name, more] of [['nobody answers', ''], ['the token is refused', 'token: () => { throw new Error("signed out") },'], ['all is kept', 'platform: plain(inMemory()),']] as const) {
  test(`a process ends by itself: ${name}`, async () => {
    const index = fileURLToPath(new URL('../src/index.js', import.meta.url));
    const code = `import { inMemory, plain, Streakline } from ${JSON.stringify(index)}; void [inMemory, plain];
      const me = new Streakline({ url: 'http://127.0.0.1:9', user: 'ann', token: 't', ${more} onProfile: () => undefined });
      await me.track('A'); console.log('tracked');`;
    const [error, stdout, stderr] = await new Promise<[unknown, string, string]>((go) => {
      execFile(process.execPath, ['--input-type=module', '--eval', code], { timeout: 60_000 }, (...all) => go(all));
    });
    assert.equal(error, null, String(stderr));
    assert.equal(stdout, 'tracked\n');
    if (name !== 'all is kept') assert.match(stderr, /streakline: nothing can be stored here[^]*streakline: events wait: unreachable/);
    if (name === 'nobody answers') assert.match(stderr, /fetch failed: (bad port|.*ECONNREFUSED)/);
  });
}

test('a service is asked to wait for whole seconds', async () => {
  const asked: string[] = [];
  const fetch = (url: string | URL | Request) => {
    asked.push(String(url));
    return Promise.resolve(Response.json({ responses: [], cursor: 'c', done: true }));
  };
  const me = new Streakline({ ...right, fetch });
  for (const wait of [0, 0.5, 2, 20.5]) for await (const answer of me.answers('q', wait)) assert.fail(JSON.stringify(answer));
  me.close();
  assert.deepEqual(asked.map((url) => new URL(url).searchParams.get('wait')), ['0', '1', '2', '20']);
});
