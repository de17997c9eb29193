/** The events that wait, on the platform's storage: in the order in which they happened, each with its key. */

import { contact, isInDoubt, look, newClock, rightTime, sentAt, shiftOf, STILL, type ClockState, type Reading, type Watch } from './clock.js';
import type { Kept } from './kept.js';
import { dateAt, here, offsetOf, offsetText, written } from './moment.js';
import { checkedType, sendable } from './options.js';
import type { Platform } from './platform/platform.js';
import { newKey } from './platform/platform.js';
import type { SentEvent } from './types.js';

/** A time receipt of the service, and the device that it was given to. */
export interface Proof { device: string; receipt: string }

/** An event that waits. number: its place. shift: the sum of the clock's moves until then. wall: what the clock said. proof: the newest receipt then. */
export interface Waiting { number: number; shift: number; wall: number; event: SentEvent; proof?: Proof }

/** Some events that one clock has read, and what time it is now by that clock. proof: since when they may have waited. */
export interface Batch { events: Waiting[]; sent_at: string; proof: Proof | undefined }

/** What all pages share. flying: the newest event of a batch under way; up to it nothing is given up. receipt: the newest of this device. */
interface State { next: number; count: number; flying: number; clock: ClockState; device: string; receipt?: string }

const STATE = 'state';
const EVENT = 'event:';
const BATCH_MAX = 100;
/** The service takes a million; properties alone may have 64 KB. */
const BATCH_BYTES_MAX = 500_000;
/** Moves are measured to a few milliseconds. */
const SAME_CLOCK = 1_000;
const keyOf = ({ number, event }: Waiting): string => `${EVENT}${String(number).padStart(12, '0')}:${event.idempotency_key}`;

export class Queue {
  private watch: Watch | null = null;
  /** What storage did not take. It waits as the others do, and ends with this page. */
  private unkept: Waiting[] = [];
  /** What storage has, by name. An event does not change there, so a page reads each once. */
  private stock: ReadonlyMap<string, Waiting> = new Map();
  /** What this page knows to wait, for the page's end, when there is no time to read. */
  readonly known = new Map<string, Waiting>();
  private last: State = { next: 1, count: 0, flying: 0, clock: newClock(), device: newKey() };
  /** Storage refused the newest state: this page goes on with its own, as long as nobody else has stored another. */
  private isBehind = false;
  /** The stored state that this page has seen last, and what it remembered of the clock then. */
  private stored: string | null = null;
  private joined: Watch | null = null;

  /** ready: when the user's other pages have had time to look at their clocks. kept: reads the platform's storage. */
  constructor(private readonly platform: Platform, private readonly kept: Kept, private readonly max: number, private readonly ready: Promise<void>) {}

  /** Return an event as it is now, with the time and the place of this moment. Throws a TypeError for what cannot be sent. */
  event(type: string, properties: SentEvent['properties'], user: string): [SentEvent, number] {
    const wall = this.platform.wall();
    const { offset, zone } = here(wall);
    const occurred_at = written(wall, offset);
    const event: SentEvent = { idempotency_key: newKey(), event_type: checkedType(type), occurred_at, user_id: user, timezone: zone ?? offsetText(occurred_at) };
    if (properties !== undefined && properties !== null) event.properties = sendable(properties);
    return [event, wall];
  }

  /** Keep an event. Returns whether storage has it, and what had to go because the queue is full: the oldest. */
  async add(event: SentEvent, wall: number): Promise<{ kept: boolean; gone: Waiting[] }> {
    const base = wall - this.platform.ticks();
    this.known.set(event.idempotency_key, { number: this.last.next, shift: this.last.clock.shift, wall, event, ...proofOf(this.last) });
    await this.ready;
    return this.platform.locks.exclusive('write', async () => {
      const state = await this.state();
      const moved = this.platform.wall() - this.platform.ticks() - base; // while it stood in line
      const isMoved = Math.abs(moved) > STILL;
      this.lookAt(state, isMoved ? state.next + 1 : state.next);
      const since = isMoved && (moved < 0 || this.platform.countsSleep) ? moved : 0;
      const one = { number: state.next++, shift: state.clock.shift - since, wall, event, ...proofOf(state) };
      this.known.set(event.idempotency_key, one);
      const kept = await this.keep(one);
      state.count += 1;
      const gone = state.count > this.max ? await this.giveUp(state) : [];
      await this.save(state);
      return { kept, gone };
    });
  }

  private async keep(one: Waiting): Promise<boolean> {
    try {
      await this.platform.storage.setItem(keyOf(one), JSON.stringify(one));
      return true;
    } catch {
      this.unkept.push(one);
      return false;
    }
  }

