// Failure: the one error type of this client, told apart by its code.
import type * as Http from './generated/http.js';
import type * as Protocol from './generated/protocol.js';

/**
 * The gateway's codes, plus `UNREACHABLE` (no gateway answers) and `OTHER_USER` (another user has logged in in
 * this browser, so this login cannot be renewed).
 */
export type FailureCode = Protocol.Error['code'] | 'UNREACHABLE' | 'OTHER_USER';

/** A refused or failed operation. */
export class Failure extends Error {
  override readonly name = 'Failure';

  constructor(
    /** What programs branch on. */
    readonly code: FailureCode,
    message: string,
    /** The HTTP status or the close code, if there was one. */
    readonly status = 0,
    /** Machine-readable details, such as the field or the limit. */
    readonly details: Record<string, unknown> = {},
  ) {
    super(message);
  }

  /** How long to wait before the next attempt, if the gateway said so. */
  get retryAfterMs(): number | undefined {
    const value = this.details['retryAfterMs'];
    return typeof value === 'number' ? value : undefined;
  }

  /** From an `ERROR_MESSAGE`. */
  static fromProtocol(error: Protocol.Error): Failure {
    return new Failure(error.code, error.message, 0, error.details ?? {});
  }

  /** From an HTTP response; reads its body. */
  static async fromResponse(response: Response): Promise<Failure> {
    const body = await response.text().catch(() => '');
    let problem: Partial<Http.Problem> = {};
    try {
      const parsed = JSON.parse(body) as Partial<Http.Problem> & { type?: string; payload?: Protocol.Error };
      // A session answers a command with an envelope, everything before it with a problem document.
      problem = parsed.type === 'ERROR_MESSAGE' && parsed.payload ? { ...parsed.payload, detail: parsed.payload.message } as Partial<Http.Problem> : parsed;
    } catch {
      // Not JSON: a proxy's own error page.
    }
    const seconds = Number(response.headers.get('Retry-After'));
    const details: Record<string, unknown> = { ...(problem.details as object | undefined) };
    if (seconds > 0) details['retryAfterMs'] ??= seconds * 1000;
    const code = (problem.code as FailureCode | undefined) ?? (response.status === 401 ? 'AUTH_FAILED' : 'UNREACHABLE');
    return new Failure(code, problem.detail ?? `The server answered with status ${response.status}.`, response.status, details);
  }
}
