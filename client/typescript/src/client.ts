/** The client: one user's events, streak and points. */

import { Http, userPart, withQuery } from './http.js';
import { Kept } from './kept.js';
import { browser } from './platform/browser.js';
import { below, inMemory, spared, sparedLocks, timely, type Channel, type Platform } from './platform/platform.js';
import { checked, warning, type Options } from './options.js';
import { estimated, nobody, type ShownProfile } from './profile.js';
import { Queue, type Waiting } from './queue.js';
import { QuestionsApi } from './questions.js';
import { appliedOf, Sender, WAIT } from './sender.js';
import type {
  Achievements, Activity, Alias, Applied, Balance, Board, Entry, Explanation, Friends, FriendsBoard, Leaderboard, League, Pauses, Profile, Rank, Region, RepairedStreak, RestDays,
  Rewards, SentEvent,
  BoardOfPeriod, BoardsOfBook, OwnBoards,
  TakenFreeze, TakingPart, Tie, Weekday, Zone,
} from './types.js';

/** What became of an event that was tracked. kept: it survives the page. applied: what it did, if somebody waited for that. */
export interface Tracked { key: string; kept: boolean; applied?: Applied }

/** ahead: of events that the service has taken, and that the profile may lack. keeps: whether the event keeps the streak. */
interface KeptProfile { profile: Profile; ahead: { key?: string; date: string; at: number; keeps: boolean }[] }

/** A batch that the service has taken. events: until it has said what they did. ahead: these, and what was ahead before. */
interface Taken { events: SentEvent[]; ahead: KeptProfile['ahead']; number: number }

const QUEUE_MAX = 10_000;
const PROFILE = 'profile';
const GLANCE = 5_000;
const OTHERS_LOOK = 50;
const SPAN_MAX = 366;
/** So long an event that the service has taken may be missing in its profile: it is applied a moment later. */
const AHEAD_MAX = 60_000;
const ASK_AGAIN = 1_500;
/** What happens within so short a time goes in one request. */
const SOON = 100;
const STORAGE_AGAIN = 60_000;
/** A browser's own storage has less time: behind it is another one. */
const STORAGE_ANSWER_MAX = 10_000;