  /** Take the oldest out that is not under way, and never the newest: more may wait for a while. */
  private async giveUp(state: State): Promise<Waiting[]> {
    const waiting = await this.waiting();
    state.count = waiting.length;
    const over = waiting.filter(({ number }) => number > state.flying && number < state.next - 1).slice(0, Math.max(0, waiting.length - this.max));
    await this.drop(over);
    state.count -= over.length;
    return over;
  }

  private async drop(events: Waiting[]): Promise<void> {
    const keys = new Set(events.map(({ event }) => event.idempotency_key));
    this.unkept = this.unkept.filter(({ event }) => !keys.has(event.idempotency_key));
    for (const one of events) {
      this.known.delete(one.event.idempotency_key);
      await this.platform.storage.removeItem(keyOf(one)).catch(() => undefined);
    }
  }

  /** Return all that waits, the oldest first. Storage that cannot be read has nothing for now. */
  async waiting(): Promise<Waiting[]> {
    const kept = await this.read().catch(() => []);
    return [...kept, ...this.unkept].sort((one, other) => one.number - other.number);
  }

  private async read(): Promise<Waiting[]> {
    const found = await Promise.all(
      (await this.keys()).map(async (key) => [key, this.stock.get(key) ?? (await this.kept.read<Waiting>(key, 'event').catch((error: unknown) => this.kept.unread(key, error)))] as const),
    );
    this.stock = new Map(found.flatMap(([key, one]) => (one ? [[key, one]] : [])));
    return [...this.stock.values()];
  }

  /** Return the names of the events in storage, the oldest first. */
  private async keys(): Promise<string[]> {
    return (await this.platform.storage.getAllKeys()).filter((key) => key.startsWith(EVENT)).sort();
  }

  /** Return the next batch, the oldest events first, all of one clock; null: nothing waits up to the number `newest`. */
  async batch(most: number, newest: number): Promise<Batch | null> {
    let events: Waiting[] = [];
    const { clock } = await this.change(async (state) => {
      this.lookAt(state, state.next);
      const waiting = await this.waiting();
      if ((waiting[0]?.number ?? 0) <= newest) events = batchOf(waiting.slice(0, Math.min(most, BATCH_MAX)), state.clock);
      state.flying = events.at(-1)?.number ?? 0; // with the lock held: nobody gives them up meanwhile
    });
    const [first] = events;
    return first ? { events, sent_at: this.sentAt(clock, first), proof: first.proof } : null;
  }

  private sentAt(clock: ClockState, first: Waiting): string {
    return written(sentAt(clock, shiftOf(clock, first), this.platform.wall()), 0);
  }

  /** Return what this page knows to wait, at once, for its last request; null if the clock is in doubt. */
  parting(): Batch | null {
    const { clock } = this.last;
    const [first, ...others] = [...this.known.values()].sort((one, other) => one.number - other.number);
    if (!first || isInDoubt(clock)) return null;
    const moved = Math.abs(this.platform.wall() - this.platform.ticks() - (this.watch?.base ?? 0)) > STILL;
    const events = batchOf([first, ...others], clock).slice(0, BATCH_MAX);
    return moved ? null : { events, sent_at: this.sentAt(clock, first), proof: first.proof };
  }

  /** These events are settled: they wait no more. */
  async settle(events: Waiting[]): Promise<void> {
    await this.platform.locks.exclusive('write', async () => {
      await this.drop(events);
      const state = await this.state();
      state.count = Math.max(0, state.count - events.length);
      state.flying = 0;
      await this.save(state);
    });
    await this.keepAgain();
  }

  /** There may be room now for what storage did not take. */
  private async keepAgain(): Promise<void> {
    const again = this.unkept;
    this.unkept = [];
    for (const one of again) await this.keep(one);
  }

  /** Another page has settled these. */
  forget(keys: string[]): void {
    for (const key of keys) this.known.delete(key);
  }

  /** Whether somebody should ask the service for its time first. */
  async isInDoubt(): Promise<boolean> {
    return isInDoubt((await this.looked()).clock);
  }

  /**
   * The service has said what time it is; null: it has not. asked: what the clock said before the request. If the machine slept
   * since then, or the clock was moved, the time is old.
   */
  async heard(serverTime: number | null, asked: number): Promise<void> {
    const wall = this.platform.wall();
    if (serverTime === null || Math.abs(wall - asked) > STILL) return;
    await this.change((state) => contact(state.clock, serverTime, wall, state.next));
  }

  wall(): number {
    return this.platform.wall();
  }

  /** What this device is called in requests. */
  get device(): string {
    return this.last.device;
  }

  /** The service has given a receipt to a device: events that happen from now on have it. */
  async received({ device, receipt }: Proof): Promise<void> {
    await this.change((state) => {
      if (device === state.device && isNewer(receipt, state.receipt)) state.receipt = receipt;
    });
  }

  /** Look at the clock if it seems to have been moved since the last look; always, if asked to. */
  async glance(always = false): Promise<void> {
    const base = this.platform.wall() - this.platform.ticks();
    if (always || this.watch === null || Math.abs(base - this.watch.base) > STILL) await this.looked();
  }

