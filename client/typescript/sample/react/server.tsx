/** Where the app begins on a server: it gets the loading state, and asks nobody. */

import { renderToString } from 'react-dom/server';
import { App, type Session } from './lessons.js';

export const html = (session: Session): string => renderToString(<App session={session} />);