export class Streakline extends QuestionsApi {
  private readonly options: Options & ReturnType<typeof warning>;
  private readonly platform: Platform;
  private readonly kept: Kept;
  private readonly queue: Queue;
  private readonly sender: Sender;
  private readonly channel: Channel | undefined;
  private readonly stops: (() => void)[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private glanceTimer: ReturnType<typeof setTimeout> | undefined;
  private draining: Promise<void> | undefined;
  private showing: Promise<void> | undefined;
  /** Whether something has changed since what is being shown was worked out. */
  private isStale = false;
  /** Whether something came while a sending was under way; whether the service is to be left in peace. */
  private isAgain = false;
  private isResting = false;
  private isClosed = false;
  private readonly views = new Set<(profile: ShownProfile) => void>();
  /** Who waits for what an event does, by its key. */
  private readonly awaited = new Map<string, (applied?: Applied) => void>();
  /** The newest events of which the service has not said that it has applied them. A user's events are applied as they came. */
  private unconfirmed: Taken = { events: [], ahead: [], number: 0 };
  private confirmed = 0; // the number of the newest batch that is
  private changing: Promise<unknown> = Promise.resolve();
  /** The newest profile that storage did not take. */
  private unkept: KeptProfile | undefined;

  /** Throws a TypeError for options that cannot work. */
  constructor(given: Options) {
    const options = { ...warning(), ...present(checked(given)) };
    super(new Http(options.url, options.token, options.fetch ?? globalThis.fetch.bind(globalThis)));
    this.options = options;
    const name = `streakline:${options.url}:${encodeURIComponent(options.user)}`;
    const platform = options.platform ?? browser(name);
    const all = timely(platform.storage, STORAGE_ANSWER_MAX);
    const storage = platform.isShared ? below(`${name}:`, all) : all;
    this.platform = Object.assign(Object.create(platform) as Platform, { storage, locks: sparedLocks(platform.locks) });
    this.channel = this.platform.channel?.(name, (message) => this.heard(message));
    this.kept = new Kept(this.platform.storage, (reason) => this.tell(options.onTrouble, { kind: 'damaged', reason }));
    this.queue = new Queue(this.platform, this.kept, options.queueMax ?? QUEUE_MAX, this.othersLook());
    this.http.device = () => this.queue.device;
    this.http.keys = spared(storage, inMemory());
    this.http.received = (path, proof) => {
      // Of other paths nobody knows whose token it was.
      if (path === '/v1/events' || path === this.path('')) void this.queue.received(proof).catch(() => undefined);
    };
    this.sender = new Sender(this.queue, this.http, this.platform.locks, {
      refused: (event) => this.tell(options.onRefused, event),
      trouble: (trouble) => this.tell(options.onTrouble, trouble),
      settled: (events, taken, applied) => this.settled(events, taken, applied),
      isAwaited: () => this.isAwaited(),
    });
    const stop = this.platform.signs?.(() => this.wake(0), () => this.sender.parting());
    if (stop) this.stops.push(stop);
    this.glances();
    this.wake(SOON);
    void this.show();
  }

  /**
   * Say that something happened, now and here. Resolves when it is kept; it is sent whenever that is possible. Rejects with a
   * TypeError for a type that is no text, and for properties that are no JSON. wait: for so many seconds at most it waits until
   * the service has applied the event, and then resolves with what that did.
   */
  async track(type: string, properties?: SentEvent['properties'], { wait = 0 }: { wait?: number } = {}): Promise<Tracked> {
    const [event, wall] = this.queue.event(type, properties, this.options.user);
    const { kept, gone } = await this.queue.add(event, wall);
    if (!kept) this.tell(this.options.onUnkept, event);
    for (const one of gone) this.tell(this.options.onDropped, one.event);
    const key = event.idempotency_key;
    const applied = wait > 0 ? this.applied(key, wait) : undefined;
    this.soon(kept, applied ? 0 : SOON);
    void this.show();
    const done = await applied;
    return { key, kept, ...(done ? { applied: done } : {}) };
  }

  /** Try to send now. Returns how many events wait still. */
  async flush(): Promise<number> {
    await this.queue.glance();
    await this.draining;
    await this.drain();
    return (await this.queue.waiting()).length;
  }

  /** Return what waits, the oldest first. */
  async waiting(): Promise<SentEvent[]> {
    return (await this.queue.waiting()).map(({ event }) => event);
  }

  /** Stop. What waits is kept. */
  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    clearTimeout(this.glanceTimer);
    for (const stop of this.stops) stop();
    this.channel?.close();
  }

  /** Return the profile from the service, with what waits counted in. */
  async profile(): Promise<ShownProfile> {
    // The same events again change nothing. They are answered with what they did.
    const [taken, confirmed] = [this.unconfirmed, this.confirmed];
    const { events } = taken;
    const reply = events.length ? await this.http.once('POST', '/v1/events', { events }, undefined, this.queue.device, WAIT).catch(() => null) : null;
    const applied = reply && appliedOf(reply);
    if (applied) {
      await this.confirm(applied, taken);
      return this.estimate();
    }
    const profile: Profile = await this.http.call('GET', this.path(''));
    // Somebody on the way may answer with JSON, too: what is no profile changes nothing. Nor does one that is older than the kept one.
    if (typeof profile.current_streak === 'number') {
      await this.changeProfile((known) =>
        this.confirmed === confirmed ? { profile, ahead: known.ahead.filter(({ at }) => Math.abs(this.platform.wall() - at) < AHEAD_MAX) } : known);
    }
    return this.estimate();
  }

  /** Return the profile as it is to be shown now, without the service: the last one known, with what waits counted in. */
  async estimate(): Promise<ShownProfile> {
    const { profile, ahead } = await this.keptProfile();
    const { dates, today, waiting } = await this.queue.dates(this.options.keepsStreak ?? (() => true), profile.day_starts_at);
    const taken = ahead.filter(({ keeps }) => keeps).map(({ date }) => date);
    const is_estimate = waiting + ahead.length > 0 || profile.as_of !== today;
    return { ...estimated(profile, [...dates, ...taken], today), waiting, is_estimate };
  }

