import { ApiError, ConnectionError } from "./errors.js";

/** Milliseconds. The first wait is about half a second, each later one twice as long. */
const FIRST_WAIT = 500;
const LONGEST_WAIT = 8_000;
/** A server that asks for more than this is not waited for: the caller knows better what to do with the time. */
const LONGEST_RETRY_AFTER = 60_000;

/** Return whether what went wrong may go well a moment later. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof ApiError)) return error instanceof ConnectionError;
  if (error.status === 408 || error.status >= 500) return true;
  return error.code === "rate_limit_exceeded" || error.code === "idempotency_in_progress";
}

/** Return whether the server certainly did nothing, so that even what must not happen twice may be repeated. */
export function didNothing(error: unknown): boolean {
  return error instanceof ApiError && error.code === "rate_limit_exceeded";
}

/**
 * Return the milliseconds before the next attempt, or null when the server asks for more patience than we have.
 *
 * attempt: attempts already made, from 1. Between half and the whole of 0.5, 1, 2, 4, 8, 8 … seconds, at random,
 * so that clients that failed together do not come back together.
 */
export function waitAfter(attempt: number, error: unknown): number | null {
  const backoff = Math.min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT) * (0.5 + Math.random() / 2);
  const asked = error instanceof ApiError && error.retryAfter !== null ? error.retryAfter * 1_000 : 0;
  if (asked > LONGEST_RETRY_AFTER) return null;
  return asked === 0 ? backoff : asked + backoff * 0.1;
}

/** Wait, unless the caller gives up: then throw the reason of the signal. */
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
