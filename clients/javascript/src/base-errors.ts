/** The errors that do not follow from a code of the API, and the base classes of those that do (`errors.ts`). */

export class PostriderError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server cannot be reached or closed the connection before it responded. */
export class ConnectionError extends PostriderError {}

/** No complete response arrived within `timeoutMs`. */
export class TimeoutError extends ConnectionError {}

/** A webhook has an invalid signature or timestamp. Respond with 400 and ignore it. */
export class WebhookVerificationError extends PostriderError {}

/** The body of an error response: RFC 9457 with the members of its code. */
export interface Problem {
  type?: string;
  title?: string;
  status: number;
  code: string;
  detail: string;
  requestId: string | null;
  [member: string]: unknown;
}

/** An error response of the API. `code` is stable and meant for programs, `message` is meant for people. */
export class ApiError extends PostriderError {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  readonly problem: Problem;

  constructor(problem: Problem, readonly headers: Headers) {
    super(problem.detail);
    this.status = problem.status;
    this.code = problem.code;
    this.requestId = problem.requestId;
    this.problem = problem;
  }

  /** The Retry-After header in seconds, or null. */
  get retryAfter(): number | null {
    return secondsOf(this.headers.get("retry-after"));
  }
}

export class BadRequestError extends ApiError {}
export class AuthenticationError extends ApiError {}
export class ForbiddenError extends ApiError {}
export class NotFoundError extends ApiError {}
export class ConflictError extends ApiError {}
export class PayloadTooLargeError extends ApiError {}
export class UnprocessableError extends ApiError {}
export class ServerError extends ApiError {}

export interface FieldError {
  field: string;
  code: string;
  detail: string;
}

export interface RefusedRecipient {
  email: string;
  field: string;
}

export interface SuppressedRecipient {
  email: string;
  field: string;
  reason: string;
  suppressionId: string;
  /** The only stream that is blocked; absent if all are. */
  stream?: string;
}

function secondsOf(header: string | null): number | null {
  return header !== null && /^\d+$/.test(header) ? Number(header) : null;
}
