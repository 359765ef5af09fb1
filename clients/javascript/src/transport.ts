import { ApiError, ConnectionError, PostriderError, TimeoutError } from "./errors.js";
import { List, type Page, type Paging } from "./listing.js";
import { refusalOf } from "./refusals.js";
import { didNothing, isTransient, pause, waitAfter } from "./retries.js";
import { webcrypto } from "./webcrypto.js";
import { VERSION } from "./version.js";

export interface PostriderOptions {
  /** Where the service is, such as `https://mail.example.com`; else the environment's POSTRIDER_URL. */
  baseUrl?: string;
  /** Milliseconds for one attempt, from the first byte sent to the last received. Default 60,000. */
  timeoutMs?: number;
  /** Attempts after the first. Default 3; 0 turns repeating off. */
  maxRetries?: number;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
}

export interface RequestOptions {
  signal?: AbortSignal;
  timeoutMs?: number;
  maxRetries?: number;
}

export interface IdempotentOptions extends RequestOptions {
  /** The header `Idempotency-Key`: of one key, one request is accepted, and another body is refused. Default: a random one. */
  idempotencyKey?: string;
}

export type Query = Record<string, string | number | Date | readonly string[] | null | undefined>;

export interface Call {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Segments after `/v1`; ids among them are escaped. */
  path: readonly string[];
  query?: Query;
  body?: unknown;
  /** May be sent again after no answer. Default: every method but POST. */
  isRepeatable?: boolean;
  /** Carries an idempotency key, and is repeatable by it. */
  isKeyed?: boolean;
  options?: IdempotentOptions | undefined;
}

/** Makes calls, and repeats them where that is safe. */
export class Transport {
  readonly #apiKey: string;
  readonly #baseUrl: string;
  readonly #timeoutMs: number;
  readonly #maxRetries: number;
  readonly #fetch: typeof fetch;

  constructor(apiKey: string | undefined, options: PostriderOptions) {
    this.#apiKey = needed(apiKey ?? environment("POSTRIDER_API_KEY"), "an API key");
    this.#baseUrl = baseOf(needed(options.baseUrl ?? environment("POSTRIDER_URL"), "the service's baseUrl"));
    this.#timeoutMs = options.timeoutMs ?? 60_000;
    this.#maxRetries = options.maxRetries ?? 3;
    // Called without its window or worker global, fetch is an illegal invocation there.
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** Return the answer's JSON. Throws ApiError, ConnectionError, TimeoutError, or the reason of an aborted signal. */
  async json<T>(call: Call): Promise<T> {
    return this.#repeated(call, async (response) => (await response.json()) as T);
  }

  /** Return the answer's text with its headers. Throws as `json` does. */
  async text(call: Call): Promise<{ text: string; headers: Headers }> {
    return this.#repeated(call, async (response) => ({ text: await response.text(), headers: response.headers }));
  }

  /** Return a list that asks for its pages when they are wanted. */
  list<T extends { id: string }>(path: readonly string[], query: object, options: RequestOptions | undefined): List<T> {
    const given = query as Query & Paging;
    return new List((page) => {
      return this.json<Page<T>>({ method: "GET", path, query: { ...given, page: page ?? given.page }, options });
    });
  }

  async #repeated<T>(call: Call, read: (response: Response) => Promise<T>): Promise<T> {
    const request = await this.#requestOf(call);
    const retries = call.options?.maxRetries ?? this.#maxRetries;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(call, request, read);
      } catch (error) {
        const mayRepeat = isTransient(error) && (isRepeatable(call) || didNothing(error));
        const wait = mayRepeat && attempt <= retries ? waitAfter(attempt, error) : null;
        if (wait === null) throw error;
        await pause(wait, call.options?.signal);
      }
    }
  }

  async #requestOf(call: Call): Promise<{ url: string; init: RequestInit }> {
    const headers = new Headers({
      Authorization: `Bearer ${this.#apiKey}`,
      "User-Agent": `postrider-javascript/${VERSION}`,
      Accept: "application/json, text/csv",
    });
    if (call.body !== undefined) headers.set("Content-Type", "application/json");
    const key = await keyOf(call);
    if (key !== null) headers.set("Idempotency-Key", key);
    const body = call.body === undefined ? {} : { body: JSON.stringify(call.body) };
    // A redirect would turn a POST into a GET, or carry the key elsewhere: it is told, not followed.
    return { url: this.#urlOf(call), init: { method: call.method, headers, redirect: "manual", ...body } };
  }

  #urlOf(call: Call): string {
    const query = new URLSearchParams(Object.entries(call.query ?? {}).flatMap(parameterOf)).toString();
    return `${this.#baseUrl}/v1/${call.path.map(segmentOf).join("/")}${query && "?"}${query}`;
  }

  async #attempt<T>(
    call: Call,
    request: { url: string; init: RequestInit },
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const timeoutMs = call.options?.timeoutMs ?? this.#timeoutMs;
    const clock = new Clock(timeoutMs, call.options?.signal);
    try {
      const response = await this.#fetch(request.url, { ...request.init, signal: clock.signal });
      if (!response.ok) throw await refusalOf(response);
      return await read(response);
    } catch (error) {
      if (call.options?.signal?.aborted) throw call.options.signal.reason;
      if (error instanceof ApiError) throw error;
      if (clock.isOver) throw new TimeoutError(`No answer within ${timeoutMs} ms.`, { cause: error });
      throw new ConnectionError(`No usable answer: ${reasonOf(error)}`, { cause: error });
    } finally {
      clock.stop();
    }
  }
}

