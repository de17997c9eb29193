/**
 * What is known of the device's clock, while it is moved (rule 16).
 *
 * The service corrects a wrong clock by `sent_at`: "now, by the clock that occurred_at was read from". Between an event
 * and its sending somebody may have moved the clock. So each event keeps the sum of all moves until then, its `shift`,
 * and `sent_at` is now without the moves since. All times are milliseconds.
 *
 * Moves are seen by ticks, a count of milliseconds that nobody can move. In browsers these stand still while a machine
 * sleeps. So time that is missing there is a *doubt*: sleep, or a move forward. So is the time for which no page was open.
 * The service's own time, at the next contact, tells which.
 */

/** Time that may be a move of the clock. from: the first event after it. exact: a move by `most`, or none; else a move by at most so much. */
export interface Doubt { from: number; most: number; exact: boolean }

/** A move that was found later. It belongs to the events from `from` on and before `until`. */
export interface Fix { from: number; until: number; by: number }

/** All of it, as it is stored. All pages of a user share it. */
export interface ClockState {
  /** The sum of all moves. */
  shift: number;
  /** The sum of all that was noticed, doubts included: what one page has noticed another does not count again. */
  noticed: number;
  /** The clock without its moves, when somebody last looked; null: nobody has. */
  seen: number | null;
  /** What has to be added to the clock without its moves to get the service's time; null: no contact yet. */
  anchor: number | null;
  doubts: Doubt[];
  fixes: Fix[];
  /** Whose ticks `base` was read by, and the clock minus these ticks. */
  run: string;
  base: number;
}

/** One reading of both clocks. run: which ticks they are: they begin anew with another one. */
export interface Reading { wall: number; ticks: number; run: string; countsSleep: boolean }

/** What one page remembers between two looks. */
export interface Watch { base: number; noticed: number }

/** Less than this is no move: clocks are also put right slowly. */
export const STILL = 30_000;
/** As rule 16: what the service takes for the delay of a request. */
export const STEADY = 120_000;
const DOUBTS_MAX = 12;
const FIXES_MAX = 50;

export const newClock = (): ClockState => ({
  shift: 0, noticed: 0, seen: null, anchor: null, doubts: [], fixes: [], run: '', base: 0,
});

/** Notice whether the clock was moved; changes the state, and returns what to remember. next: the number of the next event. */
export function look(state: ClockState, watch: Watch | null, now: Reading, next: number): Watch {
  const base = now.wall - now.ticks;
  const known = state.run === now.run ? { base: state.base, noticed: state.noticed } : watch;
  let kept = base;
  if (known === null) begin(state, now.wall, next);
  else {
    const gap = base - known.base;
    const rest = gap - (state.noticed - known.noticed);
    if (Math.abs(gap) <= STILL) kept = known.base;
    else if (Math.abs(rest) > STILL) {
      state.noticed += rest;
      if (rest < 0 || now.countsSleep) state.shift += rest;
      else doubt(state, { from: next, most: rest, exact: true });
    }
  }
  state.run = now.run;
  state.base = kept;
  state.seen = now.wall - state.shift;
  return { base: kept, noticed: state.noticed };
}

/** A page was opened: nobody knows for how long none was. A clock that went back was moved, by as much at least. */
function begin(state: ClockState, wall: number, next: number): void {
  if (state.seen === null) return;
  const passed = wall - state.shift - state.seen;
  if (passed < -STILL) {
    state.shift += passed;
    state.noticed += passed;
  }
  doubt(state, { from: next, most: Math.max(0, passed), exact: false });
}

function doubt(state: ClockState, one: Doubt): void {
  state.doubts = [...state.doubts, one].slice(-DOUBTS_MAX);
}

/** Whether the service should be asked for its time before anything is sent. */
export const isInDoubt = (state: ClockState): boolean => state.doubts.length > 0 && state.anchor !== null;

/** Take the service's time: it decides all doubts. wall: the device's clock then. */
export function contact(state: ClockState, serverTime: number, wall: number, next: number): void {
  const ahead = state.anchor === null ? 0 : state.anchor - (serverTime - (wall - state.shift));
  for (const [each, by] of explained(state.doubts, ahead)) {
    state.fixes.push({ from: each.from, until: next, by });
    state.shift += by;
  }
  // They are kept when nothing waits here: another page may have events that storage did not take.
  state.fixes = state.fixes.slice(-FIXES_MAX);
  state.seen = wall - state.shift;
  state.anchor = serverTime - state.seen;
  state.doubts = [];
}

/** Return which doubts were moves, and by how much, if the clock runs ahead of what is known by so much. */
function explained(doubts: Doubt[], ahead: number): [Doubt, number][] {
  if (Math.abs(ahead) <= STEADY) return [];
  const exact = doubts.filter((each) => each.exact);
  let best: Doubt[] = [];
  for (let mask = 1; mask < 1 << exact.length; mask += 1) {
    const some = exact.filter((_, number) => mask & (1 << number));
    if (left(some, ahead) < left(best, ahead)) best = some;
  }
  if (left(best, ahead) <= STEADY) return best.map((each) => [each, each.most]);
  const closed = doubts.filter((each) => !each.exact && ahead <= each.most + STEADY).pop();
  return closed ? [[closed, ahead]] : [];
}

const left = (some: Doubt[], ahead: number): number => Math.abs(ahead - some.reduce((sum, each) => sum + each.most, 0));

/** Return the sum of the clock's moves until an event, as it is known now. */
export const shiftOf = (state: ClockState, event: { number: number; shift: number }): number =>
  state.fixes.reduce((sum, { from, until, by }) => sum + (from <= event.number && event.number < until ? by : 0), event.shift);

/** Return what time it is now by the clock that an event was read from. */
export const sentAt = (state: ClockState, shift: number, wall: number): number => wall - (state.shift - shift);

/** Return the right time of what the clock said, as far as it is known. shift: of that moment. */
export const rightTime = (state: ClockState, wall: number, shift: number): number =>
  state.anchor === null ? wall : wall - shift + state.anchor;
