/** What can go wrong, by name. Catch `PostriderError` for everything, `ApiError` for every refusal of the server. */

export class PostriderError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server could not be reached, or went away before it had answered. */
export class ConnectionError extends PostriderError {}

/** No whole answer came within `timeoutMs`. */
export class TimeoutError extends ConnectionError {}

/** A webhook's signature, or its time, is not what it has to be: answer 400 and do nothing. */
export class WebhookVerificationError extends PostriderError {}

/** The body of a refusal: RFC 9457 and the members of its code. */
export interface Problem {
  type?: string;
  title?: string;
  status: number;
  code: string;
  detail: string;
  requestId: string | null;
  [member: string]: unknown;
}

/** The server answered, and refused. `code` is for programs and never changes, `message` is for people. */
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

  /** Seconds that the server asked to wait, or null. */
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

export class InsufficientScopeError extends ForbiddenError {
  readonly requiredScope = this.problem["requiredScope"] as string;
}

export class PlanLimitReachedError extends ForbiddenError {
  readonly resource = this.problem["resource"] as string;
  readonly limit = this.problem["limit"] as number;
}

/** The email is on its way or further; nothing was cancelled. */
export class EmailAlreadySentError extends ConflictError {}

/** The same idempotency key came with another body. */
export class IdempotencyKeyReuseError extends ConflictError {}

export interface FieldError {
  field: string;
  code: string;
  detail: string;
}

/** All faults of a request at once. */
export class ValidationError extends UnprocessableError {
  readonly errors = this.problem["errors"] as FieldError[];
}

export interface SuppressedRecipient {
  email: string;
  field: string;
  reason: string;
  suppressionId: string;
}

export class RecipientSuppressedError extends UnprocessableError {
  readonly recipients = this.problem["recipients"] as SuppressedRecipient[];
}

export class DomainNotRegisteredError extends UnprocessableError {
  readonly domain = this.problem["domain"] as string;
}

export class DomainNotVerifiedError extends UnprocessableError {
  readonly domain = this.problem["domain"] as string;
  readonly missingRecords = this.problem["missingRecords"];
}

export class TemplateNotFoundError extends UnprocessableError {}

export class TemplateSyntaxError extends UnprocessableError {
  readonly field = this.problem["field"] as string;
  readonly line = this.problem["line"] as number;
  readonly column = this.problem["column"] as number;
}

export class MissingTemplateVariablesError extends UnprocessableError {
  readonly variables = this.problem["variables"] as string[];
}

/** Too many requests in this moment. It is repeated by itself; this came after the last attempt. */
export class RateLimitError extends ApiError {}

/** The month's emails are used up. Repeating changes nothing before `resetsAt`. */
export class QuotaExceededError extends ApiError {
  readonly limit = this.problem["limit"] as number;
  readonly used = this.problem["used"] as number;
  readonly requested = this.problem["requested"] as number;
  readonly resetsAt = new Date(this.problem["resetsAt"] as string);
}

function secondsOf(header: string | null): number | null {
  return header !== null && /^\d+$/.test(header) ? Number(header) : null;
}
