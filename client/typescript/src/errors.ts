/** What this package throws. */

/** The service answered with an error. reason: in words. details: which fields, and why. */
export class Refused extends Error {
  override readonly name = 'Refused';
  constructor(readonly status: number, readonly code: string, readonly reason: string, readonly details?: unknown) {
    super(`${status} ${code}: ${reason}`);
  }
}

/** No answer came: the network, a timeout, or bytes that are no answer. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}
