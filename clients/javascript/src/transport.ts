import { ApiError, ConnectionError, PostriderError, TimeoutError } from "./errors.js";
import { List, type Page } from "./listing.js";
import { errorFromResponse } from "./error-responses.js";
import { isTransient, pause, waitAfter, wasNotProcessed } from "./retries.js";
import { webcrypto } from "./webcrypto.js";
import { VERSION } from "./version.js";

export interface PostriderOptions {
  /** The address of the service, such as `https://mail.example.com`. Default: the environment variable POSTRIDER_URL. */
  baseUrl?: string;
  /** Milliseconds for one attempt, from the first byte sent to the last received. Default 60,000. */
  timeoutMs?: number;
  /** Attempts after the first. Default 3; 0 disables retries. */
  maxRetries?: number;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch;
}

export interface RequestOptions {
  signal?: AbortSignal;
  timeoutMs?: number;
  maxRetries?: number;
}

export interface IdempotentOptions extends RequestOptions {
  /** The header `Idempotency-Key`: one request is accepted per key, and another body is rejected. Default: a random key. */
  idempotencyKey?: string;
}

export type Query = Record<string, string | number | boolean | Date | readonly string[] | null | undefined>;

export interface Call {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Segments after `/v1`; ids are escaped. */
  path: readonly string[];
  query?: Query;
  body?: unknown;
  /** Safe to retry without a response. Default: every method except POST. */
  isRepeatable?: boolean;
  /** Sent with an idempotency key, and therefore safe to retry. */
  isKeyed?: boolean;
  options?: IdempotentOptions | undefined;
}

/** HTTP transport with safe retries. */
export class Transport {
  readonly #apiKey: string;
  readonly #baseUrl: string;
  readonly #timeoutMs: number;
  readonly #maxRetries: number;
  readonly #fetch: typeof fetch;

  constructor(apiKey: string | undefined, options: PostriderOptions) {
    this.#apiKey = apiKeyOf(required(apiKey, "apiKey", "POSTRIDER_API_KEY"));
    this.#baseUrl = baseOf(required(options.baseUrl, "baseUrl", "POSTRIDER_URL"));
    this.#timeoutMs = options.timeoutMs ?? 60_000;
    this.#maxRetries = options.maxRetries ?? 3;
    // In browsers and workers, fetch must be called on the global object.
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** Return the JSON of the response. Throws ApiError, ConnectionError, TimeoutError, or the reason of an aborted signal. */
  async json<T>(call: Call): Promise<T> {
    return this.#repeated(call, async (response) => (await response.json()) as T);
  }

  /** Return the bytes of the response. Throws the same errors as `json`. */
  async bytes(call: Call): Promise<Uint8Array> {
    return this.#repeated(call, async (response) => new Uint8Array(await response.arrayBuffer()));
  }

  /** Return the text and headers of the response. Throws the same errors as `json`. */
  async text(call: Call): Promise<{ text: string; headers: Headers }> {
    return this.#repeated(call, async (response) => ({ text: await response.text(), headers: response.headers }));
  }

  /**
   * Yield each complete line of the response when it arrives. Throws the same errors as `json`; the timeout is for the
   * time without data.
   */
  async *lines(call: Call): AsyncGenerator<string> {
    const response = await this.#repeated(call, async (answer) => answer);
    const reader = response.body!.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for (let part = await this.#nextPart(call, reader); part; part = await this.#nextPart(call, reader)) {
        const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
        rest = lines.pop()!;
        yield* lines;
      }
    } finally {
      await reader.cancel().catch(() => undefined);
    }
  }

