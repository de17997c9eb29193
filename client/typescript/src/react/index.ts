'use client';
/** A provider and hooks for React, from 18 on. In the app are a queue and an estimate, as with the client itself. */

import {
  createContext, createElement, useCallback, useContext, useEffect, useMemo, useRef, useState, useSyncExternalStore,
  type ReactElement, type ReactNode,
} from 'react';

import { Streakline, type Tracked } from '../client.js';
import type { Options } from '../options.js';
import type { ShownProfile } from '../profile.js';
import type { Board, BoardOfPeriod, Friends, Leaderboard, League, Region, SentEvent } from '../types.js';
import { LOADING, storeOf, type Answer, type Loaded, type Store } from './store.js';

export type { Loaded };
export interface LeaderboardQuery { region?: Region; limit?: number }
export interface BoardQuery { period?: string; group?: string; limit?: number }

export type Track = (type: string, properties?: SentEvent['properties'], options?: { wait?: number }) => Promise<Tracked>;

/** Either the options of a client, which the provider then makes and closes; or a client of yours, null while nobody is signed in. */
export type ProviderProps = { children?: ReactNode } & ((Options & { client?: never }) | { client: Streakline | null });

/** client: null on a server, before the first effect, and while nobody is signed in. ready: waits for it. */
interface Given { client: Streakline | null; ready: () => Promise<Streakline> }

const Context = createContext<Given | null>(null);
const CALLBACKS = ['onRefused', 'onDropped', 'onUnkept', 'onTrouble', 'onProfile', 'onApplied', 'keepsStreak'] as const;
const nothing = (): (() => void) => () => undefined;
const loading = (): Loaded<never> => LOADING;

/**
 * Give a client to the components below. By options: another url or user makes another client, while a new token function or
 * callback is used from then on by the same one; `platform`, `fetch` and `queueMax` are those of the first rendering.
 */
export function StreaklineProvider(props: ProviderProps): ReactElement {
  const isOwn = 'client' in props && props.client !== undefined;
  return isOwn
    ? createElement(WithClient, { client: props.client, children: props.children })
    : createElement(WithOptions, { options: props as Options, children: props.children });
}

function WithClient({ client, children }: { client: Streakline | null; children: ReactNode }): ReactElement {
  const given = useMemo<Given>(() => ({
    client,
    ready: () => client ? Promise.resolve(client) : Promise.reject(new Error('nobody is signed in: <StreaklineProvider> has no client')),
  }), [client]);
  return createElement(Context.Provider, { value: given }, children);
}

function WithOptions({ options, children }: { options: Options; children: ReactNode }): ReactElement {
  const { url, user } = options;
  const latest = useRef(options);
  useEffect(() => {
    latest.current = options;
  });
  const [made, setMade] = useState<{ client: Streakline; url: string; user: string } | null>(null);
  // A client has timers and listeners, so it is made in an effect, and closed with it: rendering twice makes none.
  useEffect(() => {
    const client = new Streakline(following(latest));
    setMade({ client, url, user });
    return () => client.close();
  }, [url, user]);
  const client = made?.url === url && made.user === user ? made.client : null; // never another user's
  // What happens before there is a client waits for it. After its end a client still keeps what it is told.
  const newest = useRef<Streakline | null>(null);
  const waiting = useRef<((client: Streakline) => void)[]>([]);
  useEffect(() => {
    if (!client) return;
    newest.current = client;
    for (const resolve of waiting.current.splice(0)) resolve(client);
  }, [client]);
  const ready = useCallback(() => newest.current ? Promise.resolve(newest.current) : new Promise<Streakline>((resolve) => waiting.current.push(resolve)), []);
  const given = useMemo<Given>(() => ({ client, ready }), [client, ready]);
  return createElement(Context.Provider, { value: given }, children);
}

/** Return options whose token and callbacks are the newest ones that the provider was given. */
function following(latest: { current: Options }): Options {
  const { token, ...first } = latest.current;
  const callbacks = CALLBACKS.filter((name) => first[name] !== undefined).map((name) =>
    [name, (value: never) => (latest.current[name] as ((value: never) => unknown) | undefined)?.(value)]);
  const fresh = (): string | Promise<string> => {
    const now = latest.current.token;
    return typeof now === 'function' ? now() : now;
  };
  return { ...first, token: typeof token === 'function' || typeof token === 'string' ? fresh : token, ...Object.fromEntries(callbacks) as Partial<Options> };
}

function useGiven(hook: string): Given {
  const given = useContext(Context);
  if (!given) throw new Error(`${hook}: there is no <StreaklineProvider> above this component`);
  return given;
}

function useShown<T>(hook: string, answerOf: (store: Store) => Answer<T>): Loaded<T> {
  const { client } = useGiven(hook);
  const answer = client && answerOf(storeOf(client));
  return useSyncExternalStore<Loaded<T>>(answer?.subscribe ?? nothing, answer?.get ?? loading, loading);
}

/** Return the client, for all that has no hook; null on a server, before the first effect, and while nobody is signed in. */
export const useStreakline = (): Streakline | null => useGiven('useStreakline').client;

/** Return the user's profile: what waits is counted in at once, and the service corrects it. */
export const useProfile = (): Loaded<ShownProfile> => useShown('useProfile', (store) => store.profile);

/**
 * Return what the client answers: `useAnswer('achievements', (me) => me.achievements())`. It is asked once, however many components
 * use the name, and again when a page is seen after a minute. name: says what is asked, with all that `ask` uses.
 */
export const useAnswer = <T>(name: string, ask: (me: Streakline) => Promise<T>): Loaded<T> =>
  useShown('useAnswer', (store) => store.answer(`own:${name}`, ask));

/** Return a board of all time: of streaks, or of points. */
export const useLeaderboard = (board: Board, query: LeaderboardQuery = {}): Loaded<Leaderboard> =>
  useShown('useLeaderboard', (store) => store.answer(JSON.stringify(['leaderboard', board, query.region, query.limit]), (me) => me.leaderboard(board, query)));

/** Return a board that the book declares, of a period: by default of the one that is open. */
export const useBoard = (name: string, query: BoardQuery = {}): Loaded<BoardOfPeriod> =>
  useShown('useBoard', (store) => store.answer(JSON.stringify(['board', name, query.period, query.group, query.limit]), (me) => me.board(name, query)));

/** Return the user's friends, each with the streak of the dates on which both were active, and who asks to be one. */
export const useFriends = (): Loaded<Friends> => useShown('useFriends', (store) => store.answer('friends', (me) => me.friends()));

/** Return the user's league. Before the first points of a week it is a `Refused` of status 404. */
export const useLeague = (): Loaded<League> => useShown('useLeague', (store) => store.answer('league', (me) => me.league()));

/** Return a function that says what happened, as `Streakline.track` does. Call it where it happens: each call is an event. */
export function useTrack(): Track {
  const { ready } = useGiven('useTrack');
  return useCallback<Track>(async (...event) => (await ready()).track(...event), [ready]);
}
