// What can go wrong, as one kind of error that programs can tell apart by its code.
import type * as Http from './generated/http.js';
import type * as Protocol from './generated/protocol.js';

/**
 * The gateway's codes; `UNREACHABLE` for a gateway that is not; `OTHER_USER` if somebody else has logged in
 * in the same browser, and the login there was is not to be had any more.
 */
export type FailureCode = Protocol.Error['code'] | 'UNREACHABLE' | 'OTHER_USER';

/** Something was refused or could not be done. */
export class Failure extends Error {
  override readonly name = 'Failure';

  constructor(
    /** Decide by this. */
    readonly code: FailureCode,
    message: string,
    /** The HTTP status or the close code, where there was one. */
    readonly status = 0,
    /** The field or the limit, for programs. */
    readonly details: Record<string, unknown> = {},
  ) {
    super(message);
  }

  /** How long to wait before the next try, if the gateway said so. */
  get retryAfterMs(): number | undefined {
    const told = this.details['retryAfterMs'];
    return typeof told === 'number' ? told : undefined;
  }

  /** From an error on the line. */
  static told(error: Protocol.Error): Failure {
    return new Failure(error.code, error.message, 0, error.details ?? {});
  }

  /** From a refused request. Reads its body. */
  static async of(response: Response): Promise<Failure> {
    const body = await response.text().catch(() => '');
    let problem: Partial<Http.Problem> = {};
    try {
      const said = JSON.parse(body) as Partial<Http.Problem> & { type?: string; payload?: Protocol.Error };
      // A session answers a command with an envelope, whatever stands before it with a problem.
      problem = said.type === 'ERROR_MESSAGE' && said.payload ? { ...said.payload, detail: said.payload.message } as Partial<Http.Problem> : said;
    } catch {
      // A proxy's own page.
    }
    const seconds = Number(response.headers.get('Retry-After'));
    const details: Record<string, unknown> = { ...(problem.details as object | undefined) };
    if (seconds > 0) details['retryAfterMs'] ??= seconds * 1000;
    const code = (problem.code as FailureCode | undefined) ?? (response.status === 401 ? 'AUTH_FAILED' : 'UNREACHABLE');
    return new Failure(code, problem.detail ?? `The server answered with status ${response.status}.`, response.status, details);
  }
}
