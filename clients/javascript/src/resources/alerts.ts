import type { List, Paging } from "../listing.js";
import type { RequestOptions, Transport } from "../transport.js";
import type { Alert, AlertFields, Deleted, NewAlert } from "../types.js";

export class Alerts {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Watch a rate or the quota. The owners and webhooks are notified when the value reaches the threshold. */
  create(alert: NewAlert, options?: RequestOptions): Promise<Alert> {
    return this.#transport.json({ method: "POST", path: ["alerts"], body: alert, options });
  }

  /** Return the alerts with their present values, newest first. */
  list(paging: Paging = {}, options?: RequestOptions): List<Alert> {
    return this.#transport.list(["alerts"], paging, options);
  }

  get(id: string, options?: RequestOptions): Promise<Alert> {
    return this.#transport.json({ method: "GET", path: ["alerts", id], options });
  }

  /** Update the given fields. The metric and the stream cannot be changed. */
  update(id: string, changes: Partial<AlertFields>, options?: RequestOptions): Promise<Alert> {
    return this.#transport.json({ method: "PATCH", path: ["alerts", id], body: changes, options });
  }

  delete(id: string, options?: RequestOptions): Promise<Deleted> {
    return this.#transport.json({ method: "DELETE", path: ["alerts", id], options });
  }
}
