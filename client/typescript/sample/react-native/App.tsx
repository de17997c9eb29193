/** A React Native app, as small as it can be: the tests compile it. */

import { useEffect, useState, type ReactElement } from 'react';
import { AppState, Button, FlatList, Text, View } from 'react-native';
import { StreaklineProvider, useLeaderboard, useProfile, useTrack } from 'streakline/react';
import { phone } from './phone';

export interface Session { user: string; freshToken: () => Promise<string> }

export default function App({ session }: { session: Session }): ReactElement {
  const [refused, setRefused] = useState('');
  return (
    <StreaklineProvider
      url="https://api.example.com"
      user={session.user}
      token={session.freshToken}
      platform={phone}
      onRefused={({ event, reason }) => setRefused(`${event.event_type}: ${reason}`)}
    >
      <View>
        <Streak />
        <Lesson />
        <Board />
        {refused ? <Text accessibilityRole="alert">{refused}</Text> : null}
      </View>
    </StreaklineProvider>
  );
}

function Streak(): ReactElement {
  const { data: profile, isLoading, error, refresh } = useProfile();
  // A browser's page asks again by itself when it is seen; a phone's app says when it is.
  useEffect(() => {
    const seen = AppState.addEventListener('change', (state) => {
      if (state === 'active') void refresh();
    });
    return () => seen.remove();
  }, [refresh]);
  if (isLoading) return <Text>Loading your streak</Text>;
  if (!profile) return <Button title={`Try again: ${String(error)}`} onPress={() => void refresh()} />;
  return <Text>{`${profile.current_streak} days, ${profile.balance} points${profile.is_estimate ? ' so far' : ''}`}</Text>;
}

function Lesson(): ReactElement {
  const track = useTrack();
  return <Button title="I have done a lesson" onPress={() => void track('LESSON_COMPLETED', { minutes: 12 })} />;
}

function Board(): ReactElement {
  const { data: board } = useLeaderboard('points', { limit: 3 });
  return <FlatList data={board?.entries ?? []} keyExtractor={({ alias }) => alias} renderItem={({ item }) => <Text>{`${item.rank}. ${item.alias}: ${item.score}`}</Text>} />;
}

// What types are for: each of these would be a mistake.
export function Mistakes(): ReactElement {
  const track = useTrack();
  // @ts-expect-error properties are an object
  void track('LESSON_COMPLETED', 12);
  // @ts-expect-error no such field
  void useProfile().data?.streak;
  // @ts-expect-error no such board of all time
  void useLeaderboard('coins');
  // @ts-expect-error a client has a user
  return <StreaklineProvider url="https://api.example.com" token="t" />;
}
