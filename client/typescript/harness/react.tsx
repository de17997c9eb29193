/** Components that count how often they are rendered, and a page that mounts and unmounts them. */

import { StrictMode, type ReactElement } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { Streakline } from 'streakline';
import { StreaklineProvider, useAnswer, useBoard, useFriends, useLeaderboard, useLeague, useProfile, useTrack, type Track } from 'streakline/react';
import type { Session } from '../sample/react/lessons.js';

const renders: Record<string, number> = {};
const count = (name: string): void => void (renders[name] = (renders[name] ?? 0) + 1);
let track: Track | undefined;
let refresh: () => Promise<void> = async () => undefined;

function Shown({ user }: { user: string }): ReactElement {
  count('profile');
  const { data, isLoading, error } = useProfile();
  if (data && data.user_id !== user) count('another user');
  refresh = useProfile().refresh;
  return <output>{isLoading ? 'loading' : error ? String(error) : `${data?.user_id}: ${data?.current_streak}, ${data?.balance}, ${data?.waiting}`}</output>;
}

function Tracks(): ReactElement {
  count('track');
  track = useTrack();
  return <i />;
}

function Boards(): ReactElement {
  count('board');
  const one = useLeaderboard('points', { limit: 3 }), same = useLeaderboard('points', { limit: 3 });
  const { data: weekly } = useBoard('weekly', { limit: 3 });
  return <b>{one === same ? `one board, ${weekly?.state} ${weekly?.entries.length}` : 'two'}</b>;
}

function Others(): ReactElement {
  const achievements = useAnswer('achievements', (me) => me.achievements()), league = useLeague(), friends = useFriends();
  return <u>{achievements.data ? `${achievements.data.achievements.length > 0}` : 'none'}, {(league.error as { status?: number } | undefined)?.status ?? 'league'}, {friends.data ? friends.data.friends.length : `${(friends.error as { status?: number } | undefined)?.status}`}</u>;
}

const Tree = ({ session, isOthers }: { session: Session; isOthers: boolean }): ReactElement => (
  <StrictMode>
    <StreaklineProvider url={session.url} user={session.user} token={() => session.token}>
      {isOthers ? <Others /> : <><Shown user={session.user} /><Shown user={session.user} /><Tracks /><Boards /></>}
    </StreaklineProvider>
  </StrictMode>
);

function OfOwnClient({ client, user }: { client: Streakline | null; user: string }): ReactElement {
  return <StrictMode><StreaklineProvider client={client}><Shown user={user} /><Tracks /></StreaklineProvider></StrictMode>;
}

let root: Root | undefined;
const place = (): HTMLElement => document.getElementById('app') ?? document.body.appendChild(Object.assign(document.createElement('div'), { id: 'app' }));

Object.assign(globalThis, {
  renders,
  mount: (session: Session, isOthers = false) => (root ??= createRoot(place())).render(<Tree session={session} isOthers={isOthers} />),
  mountOwn: (session: Session | null) =>
    (root ??= createRoot(place())).render(<OfOwnClient client={session && new Streakline(session)} user={session?.user ?? ''} />),
  unmount: () => (root?.unmount(), (root = undefined)),
  happens: (type: string, properties?: Record<string, unknown>) => track?.(type, properties as never).then(({ key }) => key, String),
  refresh: () => refresh(),
});
