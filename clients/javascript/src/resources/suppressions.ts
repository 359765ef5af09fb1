import type { List, Paging } from "../listing.js";
import type { RequestOptions, Transport } from "../transport.js";
import type { Deleted, Suppression, SuppressionReason } from "../types.js";

export interface SuppressionFilters extends Paging {
  reason?: SuppressionReason;
  search?: string;
  /** Only those of this stream. */
  stream?: string;
}

export interface SuppressOptions extends RequestOptions {
  /** The only stream to block; without it, all of the workspace. */
  stream?: string;
}

export class Suppressions {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Suppress an address. An address already suppressed keeps its reason. */
  create(email: string, options?: SuppressOptions): Promise<Suppression> {
    const body = { email, stream: options?.stream };
    return this.#transport.json({ method: "POST", path: ["suppressions"], body, isRepeatable: true, options });
  }

  /** Suppress up to 1,000 addresses. */
  async createMany(emails: string[], options?: SuppressOptions): Promise<Suppression[]> {
    const body = { emails, stream: options?.stream };
    const call = { method: "POST", path: ["suppressions"], body, isRepeatable: true, options } as const;
    return (await this.#transport.json<{ data: Suppression[] }>(call)).data;
  }

  list(filters: SuppressionFilters = {}, options?: RequestOptions): List<Suppression> {
    return this.#transport.list(["suppressions"], filters, options);
  }

  get(id: string, options?: RequestOptions): Promise<Suppression> {
    return this.#transport.json({ method: "GET", path: ["suppressions", id], options });
  }

  /** Delete a suppression, so that emails to the address are sent again. */
  delete(id: string, options?: RequestOptions): Promise<Deleted & { email: string }> {
    return this.#transport.json({ method: "DELETE", path: ["suppressions", id], options });
  }
}