/** One signal of two: the attempt's time is over, or the caller gave up. AbortSignal.any is younger than Node 18. */
class Clock {
  readonly #controller = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #giveUp = () => this.#controller.abort(this.#callers?.reason);
  readonly #callers: AbortSignal | undefined;
  isOver = false;

  constructor(milliseconds: number, callers: AbortSignal | undefined) {
    this.#callers = callers;
    this.#timer = setTimeout(() => {
      this.isOver = true;
      this.#controller.abort();
    }, milliseconds);
    if (callers?.aborted) this.#giveUp();
    callers?.addEventListener("abort", this.#giveUp, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#callers?.removeEventListener("abort", this.#giveUp);
  }
}

function isRepeatable(call: Call): boolean {
  return call.isKeyed || (call.isRepeatable ?? call.method !== "POST");
}

/** Return the key of the header: the caller's, else a random one, else none where the body has its own. */
async function keyOf(call: Call): Promise<string | null> {
  if (!call.isKeyed) return null;
  if (call.options?.idempotencyKey !== undefined) return call.options.idempotencyKey;
  if ((call.body as { idempotencyKey?: unknown } | undefined)?.idempotencyKey != null) return null;
  return (await webcrypto()).randomUUID();
}

function segmentOf(segment: string): string {
  // An empty id would name the whole collection, and dots would climb out of it.
  if (typeof segment !== "string" || /^\.*$/.test(segment)) throw new PostriderError(`${segment} is not an id.`);
  return encodeURIComponent(segment);
}

function parameterOf([name, value]: [string, Query[string]]): [string, string][] {
  if (value === undefined || value === null) return [];
  if (value instanceof Date) return [[name, value.toISOString()]];
  return [[name, Array.isArray(value) ? value.join(",") : String(value)]];
}

function environment(name: string): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string> } }).process?.env?.[name];
}

function needed(value: string | undefined, what: string): string {
  if (!value) throw new PostriderError(`Postrider needs ${what}.`);
  return value;
}

function baseOf(url: string): string {
  if (!/^https?:\/\/[^/]/.test(url)) throw new PostriderError("baseUrl begins with https:// or http://.");
  return url.replace(/(\/v1)?\/*$/, "");
}

/** Node's fetch says "fetch failed", and why in its cause. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof Error) return cause.message || (cause as { code?: string }).code || cause.name;
  return error instanceof Error ? error.message : String(error);
}