  /** Have a view told of the profile as `onProfile` is: now, and whenever it changes. Returns how to end that. */
  subscribe(view: (profile: ShownProfile) => void): () => void {
    const one = (profile: ShownProfile): void => view(profile);
    this.views.add(one);
    void this.show();
    return () => void this.views.delete(one);
  }

  /** Return why a date (YYYY-MM-DD) counts or not. */
  explain(date: string): Promise<Explanation> {
    return this.http.call('GET', withQuery(this.path('/streak/explain'), { date }));
  }

  /** Return the active dates of a span of at most 366 (YYYY-MM-DD), and what covers others; the newest first. */
  activity({ from, to }: { from: string; to: string }): Promise<Activity> {
    return this.http.call('GET', withQuery(this.path('/activity'), { from, to, covered: 'true', limit: SPAN_MAX }));
  }

  /** Return the achievements: which the user has, since when, and how far the others are. */
  achievements(): Promise<Achievements> {
    return this.http.call('GET', this.path('/achievements'));
  }

  balance(): Promise<Balance> {
    return this.http.call('GET', this.path('/balance'));
  }

  /** Return what can be redeemed, and what of it this user can. */
  rewards(): Promise<Rewards> {
    return this.http.call('GET', this.path('/rewards'));
  }

  /**
   * Redeem a reward. price_points: what the user was shown. If the answer is lost, call this again with the same arguments: the
   * reward is redeemed once. The key for that is kept beside the queue, for a day. key: your own in its place.
   */
  redeem(reward: string, { price_points, key }: { price_points?: number; key?: string } = {}): Promise<Entry> {
    return this.http.command(this.path('/redemptions'), { reward, ...(price_points === undefined ? {} : { price_points }) }, 'points', key);
  }

  /**
   * Take a freeze, which covers a missed date: some a month are free, further ones cost points. If the answer is lost, call this
   * again: one freeze is taken. key: as for redeem.
   */
  takeFreeze({ key }: { key?: string } = {}): Promise<TakenFreeze> {
    return this.http.command(this.path('/freezes'), {}, 'points', key);
  }

  /**
   * Repair the run that has just broken, for points: it covers the missed dates that the profile's `repair` names. price_points:
   * what the user was shown. A second call gives the first answer. key: as for redeem.
   */
  repairStreak({ price_points, key }: { price_points?: number; key?: string } = {}): Promise<RepairedStreak> {
    return this.http.command(this.path('/streak/repair'), price_points === undefined ? {} : { price_points }, 'price_points', key);
  }

  /** Pause the streak on a span of dates (YYYY-MM-DD), today the earliest: none of them is a miss. Returns all pauses. */
  pause({ first, last }: { first: string; last: string }): Promise<Pauses> {
    return this.http.call('POST', this.path('/pauses'), { first, last });
  }

  /**
   * Choose rest days, such as 'saturday': weekdays on which a date without activity is no miss. The book says how many; none at
   * all ends them. They count from a date that has begun nowhere yet, and stay for 28 days.
   */
  setRestDays(weekdays: readonly Weekday[]): Promise<RestDays> {
    return this.http.call('PUT', this.path('/rest-days'), { rest_days: weekdays });
  }

  /** Set the zone of the user's dates, such as Europe/Berlin. Past dates stay as they are. */
  setTimezone(timezone: string): Promise<Zone> {
    return this.http.call('PUT', this.path('/timezone'), { timezone });
  }

  /** Set the name under which the user is on the boards; null: a pseudonym. */
  setAlias(alias: string | null): Promise<Alias> {
    return this.http.call('PUT', this.path('/alias'), { alias });
  }

  leaderboard(board: Board, query: { region?: Region; limit?: number } = {}): Promise<Leaderboard> {
    return this.http.call('GET', withQuery(`/v1/leaderboards/${board}`, query));
  }

  /** Return this user's exact rank. */
  rank(board: Board, query: { region?: Region } = {}): Promise<Rank> {
    return this.http.call('GET', withQuery(`/v1/leaderboards/${board}/users/${userPart(this.options.user)}`, query));
  }

  /** Return the boards of the book, each with its periods: those that go on, and final results. */
  boards(): Promise<BoardsOfBook> {
    return this.http.call('GET', '/v1/boards');
  }

