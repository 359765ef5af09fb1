import { ApiError, ConnectionError } from "./errors.js";

/** The first wait is about half a second; each later one is twice as long. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8_000;
/** A longer Retry-After is thrown to the caller instead. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** Return whether a retry may succeed. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof ApiError)) return error instanceof ConnectionError;
  if (error.status === 408 || error.status >= 500) return true;
  return error.code === "idempotency_in_progress" || wasNotProcessed(error);
}

/**
 * Return whether the server certainly did not process the request, so that any request may be retried.
 *
 * That is a 429 with Retry-After, also of a proxy. An exceeded quota has none.
 */
export function wasNotProcessed(error: unknown): boolean {
  if (!(error instanceof ApiError) || error.status !== 429) return false;
  return error.code === "rate_limit_exceeded" || error.retryAfter !== null;
}

/**
 * Return the milliseconds before the next attempt, or null if Retry-After is too long.
 *
 * attempt: attempts already made, from 1. The wait is random, between half and all of 0.5, 1, 2, 4, 8, 8 … seconds,
 * so that clients that failed together do not retry together.
 */
export function waitAfter(attempt: number, error: unknown): number | null {
  const backoff = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS) * (0.5 + Math.random() / 2);
  const retryAfter = error instanceof ApiError && error.retryAfter !== null ? error.retryAfter * 1_000 : 0;
  if (retryAfter > LONGEST_RETRY_AFTER_MS) return null;
  return retryAfter === 0 ? backoff : retryAfter + backoff * 0.1;
}

/** Wait, or throw the reason of the signal when it is aborted. */
export function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
