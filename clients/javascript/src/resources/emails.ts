import { encodeAttachment } from "../attachments.js";
import type { List, Paging } from "../listing.js";
import type { IdempotentOptions, Query, RequestOptions, Transport } from "../transport.js";
import type {
  Accepted,
  Answer,
  Batch,
  BatchAccepted,
  Cancelled,
  Checked,
  Email,
  EmailFilters,
  EmailItem,
  Export,
  Rescheduled,
  Send,
  SentAttachment,
  TimelineEvent,
} from "../types.js";

export class Emails {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Send one email, now or at `scheduledFor`. Retries never send it twice. */
  async send(email: Send | Answer, options?: IdempotentOptions): Promise<Accepted> {
    const body = await bodyOf(email);
    return this.#transport.json({ method: "POST", path: ["emails", "send"], body, isKeyed: true, options });
  }

  /** Validate an email and return it rendered, without sending it or using quota. */
  async check(email: Send | Answer, options?: RequestOptions): Promise<Checked> {
    const body = { ...(await bodyOf(email)), dryRun: true };
    return this.#transport.json({ method: "POST", path: ["emails", "send"], body, isRepeatable: true, options });
  }

  /** Send a template to up to 500 recipients. Each gets a separate email, rendered with their data. */
  batch(batch: Batch, options?: IdempotentOptions): Promise<BatchAccepted> {
    return this.#transport.json({ method: "POST", path: ["emails", "batch"], body: batch, isKeyed: true, options });
  }

  get(id: string, options?: RequestOptions): Promise<Email> {
    return this.#transport.json({ method: "GET", path: ["emails", id], options });
  }

  /** Return matching emails, newest first. */
  list(filters: EmailFilters & Paging = {}, options?: RequestOptions): List<EmailItem> {
    return this.#transport.list(["emails"], filters, options);
  }

  /** Return matching emails as CSV, at most 10,000 rows. */
  async export(filters: EmailFilters = {}, options?: RequestOptions): Promise<Export> {
    const call = { method: "GET", path: ["emails", "export"], query: { ...filters } as Query, options } as const;
    const { text, headers } = await this.#transport.text(call);
    return { csv: text, truncated: headers.get("x-export-truncated") === "true" };
  }

  /** Return the files of an email with URLs for an hour; none once its content is deleted. */
  async attachments(id: string, options?: RequestOptions): Promise<SentAttachment[]> {
    const call = { method: "GET", path: ["emails", id, "attachments"], options } as const;
    return (await this.#transport.json<{ data: SentAttachment[] }>(call)).data;
  }

  /** Return the bytes of an attachment. */
  attachment(id: string, attachmentId: string, options?: RequestOptions): Promise<Uint8Array> {
    return this.#transport.bytes({ method: "GET", path: ["emails", id, "attachments", attachmentId], options });
  }

  /** Return the timeline of an email, oldest event first. */
  async events(id: string, options?: RequestOptions): Promise<TimelineEvent[]> {
    const call = { method: "GET", path: ["emails", id, "events"], options } as const;
    return (await this.#transport.json<{ data: TimelineEvent[] }>(call)).data;
  }

  /** Send an email again, as a new email. */
  resend(id: string, options?: IdempotentOptions): Promise<Accepted> {
    return this.#transport.json({ method: "POST", path: ["emails", id, "resend"], isKeyed: true, options });
  }

  /** Cancel a scheduled email. Throws EmailAlreadySentError or ConflictError if it is too late. */
  cancel(id: string, options?: RequestOptions): Promise<Cancelled> {
    return this.#transport.json({ method: "DELETE", path: ["emails", id], options });
  }

  /** Move a scheduled email to another time; null sends it immediately. */
  reschedule(id: string, scheduledFor: Date | string | null, options?: RequestOptions): Promise<Rescheduled> {
    return this.#transport.json({ method: "PATCH", path: ["emails", id], body: { scheduledFor }, options });
  }
}

async function bodyOf(email: Send | Answer): Promise<Record<string, unknown>> {
  if (!email.attachments) return { ...email };
  return { ...email, attachments: await Promise.all(email.attachments.map(encodeAttachment)) };
}
