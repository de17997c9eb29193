/** An app with React, as small as it can be. The tests compile it, bundle it, and use it in a browser. */

import { StrictMode, useState, type ReactElement } from 'react';
import { StreaklineProvider, useLeaderboard, useProfile, useTrack } from 'streakline/react';

export interface Session { url: string; user: string; token: string }

/** The app for one session. On a server it is rendered without asking anybody. */
export function App({ session }: { session: Session }): ReactElement {
  const [refused, setRefused] = useState('');
  return (
    <StrictMode>
      <StreaklineProvider
        url={session.url}
        user={session.user}
        token={() => session.token}
        onRefused={({ event, field, reason }) => setRefused(`${event.event_type}: ${field ?? ''} ${reason}`)}
      >
        <h1>Lessons</h1>
        <Streak />
        <Lesson />
        <Board />
        {refused && <p role="alert">{refused}</p>}
      </StreaklineProvider>
    </StrictMode>
  );
}

export function Streak(): ReactElement {
  const { data: profile, error, isLoading, refresh } = useProfile();
  if (profile) {
    return (
      <p id="streak">
        {profile.current_streak} {profile.current_streak === 1 ? 'day' : 'days'}, {profile.balance} points
        {profile.is_estimate && ' so far'}
      </p>
    );
  }
  if (isLoading) return <p id="streak">Loading your streak</p>;
  return <p id="streak">{String(error)} <button onClick={() => void refresh()}>Try again</button></p>;
}

export function Lesson(): ReactElement {
  const track = useTrack();
  return <button id="done" onClick={() => void track('LESSON_COMPLETED', { minutes: 12 })}>I have done a lesson</button>;
}

export function Board(): ReactElement {
  const { data: board } = useLeaderboard('points', { limit: 3 });
  return (
    <ol id="board" aria-busy={!board}>
      {board?.entries.map(({ rank, alias, score }) => <li key={alias} value={rank}>{alias}: {score}</li>)}
    </ol>
  );
}