  /** Return a board of the book: the first users, `me`, and the rows `around` this user. period: by default that of the user's today. */
  board(name: string, query: { period?: string; group?: string; limit?: number } = {}): Promise<BoardOfPeriod> {
    return this.http.call('GET', withQuery(`/v1/boards/${encodeURIComponent(name)}`, query));
  }

  /** Leave all boards, or come back: within five minutes others no longer see this user, or do again. */
  setHidden(hidden: boolean): Promise<OwnBoards> {
    return this.http.call('PUT', this.path('/boards'), { hidden });
  }

  /** Return the user's division, the open league with its zones, and the last outcome; 404: there are none. */
  league(): Promise<League> {
    return this.http.call('GET', this.path('/league'));
  }

  /** Leave the leagues, or come back. */
  setTakingPart(takingPart: boolean): Promise<TakingPart> {
    return this.http.call('PUT', this.path('/league'), { taking_part: takingPart });
  }

  /** Return the friends, the streak that the user has with each, and requests. */
  friends(): Promise<Friends> {
    return this.http.call('GET', this.path('/friends'));
  }

  /** Return the user among the friends. board: streaks, points, or a board of the book. */
  friendsBoard(board = 'streaks'): Promise<FriendsBoard> {
    return this.http.call('GET', withQuery(this.path('/friends/board'), { board }));
  }

  /** Ask another user to be a friend, or answer such a request. */
  befriend(friend: string): Promise<Tie> {
    return this.http.call('PUT', this.path(`/friends/${userPart(friend)}`));
  }

  /** End a pair, decline a request, or take one back. */
  unfriend(friend: string): Promise<Tie> {
    return this.http.call('DELETE', this.path(`/friends/${userPart(friend)}`));
  }

  /** Block another user, who does not learn of it; blocked false: let that user ask again. */
  block(user: string, blocked = true): Promise<Tie> {
    return this.http.call(blocked ? 'PUT' : 'DELETE', this.path(`/blocked/${userPart(user)}`));
  }

  private path(part: string): string {
    return `/v1/users/${userPart(this.options.user)}${part}`;
  }

  private async keptProfile(): Promise<KeptProfile> {
    const kept = this.unkept ?? (await this.kept.read<KeptProfile>(PROFILE, 'profile').catch(() => null));
    return kept ?? { profile: nobody(this.options.user), ahead: [] };
  }

  private async keepProfile(known: KeptProfile): Promise<void> {
    const isKept = await this.platform.storage.setItem(PROFILE, JSON.stringify(known)).then(() => true, () => false);
    this.unkept = isKept ? undefined : known;
  }

  /** Change what is kept of the profile, one change after the other. */
  private changeProfile(change: (known: KeptProfile) => KeptProfile): Promise<void> {
    const changed = this.changing.then(async () => this.keepProfile(change(await this.keptProfile())));
    this.changing = changed.catch(() => undefined);
    return changed;
  }

  /** Show the profile as it is to be shown now. Of changes that come faster than this, the last one is enough. */
  private show(): Promise<void> {
    this.isStale = true;
    this.showing ??= this.shown().finally(() => (this.showing = undefined));
    return this.showing;
  }

  private async shown(): Promise<void> {
    while (this.isStale && (this.options.onProfile || this.views.size) && !this.isClosed) {
      this.isStale = false;
      const shown = await this.estimate().catch(() => null);
      if (shown) for (const view of [this.options.onProfile, ...this.views]) this.tell(view, shown);
    }
  }

  /** Resolve with what an event did, or after so many seconds with nothing. */
  private applied(key: string, seconds: number): Promise<Applied | undefined> {
    return new Promise<Applied | undefined>((resolve) => {
      const timer = setTimeout(resolve, seconds * 1000);
      this.awaited.set(key, (applied) => (clearTimeout(timer), resolve(applied)));
    }).finally(() => this.awaited.delete(key));
  }

