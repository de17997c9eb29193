/** Where the app begins in a browser: on what a server has rendered, or on an empty page. */

import { createRoot, hydrateRoot } from 'react-dom/client';
import { App, type Session } from './lessons.js';

const session = JSON.parse(document.getElementById('session')?.textContent ?? '') as Session;
const place = document.getElementById('app');
if (place?.hasChildNodes()) hydrateRoot(place, <App session={session} />);
else if (place) createRoot(place).render(<App session={session} />);
