/** What this package throws. */

/** The service answered with an error. details: which fields, and why. */
export class Refused extends Error {
  override readonly name = 'Refused';
  constructor(readonly status: number, readonly code: string, override readonly message: string, readonly details?: unknown) {
    super(message);
  }
}

/** No answer came: the network, a timeout, or bytes that are no answer. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}
