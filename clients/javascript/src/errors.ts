/** Errors of this library. `PostriderError` is the base class, `ApiError` the base class of API errors. */

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

export class InsufficientScopeError extends ForbiddenError {
  readonly requiredScope = this.problem["requiredScope"] as string;
}

export class PlanLimitReachedError extends ForbiddenError {
  readonly resource = this.problem["resource"] as string;
  readonly limit = this.problem["limit"] as number;
}

/** The API key is limited to other streams. */
export class StreamNotAllowedError extends ForbiddenError {
  readonly allowedStreams = this.problem["allowedStreams"] as string[];
}

/** The stream is paused, because its bounce or complaint rate is too high. */
export class StreamPausedError extends ForbiddenError {}

/** The workspace has a stream with this id, which may be archived. */
export class StreamExistsError extends ConflictError {}

/** The workspace has an alert with this metric, stream and threshold. */
export class AlertExistsError extends ConflictError {
  readonly alertId = this.problem["alertId"] as string;
}

/** Only a test key can simulate received emails. */
export class TestKeyRequiredError extends ForbiddenError {}

/** The received email is not blocked. */
export class NotBlockedError extends ConflictError {}

/** The received email is not forwarded: a forward could cause a loop or spread spam. */
export class NotForwardedError extends ConflictError {}

/** The message of the received email was read, or is new, so it is not read again. */
export class NotUnreadableError extends ConflictError {}

/** The message was read again within the last hour without success; `retryAfter` is the wait in seconds. */
export class RereadTooSoonError extends ConflictError {}

/** The received email has not been published yet, so nothing can be delivered again. */
export class NotPublishedError extends ConflictError {}

/** Another workspace receives the email of the domain. */
export class ReceivingDomainTakenError extends ConflictError {}

/** The email is being sent or was sent; it was not cancelled. */
export class EmailAlreadySentError extends ConflictError {}

/** The idempotency key was already used with another body. */
export class IdempotencyKeyReuseError extends ConflictError {}

export interface FieldError {
  field: string;
  code: string;
  detail: string;
}

/** A request with invalid fields; `errors` lists all of them. */
export class ValidationError extends UnprocessableError {
  readonly errors = this.problem["errors"] as FieldError[];
}

export interface SuppressedRecipient {
  email: string;
  field: string;
  reason: string;
  suppressionId: string;
  /** The only stream that is blocked; absent if all are. */
  stream?: string;
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

export class StreamNotFoundError extends UnprocessableError {}

/** The stream is archived and accepts no emails. */
export class StreamArchivedError extends UnprocessableError {}

/** The properties of the stream do not fit together. */
export class InvalidStreamError extends UnprocessableError {}

/** No domain receives the answers to the email; `replyTracking` needs one. */
export class ReceivingNotActiveError extends UnprocessableError {}

/** The workspace has no received email with the id in `inReplyToId`. */
export class ReceivedEmailNotFoundError extends UnprocessableError {}

/** The mail server refuses the recipient of a simulated email. `reply`: its SMTP reply. */
export class RecipientRefusedError extends UnprocessableError {
  readonly reply = this.problem["reply"] as string;
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

/** Too many requests. Thrown after the last automatic retry. */
export class RateLimitError extends ApiError {}

/** The monthly quota is exceeded. Retries fail until `resetsAt`. */
export class QuotaExceededError extends ApiError {
  readonly limit = this.problem["limit"] as number;
  readonly used = this.problem["used"] as number;
  readonly requested = this.problem["requested"] as number;
  readonly resetsAt = new Date(this.problem["resetsAt"] as string);
}

function secondsOf(header: string | null): number | null {
  return header !== null && /^\d+$/.test(header) ? Number(header) : null;
}
