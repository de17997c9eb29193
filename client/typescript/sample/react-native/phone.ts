/** What a phone gives to the client: AsyncStorage as it is, and when it is worth while to send. */

import AsyncStorage from '@react-native-async-storage/async-storage';
import NetInfo from '@react-native-community/netinfo';
import { AppState } from 'react-native';
import { plain, type Platform } from 'streakline';

/** `plain(AsyncStorage)` alone works, too: then the client tries again by its own pauses, and when something happens. */
export const phone: Platform = {
  ...plain(AsyncStorage),
  signs: (online, parting) => {
    const app = AppState.addEventListener('change', (state) => (state === 'active' ? online() : parting()));
    const stop = NetInfo.addEventListener(({ isConnected }) => {
      if (isConnected) online();
    });
    return () => {
      app.remove();
      stop();
    };
  },
};
