import {
  AlertExistsError,
  ApiError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  DomainNotRegisteredError,
  DomainNotVerifiedError,
  EmailAlreadySentError,
  ForbiddenError,
  IdempotencyKeyReuseError,
  InsufficientScopeError,
  InvalidStreamError,
  MissingTemplateVariablesError,
  NotBlockedError,
  NotForwardedError,
  NotFoundError,
  NotPublishedError,
  NotUnreadableError,
  PayloadTooLargeError,
  PlanLimitReachedError,
  QuotaExceededError,
  RateLimitError,
  ReceivedEmailNotFoundError,
  ReceivingDomainTakenError,
  ReceivingNotActiveError,
  RecipientRefusedError,
  RecipientSuppressedError,
  RereadTooSoonError,
  ServerError,
  StreamArchivedError,
  StreamExistsError,
  StreamNotAllowedError,
  StreamNotFoundError,
  StreamPausedError,
  TemplateNotFoundError,
  TemplateSyntaxError,
  TestKeyRequiredError,
  UnprocessableError,
  ValidationError,
  type Problem,
} from "./errors.js";

type ErrorClass = new (problem: Problem, headers: Headers) => ApiError;

const BY_CODE: Record<string, ErrorClass> = {
  insufficient_scope: InsufficientScopeError,
  plan_limit_reached: PlanLimitReachedError,
  email_already_sent: EmailAlreadySentError,
  idempotency_key_reuse: IdempotencyKeyReuseError,
  validation_error: ValidationError,
  recipient_suppressed: RecipientSuppressedError,
  domain_not_registered: DomainNotRegisteredError,
  domain_not_verified: DomainNotVerifiedError,
  stream_not_allowed: StreamNotAllowedError,
  stream_paused: StreamPausedError,
  stream_exists: StreamExistsError,
  alert_exists: AlertExistsError,
  stream_not_found: StreamNotFoundError,
  stream_archived: StreamArchivedError,
  invalid_stream: InvalidStreamError,
  receiving_domain_taken: ReceivingDomainTakenError,
  receiving_not_active: ReceivingNotActiveError,
  received_email_not_found: ReceivedEmailNotFoundError,
  recipient_refused: RecipientRefusedError,
  test_key_required: TestKeyRequiredError,
  not_blocked: NotBlockedError,
  not_forwarded: NotForwardedError,
  not_published: NotPublishedError,
  not_unreadable: NotUnreadableError,
  reread_too_soon: RereadTooSoonError,
  template_not_found: TemplateNotFoundError,
  template_syntax_error: TemplateSyntaxError,
  missing_template_variables: MissingTemplateVariablesError,
  rate_limit_exceeded: RateLimitError,
  quota_exceeded: QuotaExceededError,
};

const BY_STATUS: Record<number, ErrorClass> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  413: PayloadTooLargeError,
  422: UnprocessableError,
  429: RateLimitError,
};

/** Return the error for an error response. Proxies may respond with any body, such as HTML. */
export async function errorFromResponse(response: Response): Promise<ApiError> {
  const problem = problemOf(response, await response.text());
  const byStatus = BY_STATUS[response.status] ?? (response.status >= 500 ? ServerError : ApiError);
  return new (BY_CODE[problem.code] ?? byStatus)(problem, response.headers);
}

function problemOf(response: Response, text: string): Problem {
  const given: Partial<Problem> = isProblem(response) ? parsed(text) : {};
  return {
    ...given,
    status: response.status,
    code: given.code ?? "unknown",
    detail: given.detail ?? fallbackDetail(response),
    requestId: given.requestId ?? response.headers.get("x-request-id"),
  };
}

function isProblem(response: Response): boolean {
  return /^application\/(problem\+)?json/.test(response.headers.get("content-type") ?? "");
}

function parsed(text: string): Partial<Problem> {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

function fallbackDetail(response: Response): string {
  const target = response.headers.get("location");
  if (target) return `The server redirects to ${target}. Set baseUrl to the address of the service.`;
  return `The server responded with status ${response.status} and no details.`;
}