  /** Return the next bytes of a response, or undefined at its end. */
  async #nextPart(call: Call, reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
    return this.#withDeadline(call, async (signal) => {
      signal.addEventListener("abort", () => void reader.cancel().catch(() => undefined), { once: true });
      const { value } = signal.aborted ? { value: undefined } : await reader.read();
      // A cancelled read ends without an error.
      if (signal.aborted) throw signal.reason;
      return value;
    });
  }

  /** Return a list that requests its pages on demand. */
  list<T extends object>(path: readonly string[], query: object, options: RequestOptions | undefined): List<T> {
    return new List((position) => {
      return this.json<Page<T>>({ method: "GET", path, query: { ...query, ...position } as Query, options });
    });
  }

  async #repeated<T>(call: Call, read: (response: Response) => Promise<T>): Promise<T> {
    const request = await this.#requestOf(call);
    const retries = call.options?.maxRetries ?? this.#maxRetries;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(call, request, read);
      } catch (error) {
        const mayRepeat = isTransient(error) && (isRepeatable(call) || wasNotProcessed(error));
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
    // Redirects are errors: following one would turn a POST into a GET or send the key to another host.
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
    return this.#withDeadline(call, async (signal) => {
      const response = await this.#fetch(request.url, { ...request.init, signal });
      if (!response.ok) throw await errorFromResponse(response);
      return await read(response);
    });
  }

  /** Run a function with a signal for its timeout and for the caller's signal. */
  async #withDeadline<T>(call: Call, act: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const timeoutMs = call.options?.timeoutMs ?? this.#timeoutMs;
    const deadline = new Deadline(timeoutMs, call.options?.signal);
    try {
      return await act(deadline.signal);
    } catch (error) {
      if (call.options?.signal?.aborted) throw call.options.signal.reason;
      if (error instanceof ApiError) throw error;
      if (deadline.isOver) throw new TimeoutError(`No response within ${timeoutMs} ms.`, { cause: error });
      throw new ConnectionError(`No valid response: ${reasonOf(error)}`, { cause: error });
    } finally {
      deadline.stop();
    }
  }
}

/** A signal for the timeout of an attempt and the caller's signal. Node 18 has no AbortSignal.any. */
class Deadline {
  readonly #controller = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #abort = () => this.#controller.abort(this.#callers?.reason);
  readonly #callers: AbortSignal | undefined;
  isOver = false;

  constructor(milliseconds: number, callers: AbortSignal | undefined) {
    this.#callers = callers;
    this.#timer = setTimeout(() => {
      this.isOver = true;
      this.#controller.abort();
    }, milliseconds);
    if (callers?.aborted) this.#abort();
    callers?.addEventListener("abort", this.#abort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#callers?.removeEventListener("abort", this.#abort);
  }
}

function isRepeatable(call: Call): boolean {
  return call.isKeyed || (call.isRepeatable ?? call.method !== "POST");
}

/** Return the value of Idempotency-Key: the caller's key or a random one; null if the body has a key. */
async function keyOf(call: Call): Promise<string | null> {
  if (!call.isKeyed) return null;
  if (call.options?.idempotencyKey !== undefined) return call.options.idempotencyKey;
  if ((call.body as { idempotencyKey?: unknown } | undefined)?.idempotencyKey != null) return null;
  return (await webcrypto()).randomUUID();
}

function segmentOf(segment: string): string {
  // An empty id would address the whole collection, and dots a parent path.
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

function required(given: string | undefined, option: string, variable: string): string {
  const value = given ?? environment(variable);
  if (!value) throw new PostriderError(`${option} is missing. Pass it, or set the environment variable ${variable}.`);
  return value;
}

/** Return a key without spaces around it. Other errors of an invalid header would contain the key. */
function apiKeyOf(given: string): string {
  const key = given.trim();
  if (/^[!-~]*$/.test(key)) return key;
  throw new PostriderError("The API key has spaces, line breaks or characters other than ASCII.");
}

function baseOf(url: string): string {
  if (!/^https?:\/\/[^/]/.test(url)) throw new PostriderError("baseUrl must begin with https:// or http://.");
  return url.replace(/(\/v1)?\/*$/, "");
}

/** Node's fetch fails with "fetch failed" and gives the reason in its cause. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof Error) return cause.message || (cause as { code?: string }).code || cause.name;
  return error instanceof Error ? error.message : String(error);
}
