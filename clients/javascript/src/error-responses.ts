import { BY_CODE, type ErrorClass } from "./error-codes.js";
import {
  ApiError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  ForbiddenError,
  NotFoundError,
  PayloadTooLargeError,
  RateLimitError,
  ServerError,
  UnprocessableError,
  type Problem,
} from "./errors.js";

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
