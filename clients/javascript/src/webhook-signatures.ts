import { WebhookVerificationError } from "./errors.js";
import type { ReceivedEvent, WebhookEvent } from "./types.js";
import { webcrypto } from "./webcrypto.js";

/** The unparsed body of the request. A parsed body cannot be verified. */
export type RawBody = string | Uint8Array | ArrayBuffer;

/** All headers of the request: a `Headers`, or an object such as Node's `request.headers`. */
export type HeaderSource = Headers | Record<string, string | string[] | undefined>;

export interface VerifyOptions {
  /** Seconds by which `webhook-timestamp` may differ from this machine's clock. Default 300. */
  toleranceSeconds?: number;
}

const SECRET_PREFIX = "whsec_";
const TOLERANCE_SECONDS = 300;

/**
 * Return the event if the signature is valid, or throw WebhookVerificationError.
 *
 * header: the value of `x-service-signature`, or all headers. All headers must include a Standard Webhooks signature
 * (`webhook-id`, `webhook-timestamp`, `webhook-signature`), and deliveries older than the tolerance are rejected: an
 * attacker must not be able to replay a delivery by leaving headers out.
 * E: ReceivedEvent for a webhook of received emails.
 * secret: the secret of the webhook, `whsec_…`. After a rotation the old secret stays valid for 24 hours; to verify
 * `x-service-signature` with it, pass the value of `x-service-signature-previous`.
 */
export async function verifyWebhook<E extends WebhookEvent | ReceivedEvent = WebhookEvent>(
  rawBody: RawBody,
  header: string | HeaderSource,
  secret: string,
  options: VerifyOptions = {},
): Promise<E> {
  const body = bytesOf(rawBody);
  if (typeof secret !== "string" || !secret.startsWith(SECRET_PREFIX)) {
    throw new WebhookVerificationError(`The secret must begin with ${SECRET_PREFIX}.`);
  }
  if (typeof header === "string") await checkSignature(body, header, secret);
  else await checkStandardSignature(body, header, secret, options.toleranceSeconds ?? TOLERANCE_SECONDS);
  return JSON.parse(new TextDecoder().decode(body)) as E;
}

/** `client.webhooks.verify`. */
export class WebhookVerification {
  /** Verify a webhook request. See `verifyWebhook`, which works without a client. */
  verify<E extends WebhookEvent | ReceivedEvent = WebhookEvent>(
    rawBody: RawBody,
    header: string | HeaderSource,
    secret: string,
    options?: VerifyOptions,
  ): Promise<E> {
    return verifyWebhook<E>(rawBody, header, secret, options);
  }
}

function bytesOf(rawBody: RawBody): Uint8Array<ArrayBuffer> {
  if (typeof rawBody === "string") return new TextEncoder().encode(rawBody);
  if (rawBody instanceof ArrayBuffer) return new Uint8Array(rawBody);
  if (rawBody instanceof Uint8Array) return rawBody as Uint8Array<ArrayBuffer>;
  throw new WebhookVerificationError(
    "rawBody must be the unparsed body, a string or bytes. A parsed object cannot be verified: " +
      "use express.raw() or await request.text() instead of a JSON parser.",
  );
}

async function checkSignature(body: Uint8Array<ArrayBuffer>, header: string, secret: string): Promise<void> {
  const key = new TextEncoder().encode(secret);
  // x-service-signature-previous has one signature for each old secret that is still valid.
  for (const given of header.split(" ")) {
    const signature = /^[0-9a-f]{64}$/.test(given) ? decodeHex(given) : null;
    if (signature && (await isSignedWith(key, signature, body))) return;
  }
  throw new WebhookVerificationError("The value of x-service-signature does not match this body and secret.");
}

async function checkStandardSignature(
  body: Uint8Array<ArrayBuffer>,
  headers: HeaderSource,
  secret: string,
  toleranceSeconds: number,
): Promise<void> {
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => {
    const value = headerOf(headers, name);
    if (value) return value;
    throw new WebhookVerificationError(`The header ${name} is missing. To verify x-service-signature, pass its value instead of all headers.`);
  }) as [string, string, string];
  checkTime(timestamp, toleranceSeconds);
  const key = decodeBase64(secret.slice(SECRET_PREFIX.length));
  const signed = concatenated(new TextEncoder().encode(`${id}.${timestamp}.`), body);
  for (const given of signatures.split(" ")) {
    const signature = given.startsWith("v1,") ? decodeBase64(given.slice(3)) : null;
    if (key && signature && (await isSignedWith(key, signature, signed))) return;
  }
  throw new WebhookVerificationError("No signature in webhook-signature matches this body and secret.");
}

function checkTime(timestamp: string, toleranceSeconds: number): void {
  const offset = Date.now() / 1_000 - Number(timestamp);
  // Written so that NaN is rejected, too.
  if (!/^\d{1,12}$/.test(timestamp) || !(Math.abs(offset) <= toleranceSeconds)) {
    throw new WebhookVerificationError(`webhook-timestamp is not within ${toleranceSeconds} s of this machine's clock.`);
  }
}

function headerOf(headers: HeaderSource, name: string): string | undefined {
  if (typeof (headers as Headers)?.get === "function") return (headers as Headers).get(name) ?? undefined;
  const found = Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1];
  return Array.isArray(found) ? found[0] : (found as string | undefined);
}

/** Compare in constant time, with `subtle.verify`. */
async function isSignedWith(
  key: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  data: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const { subtle } = await webcrypto();
  const imported = await subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  return subtle.verify("HMAC", imported, signature, data);
}

function decodeHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return bytes.length > 0 ? bytes : null;
  } catch {
    return null;
  }
}

function concatenated(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
