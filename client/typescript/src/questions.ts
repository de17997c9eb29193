/** Questions: an agent asks, people answer. */

import { userPart, withQuery, type Http } from './http.js';
import type { Asked, GivenAnswer, NewAnswer, NewQuestion, Question, Questions, Responses, Stats } from './types.js';

const WAIT_SECONDS_DEFAULT = 20;
const TIMEOUT_MS = 10_000;
const POLL_MS_MIN = 500;

export class QuestionsApi {
  constructor(protected readonly http: Http) {}

  /** Ask people. If the answer is lost, ask the same again: it is asked once. */
  ask({ idempotency_key, ...question }: NewQuestion): Promise<Asked> {
    return this.http.command('/v1/questions', question, 'question_id', idempotency_key);
  }

  /** Return a question as it is now. */
  question(id: string): Promise<Question> {
    return this.http.call('GET', `/v1/questions/${encodeURIComponent(id)}`);
  }

  /** Return a page of the questions that this person may answer. */
  openQuestions(query: { limit?: number; cursor?: string } = {}): Promise<Questions> {
    return this.http.call('GET', withQuery('/v1/questions', query));
  }

  /** Yield an agent's questions, the newest first. */
  async *questions(agent: string, limit = 50): AsyncGenerator<Question> {
    let cursor: string | undefined;
    do {
      const path = withQuery(`/v1/agents/${userPart(agent)}/questions`, { limit, cursor });
      const page: { questions: Question[]; cursor?: string | null } = await this.http.call('GET', path);
      yield* page.questions;
      cursor = page.cursor ?? undefined;
    } while (cursor);
  }

  /** Yield each answer once, as it comes, until the question is done. wait: seconds that a request may stay open; with 0 it stops where there is no more. */
  async *answers(id: string, wait = WAIT_SECONDS_DEFAULT): AsyncGenerator<Responses['responses'][number]> {
    const seconds = wait < 1 ? Math.ceil(wait) : Math.floor(wait); // the service takes whole ones
    let after: string | undefined;
    for (;;) {
      const started = Date.now();
      const path = withQuery(`/v1/questions/${encodeURIComponent(id)}/responses`, { wait: seconds, after });
      const page: Responses = await this.http.call('GET', path, undefined, TIMEOUT_MS + seconds * 1000);
      yield* page.responses;
      after = page.cursor;
      if (page.done || (!page.responses.length && seconds === 0)) return;
      if (!page.responses.length) await new Promise((go) => setTimeout(go, Math.max(0, POLL_MS_MIN - (Date.now() - started))));
    }
  }

  /** Answer a question; once a person. */
  answer(id: string, answer: NewAnswer): Promise<GivenAnswer> {
    return this.http.call('POST', `/v1/questions/${encodeURIComponent(id)}/responses`, answer);
  }

  /** Return the stats of a person who answers; the caller's own, if none is named. */
  stats(fingerprint = 'me'): Promise<Stats> {
    return this.http.call('GET', `/v1/stats/${encodeURIComponent(fingerprint)}`);
  }
}
