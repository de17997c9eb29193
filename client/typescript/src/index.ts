export { Streakline, type Tracked } from './client.js';
export type { Options } from './options.js';
export { Refused, Unreachable } from './errors.js';
export { plain, inMemory, spared, type KeyValues, type Locks, type Platform } from './platform/platform.js';
export { browser } from './platform/browser.js';
export { estimated, type ShownProfile } from './profile.js';
export type { RefusedEvent, Trouble } from './sender.js';
export type * from './types.js';
