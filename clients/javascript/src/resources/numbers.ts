import type { RequestOptions, Transport } from "../transport.js";
import type { Analytics, BounceCauses, DailyVolume, QueueStats } from "../types.js";

export class AnalyticsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Return totals and rates of the emails created in the range: of one stream, whole UTC days. */
  get(
    range: { from?: Date | string; to?: Date | string; stream?: string } = {},
    options?: RequestOptions,
  ): Promise<Analytics> {
    return this.#transport.json({ method: "GET", path: ["analytics"], query: { ...range }, options });
  }

  /** Return daily volumes, oldest first. days: 1 to 90, default 14. `stream`: only its emails are counted. */
  async daily(days?: number, options: RequestOptions & { stream?: string } = {}): Promise<DailyVolume[]> {
    const { stream, ...rest } = options;
    const call = { method: "GET", path: ["analytics", "daily"], query: { days, stream }, options: rest } as const;
    return (await this.#transport.json<{ data: DailyVolume[] }>(call)).data;
  }

  /**
   * Return the most frequent reasons and receiving hosts of the last 30 days, or of a range, with advice. `event`:
   * bounced is the default. `stream`: only its emails are counted.
   */
  bounces(
    query: { event?: BounceCauses["event"]; from?: Date | string; to?: Date | string; stream?: string } = {},
    options?: RequestOptions,
  ): Promise<BounceCauses> {
    return this.#transport.json({ method: "GET", path: ["analytics", "bounces"], query: { ...query }, options });
  }
}

export class Queue {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Return the queue depth by state, counted in recipients. */
  stats(options?: RequestOptions): Promise<QueueStats> {
    return this.#transport.json({ method: "GET", path: ["queue", "stats"], options });
  }
}