  private looked(): Promise<State> {
    return this.change((state) => this.lookAt(state, state.next));
  }

  /** Both clocks are read with the lock held: what another page has noticed is then before this reading. */
  private lookAt(state: State, next: number): void {
    this.watch = look(state.clock, this.watch, this.reading(), next);
  }

  private reading(): Reading {
    const { run, countsSleep } = this.platform;
    return { wall: this.platform.wall(), ticks: this.platform.ticks(), run, countsSleep };
  }

  /**
   * Return the dates on which waiting events were, and today's, at their places and by the right time. start: when dates begin,
   * such as 03:00.
   */
  async dates(counts: (event: SentEvent) => boolean, start?: string): Promise<{ dates: string[]; today: string; waiting: number }> {
    const [{ clock }, waiting, wall] = [await this.looked(), await this.waiting(), this.platform.wall()];
    const dates = waiting.filter(({ event }) => counts(event)).map((one) => this.dateOf(one, start));
    return { dates, today: dateAt(rightTime(clock, wall, clock.shift), here(wall).offset, start), waiting: waiting.length };
  }

  /** Return the date on which an event was, at its place and by the right time, as far as that is known. */
  dateOf(one: Waiting, start?: string): string {
    const { clock } = this.last;
    return dateAt(rightTime(clock, one.wall, shiftOf(clock, one)), offsetOf(one.event.occurred_at), start);
  }

  private change(work: (state: State) => void | Promise<void>): Promise<State> {
    return this.platform.locks.exclusive('write', async () => {
      const state = await this.state();
      const before = JSON.stringify(state);
      await work(state);
      if (JSON.stringify(state) === before && !this.isBehind) this.last = state;
      else await this.save(state);
      return state;
    });
  }

  /** Storage that cannot be read or written keeps no state; this page then goes by what it remembers. */
  private async state(): Promise<State> {
    const text = await this.platform.storage.getItem(STATE).catch(() => null);
    if (text === null || (this.isBehind && text === this.stored)) return copied(this.last);
    const kept = await this.kept.parsed<State>(STATE, text, 'clock');
    if (kept === null) return this.afresh();
    if (this.isBehind) this.join(kept);
    this.stored = text;
    return { ...kept, device: kept.device ?? this.last.device, next: Math.max(kept.next, this.last.next) };
  }

  /** The stored state is damaged: go on with this page's own, behind the events that wait. */
  private async afresh(): Promise<State> {
    const keys = await this.keys().catch(() => []);
    const next = Number(keys.at(-1)?.split(':')[1] ?? 0) + 1;
    return { ...copied(this.last), next: Math.max(next, this.last.next), count: keys.length };
  }

  /** Another page has stored a state meanwhile: what waits in memory is told by its sum of moves, which ends in the same now. */
  private join(kept: State): void {
    const own = copied(this.last);
    const now = this.reading();
    look(own.clock, this.watch, now, own.next);
    kept.next = Math.max(kept.next, own.next);
    this.watch = look(kept.clock, this.joined, now, kept.next);
    const more = kept.clock.shift - own.clock.shift;
    // Their new numbers are beyond the fixes of that state, which this sum has in it.
    this.unkept = this.unkept.map((one) => ({ ...one, shift: shiftOf(own.clock, one) + more, number: kept.next++ }));
    for (const one of this.unkept) this.known.set(one.event.idempotency_key, one);
    this.isBehind = false;
  }

  private async save(state: State): Promise<void> {
    const text = JSON.stringify(state);
    this.last = copied(state);
    this.isBehind = await this.platform.storage.setItem(STATE, text).then(() => false, () => true);
    if (this.isBehind) return;
    this.stored = text;
    this.joined = this.watch;
  }
}

const copied = (state: State): State => JSON.parse(JSON.stringify(state)) as State;

const proofOf = ({ device, receipt }: State): { proof?: Proof } => (receipt ? { proof: { device, receipt } } : {});

/** Whether a receipt was given later than another one. */
export const isNewer = (receipt: string, than: string | undefined): boolean => !than || Number(receipt.split('.')[1]) > Number(than.split('.')[1]);

/** Return the first of these events that one clock has read on one device, as many as one request carries. */
export function batchOf(waiting: Waiting[], clock: ClockState): Waiting[] {
  const shift = waiting[0] ? shiftOf(clock, waiting[0]) : 0;
  let bytes = 0;
  const end = waiting.findIndex((one, number) => {
    bytes += 4 * JSON.stringify(one.event).length; // a sign has up to four bytes
    return Math.abs(shiftOf(clock, one) - shift) > SAME_CLOCK || one.proof?.device !== waiting[0]?.proof?.device || (bytes > BATCH_BYTES_MAX && number > 0);
  });
  return end < 0 ? waiting : waiting.slice(0, end);
}