  private async settled(events: Waiting[], taken: Waiting[], applied?: Applied): Promise<void> {
    if (!this.isClosed) this.channel?.tell(JSON.stringify(events.map(({ event }) => event.idempotency_key)));
    if (taken.length) {
      const counts = this.options.keepsStreak ?? (() => true);
      const at = this.platform.wall();
      const batch: Taken = { events: taken.map(({ event }) => event), ahead: [], number: this.unconfirmed.number + 1 };
      await this.changeProfile(({ profile, ahead }) => {
        batch.ahead = [...ahead, ...taken.map((one) => ({ key: one.event.idempotency_key, date: this.queue.dateOf(one, profile.day_starts_at), at, keeps: counts(one.event) }))];
        this.unconfirmed = batch;
        return { profile, ahead: batch.ahead };
      });
      if (applied) await this.confirm(applied, batch);
      else if (this.isAwaited()) void this.correct();
    }
    for (const { event } of events) if (!taken.some((one) => one.event === event)) this.awaited.get(event.idempotency_key)?.();
  }

  private isAwaited(): boolean {
    return this.awaited.size + this.views.size > 0 || Boolean(this.options.onProfile ?? this.options.onApplied);
  }

  /**
   * Keep the profile that has all events up to these. What another page has sent since is still ahead of it. And what came since may
   * be confirmed before this: then the kept profile is newer.
   */
  private async confirm(applied: Applied, taken: Taken): Promise<void> {
    await this.changeProfile((known) => {
      if (taken.number <= this.confirmed) return known;
      this.confirmed = taken.number;
      const had = new Set(taken.ahead.map(({ key }) => key));
      return { profile: applied.profile, ahead: known.ahead.filter(({ key }) => !had.has(key)) };
    });
    if (taken.events.length) this.tell(this.options.onApplied, applied);
    taken.events = [];
    for (const { idempotency_key } of applied.results) this.awaited.get(idempotency_key ?? '')?.(applied);
    void this.show();
  }

  /** The service was late: ask again what it made of the events. */
  private async correct(): Promise<void> {
    for (const wait of [ASK_AGAIN, 4 * ASK_AGAIN, 16 * ASK_AGAIN, AHEAD_MAX]) {
      await new Promise<void>((go) => idly(go, wait));
      if (this.isClosed || (await this.keptProfile()).ahead.length === 0) return;
      if (await this.profile().catch(() => null)) await this.show();
    }
  }

  private drain(): Promise<void> {
    this.isAgain = false;
    this.draining ??= this.sender
      .drain()
      .catch((error: unknown) => {
        this.tell(this.options.onTrouble, { kind: 'unavailable', reason: String(error) });
        return STORAGE_AGAIN;
      })
      .then((wait) => {
        this.draining = undefined;
        this.isResting = wait !== null;
        if (wait !== null) this.wake(wait);
        else if (this.isAgain) this.wake(SOON);
      });
    return this.draining;
  }

  /** Something waits: send it soon, unless the service is to be left in peace for a while. */
  private soon(kept: boolean, wait = SOON): void {
    this.isAgain = true;
    if (!this.draining && !this.isResting) this.wake(wait, kept);
  }

  /** mayEnd: in Node the process may end before. What it keeps in memory alone gets one attempt. */
  private wake(wait: number, mayEnd = true): void {
    clearTimeout(this.timer);
    if (!this.isClosed) this.timer = (mayEnd ? idly : setTimeout)(() => void this.drain(), wait);
  }

  /** Have the user's other pages look at their clocks first: they know what one that has just been opened cannot. */
  private async othersLook(): Promise<void> {
    if (!this.channel) return;
    this.channel.tell('look');
    await new Promise((go) => setTimeout(go, OTHERS_LOOK));
  }

  private glances(): void {
    if (this.isClosed) return;
    this.glanceTimer = idly(() => this.glances(), GLANCE);
    void this.queue.glance().catch(() => undefined);
  }

  private heard(message: string): void {
    if (message === 'look') void this.queue.glance(true).catch(() => undefined);
    else this.queue.forget(JSON.parse(message) as string[]);
  }

  private tell<T>(callback: ((value: T) => void) | undefined, value: T): void {
    try {
      callback?.(value);
    } catch (error) {
      console.error(error); // an app's own error stops no sending
    }
  }
}

/** Leave out what is undefined: it is as if it were not given. */
const present = (options: Options): Options =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as unknown as Options;

/** Call back later. In Node this alone keeps no process alive. */
function idly(work: () => void, wait: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(work, wait);
  (timer as { unref?: () => void }).unref?.();
  return timer;
}
