/** A device in a made-up time, for the random schedules of tests/clients: its clock, its place, its network. */

export interface World {
  /** Milliseconds that the right time of this story is ahead of real time: below 0, for it ends now. */
  elapsed: number;
  /** By how much the device's clock was moved. */
  jump: number;
  /** How long the machine has slept. */
  slept: number;
  /** off: nothing goes out. lossy: of three requests one is lost, of another the answer. */
  net: 'on' | 'off' | 'lossy';
  /** Whether storage takes nothing more; all: its spare in a browser neither. */
  full: boolean | 'all';
}

let asked = 0;

/**
 * The network between this device and the service. The service lives in real time: what is said of the time is put from
 * the one into the other.
 */
export const through = (world: () => World, real: typeof globalThis.fetch): typeof globalThis.fetch =>
  async (target, options = {}) => {
    const { net, elapsed } = world();
    asked += 1;
    if (net === 'off' || (net === 'lossy' && asked % 3 === 1)) throw new TypeError('offline');
    const answered = await real(target, { ...options, ...(options.body ? { body: inRealTime(String(options.body), elapsed) } : {}) });
    if (net === 'lossy' && asked % 3 === 2) throw new TypeError('the answer was lost');
    const headers = new Headers(answered.headers);
    const time = Date.parse(headers.get('date') ?? '');
    headers.set('date', new Date(time + elapsed).toUTCString());
    return new Response(await answered.text(), { status: answered.status, headers });
  };

function inRealTime(text: string, elapsed: number): string {
  const body = JSON.parse(text) as { sent_at?: string };
  if (body.sent_at) body.sent_at = new Date(Date.parse(body.sent_at) - elapsed).toISOString();
  return JSON.stringify(body);
}
